"""
Random clients, crashes and reconnects against what must always hold (issue: the model-based test).

Two nodes share a store. Parties submit, repeat keys, cancel, lose their connections, resume (on either node, also
without ever reading the welcome); nodes are killed without a word and others take over. Then everything is let run to
its end, and:

- every accepted submission is told exactly one end, under its job's id: no handle hangs;
- a session's numbers have no gap and no double, over all its connections, and no event comes under two numbers;
- every run in every job's log has exactly one terminal entry, and it is the run's last;
- a job's agent is never at work twice at the same time, but in one case: its node was silent for longer than its
  lease, so that another one took the job over and, because it may be repeated, began it again; that stands in the log,
  and behind it nothing that the one before did; and no run that is not repeatable begins twice;
- a key stands for one job.
"""

from __future__ import annotations

import asyncio
import math
import tempfile
import time
import uuid
from collections import Counter, defaultdict
from itertools import combinations, pairwise

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from amends import stores
from amends.arcp import Limits, Runtime
from amends.arcp.errors import InvalidRequestError
from amends.arcp.runtime.ledger import read_mark
from tests.arcp.raw import TOKENS, Raw, dial

LEASE = 0.3
LIMITS = Limits(node_lease=LEASE, cancel_grace=0.1, drain=0.0, running=3)
KEYS = ("k1", "k2", "k3")
INPUTS = (
    {"does": "return"},
    {"does": "wait"},
    {"does": "chat"},
    {"does": "chat"},
    {"does": "fail", "runs": 1},
    {"does": "fail", "runs": 2},
    {"does": "refuse"},
)


class Work:
    """An agent at work: for whom, and from when to when."""

    def __init__(self, ctx):
        self.node, self.epoch = ctx._job.node.id, ctx._job.epoch
        self.began, self.ended = time.time(), math.inf


class World:
    """What happens outside the runtimes: the agents' doings, and when a node said that it lives."""

    def __init__(self):
        self.release = asyncio.Event()
        self.begun = Counter()
        self.work = defaultdict(list)
        self.vouched = defaultdict(list)
        """By node: when it began to say so, and when that was done."""

    def attend(self, node):
        """Note when a node says that it lives; it did when it was started."""
        announce = node.announce
        self.vouched[node.id].append((node.started, time.time()))

        async def noted():
            began = time.time()
            await announce()
            self.vouched[node.id].append((began, time.time()))

        node.announce = noted

    def silent(self, node, until):
        """Whether a node may have been found silent for longer than its lease, at some time before `until`."""
        said = [*self.vouched[node], (math.inf, math.inf)]
        return any(began + LEASE <= min(done, until) for (began, _), (_, done) in pairwise(said))

    async def agent(self, input, ctx):
        self.begun[ctx.job_id, ctx.run, ctx.agent] += 1
        work = Work(ctx)
        self.work[ctx.job_id].append(work)
        try:
            await ctx.log("begun")
            if input["does"] == "chat":
                for number in range(12):
                    await ctx.log(str(number))
                    await asyncio.sleep(0.002)
            if input["does"] == "wait":
                await self.release.wait()
            if input["does"] == "fail" and ctx.run <= input["runs"]:
                raise RuntimeError("again")
            if input["does"] == "refuse":
                raise InvalidRequestError("never")
            await ctx.log("done")
            return ctx.run
        finally:
            work.ended = time.time()


class Party:
    """One client session over all its connections."""

    def __init__(self, world):
        self.world = world
        self.raw = None
        self.reader = None
        self.block = None
        self.last = 0
        self.open = []
        """Accepted submissions whose end was not told yet: job ids."""
        self.known = []
        self.faults = []
        self.requests = {}
        self.keys = defaultdict(set)
        self.lines = Counter()

    async def connect(self, runtime):
        raw = dial(runtime)
        resume = None if self.block is None else {**self.block, "last_event_seq": self.last}
        message = await raw.hello(resume=resume)
        if message["type"] != "session.welcome":
            self.faults.append(message)
            return
        self.block = {"session_id": raw.session_id, "resume_token": raw.welcome["resume_token"]}
        self.raw = raw
        self.reader = asyncio.ensure_future(self._read(raw))

    async def lose_a_welcome(self, runtime):
        """Reconnect, and lose the connection before the welcome is read."""
        raw = dial(runtime)
        payload = {
            "auth": {"token": "alice-token"},
            "resume": {**self.block, "last_event_seq": self.last},
        }
        await raw.send("session.hello", payload)
        for _ in range(5):
            await asyncio.sleep(0)
        await raw.close()

    async def _read(self, raw: Raw):
        while (message := await raw.receive(within=600)) is not None:
            type, payload = message["type"], message["payload"]
            if type == "job.accepted":
                key = self.requests.pop(payload["request_id"], None)
                self.open.append(message["job_id"])
                self.known.append(message["job_id"])
                if key is not None:
                    self.keys[key].add(message["job_id"])
            elif type == "session.ping":
                await raw.send("session.pong", {"ping_nonce": payload["nonce"]})
            if "event_seq" in message:
                if message["event_seq"] != self.last + 1:
                    self.faults.append(("gap", self.last, message["event_seq"]))
                self.last = message["event_seq"]
                if type == "job.event" and payload["kind"] == "log":
                    self.lines[message["job_id"], payload.get("run"), payload["body"]["message"]] += 1
                if type in {"job.result", "job.error"}:
                    self.open = [job_id for job_id in self.open if job_id != message["job_id"]]

    def go_deaf(self):
        """Read no more; what is sent from now on is numbered, and lost on the way."""
        if self.raw is not None:
            self.reader.cancel()
            self.requests.clear()

    async def disconnect(self):
        if self.raw is not None:
            await self.raw.close()
            await asyncio.wait([self.reader])
            self.raw = None
            self.requests.clear()

    async def send(self, *given, **more):
        try:
            return await self.raw.send(*given, **more)
        except ConnectionError:
            return None


class Machine(RuleBasedStateMachine):
    """The rules; `url` says where the store is."""

    kind = "memory"

    def __init__(self):
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.directory = tempfile.TemporaryDirectory()
        self.url = (
            f"memory:{uuid.uuid4().hex}"
            if self.kind == "memory"
            else f"sqlite:///{self.directory.name}/s.db?synchronous=normal"
        )
        self.crashes = 0
        self.do(self.begin())

    def do(self, work):
        return self.loop.run_until_complete(work)

    async def begin(self):
        self.world = World()
        self.nodes = [await self.node(), await self.node()]
        self.parties = [Party(self.world), Party(self.world)]
        for number, party in enumerate(self.parties):
            await party.connect(self.nodes[number])

    async def node(self):
        runtime = Runtime(self.url, tokens=TOKENS, limits=LIMITS)
        runtime.register_agent("once", self.world.agent)
        runtime.register_agent("often", self.world.agent, repeatable=True)
        await runtime.start()
        self.world.attend(runtime.node)
        return runtime

    party = st.integers(0, 1)
    node_number = st.integers(0, 1)

    @rule(party=party, agent=st.sampled_from(["once", "often"]), input=st.sampled_from(INPUTS))
    def submit(self, party, agent, input):
        self.do(self._submit(party, agent, input, None))

    @rule(party=party, key=st.sampled_from(KEYS), input=st.sampled_from(INPUTS))
    def submit_with_a_key(self, party, key, input):
        """The first input a key is used with stays the one it means, now and then another is tried."""
        self.do(self._submit(party, "often" if key == "k3" else "once", input, key))

    async def _submit(self, number, agent, input, key):
        party = self.parties[number]
        if party.raw is None:
            return
        payload = {"agent": agent, "input": input} | ({} if key is None else {"idempotency_key": key})
        request = await party.send("job.submit", payload)
        if request is not None:
            party.requests[request] = key
        await self.settle()

    @rule(party=party, node=node_number, key=st.sampled_from([None, *KEYS]), gone=st.booleans())
    def interrupted(self, party, node, key, gone):
        """In the middle of a stream the client hears no more, and goes on elsewhere."""

        async def work():
            who = self.parties[party]
            if who.raw is None:
                await who.connect(self.nodes[1 - node])
            await self._submit(party, "often" if key == "k3" else "once", {"does": "chat"}, key)
            who.go_deaf()
            await self.settle(0.01)
            old = who.raw
            if gone:
                await who.disconnect()
            await who.connect(self.nodes[node])
            await self.settle(0.01)
            await old.close()

        self.do(work())

    @rule(party=party, which=st.integers(0, 5))
    def cancel(self, party, which):
        async def work():
            who = self.parties[party]
            if who.raw is not None and who.open:
                await who.send("job.cancel", {}, job_id=who.open[which % len(who.open)])
                await self.settle()

        self.do(work())

    @rule(party=party)
    def go_deaf(self, party):
        async def work():
            self.parties[party].go_deaf()
            await self.settle(0.02)
            await self.parties[party].disconnect()

        self.do(work())

    @rule(party=party)
    def disconnect(self, party):
        self.do(self.parties[party].disconnect())

    @rule(party=party, node=node_number)
    def resume(self, party, node):
        """Also while the old connection still stands: the runtime has to notice."""

        async def work():
            who = self.parties[party]
            old = who.raw
            who.go_deaf()
            await who.connect(self.nodes[node])
            await self.settle()
            if old is not None:
                await old.close()

        self.do(work())

    @rule(party=party, node=node_number)
    def lose_a_welcome(self, party, node):
        async def work():
            who = self.parties[party]
            await who.disconnect()
            await who.lose_a_welcome(self.nodes[node])
            await who.connect(self.nodes[node])

        self.do(work())

    @precondition(lambda self: self.crashes < 3)
    @rule(node=node_number)
    def crash(self, node):
        """Killed without a word; another one is started in its place."""

        async def work():
            self.crashes += 1
            await self.nodes[node].abandon()
            for party in self.parties:
                # Whoever was connected there finds its connection closed.
                if party.reader is not None and party.raw is not None:
                    await self.settle()
                    if party.reader.done():
                        party.raw = None
                        party.requests.clear()
            self.nodes[node] = await self.node()

        self.do(work())

    @rule()
    def some_time(self):
        self.do(self.settle(0.05))

    async def settle(self, seconds=0.005):
        await asyncio.sleep(seconds)

    def teardown(self):
        try:
            self.do(self.finish())
        finally:
            self.loop.close()
            self.directory.cleanup()

    async def finish(self):
        self.world.release.set()
        for number, party in enumerate(self.parties):
            await asyncio.sleep(0)
            if party.raw is None or party.reader.done():
                party.raw = None
                await party.connect(self.nodes[number])
        try:
            async with asyncio.timeout(100):
                while any(party.open for party in self.parties):
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"no end was told: {[party.open for party in self.parties]}") from None
        finally:
            for party in self.parties:
                await party.disconnect()
            for runtime in self.nodes:
                await runtime.stop()
        await self.check()

    async def check(self):
        for party in self.parties:
            assert not party.faults
            often = {job_id for job_id, _, agent in self.world.begun if agent.startswith("often")}
            assert not [line for line, count in party.lines.items() if count > 1 and line[0] not in often]
        keys = defaultdict(set)
        for party in self.parties:
            for key, jobs in party.keys.items():
                keys[key] |= jobs
        assert all(len(jobs) == 1 for jobs in keys.values())
        for (_, _, agent), count in self.world.begun.items():
            assert count == 1 or agent.startswith("often")
        async with await stores.open(self.url) as store:
            jobs = {job_id for party in self.parties for job_id in party.known}
            for job_id in jobs:
                marks = [
                    read_mark(entry.value)
                    for entry in await store.log(f"arcp.job/{job_id}").read(limit=10_000)
                ]
                _check_log(marks)
                self._check_work(marks, self.world.work[job_id])
            left = [
                row async for row in store.table("arcp.active").scan() if row.key.partition("/")[2] in jobs
            ]
            assert not left

    def _check_work(self, marks, work):
        """
        Nobody works beside another, unless the one before was held up beyond its lease.

        Such a one is fenced, not stopped: it works on until its node comes to see it. Nothing that it does is written
        (`_check_log`: epochs only grow), and only what may be repeated is begun again.
        """
        for before, after in combinations(sorted(work, key=lambda work: work.epoch), 2):
            if before.ended > after.began and after.ended > before.began:
                taken = [
                    mark
                    for mark in marks
                    if mark.kind == "requeued" and before.epoch < mark.epoch <= after.epoch
                ]
                assert taken
                assert self.world.silent(before.node, taken[0].at)


def _check_log(marks):
    """Each run ends once, and last; epochs only grow."""
    assert marks[0].kind == "accepted"
    ended = 0
    for number, mark in enumerate(marks):
        assert number == 0 or mark.epoch >= marks[number - 1].epoch
        assert mark.run == ended + 1
        if mark.ended:
            ended += 1
    assert marks[-1].ended


def run(kind, examples, steps):
    machine = type("Machine", (Machine,), {"kind": kind})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=examples < 100,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.parametrize(("kind", "examples"), [("memory", 12), ("sqlite", 5)])
def test_whatever_happens(kind, examples):
    """The issue's invariants, over random histories."""
    run(kind, examples, 15)


@pytest.mark.soak
@pytest.mark.parametrize(("kind", "examples"), [("memory", 400), ("sqlite", 200)])
def test_whatever_happens_for_long(kind, examples):
    """The same for long, with new histories every time."""
    run(kind, examples, 40)
