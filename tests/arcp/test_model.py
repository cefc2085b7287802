"""
A model-based test: random clients, crashes and reconnects, and the invariants that must hold for them.

Two nodes share a store. Clients submit jobs, repeat keys, cancel, lose their connections and resume on either node, also
without reading the welcome. Nodes are killed and others take over. Then all jobs run to their end, and:

- every accepted submission gets exactly one end, under its job's id, so no handle waits forever;
- a session's event numbers have no gap and no duplicate over all its connections, and no event has two numbers;
- every run in every job's log has exactly one terminal entry, which is the run's last;
- a job's agent never runs twice at the same time, with one exception: its node did not renew its row for longer than its
  lease, another node took the job over and, because it is repeatable, started it again. Then the log has a "requeued"
  entry and behind it no entry of the previous node. A run that is not repeatable never starts twice;
- a key has one job.
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
from amends.arcp.runtime.ledger import read_entry
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
    """One execution of an agent: its node, its epoch, and its start and end."""

    def __init__(self, ctx):
        self.node, self.epoch = ctx._job.node, ctx._job.epoch
        self.began, self.ended = time.time(), math.inf


class World:
    """Records the executions of agents, and when nodes renewed their rows."""

    def __init__(self):
        self.release = asyncio.Event()
        self.starts = Counter()
        self.work = defaultdict(list)
        self.renewals = defaultdict(list)
        """By node: start and end of each renewal of its row."""

    def record_renewals(self, node):
        """Record when a node renews its row; the first time was at its start."""
        announce = node.membership.announce
        self.renewals[node.id].append((node.started, time.time()))

        async def recording():
            began = time.time()
            await announce()
            self.renewals[node.id].append((began, time.time()))

        node.membership.announce = recording

    def expired(self, node, until):
        """Whether a node's row may have expired at some time before `until`."""
        renewals = [*self.renewals[node], (math.inf, math.inf)]
        return any(began + LEASE <= min(done, until) for (began, _), (_, done) in pairwise(renewals))

    async def agent(self, input, ctx):
        self.starts[ctx.job_id, ctx.run, ctx.agent] += 1
        work = Work(ctx)
        self.work[ctx.job_id].append(work)
        try:
            await ctx.log("started")
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


class Client:
    """One client session over all its connections."""

    def __init__(self, world):
        self.world = world
        self.raw = None
        self.reader = None
        self.block = None
        self.last = 0
        self.open = []
        """The job ids of accepted submissions without an end so far."""
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
        """Reconnect, and close the connection before the welcome is read."""
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

    def stop_reading(self):
        """Stop reading; later messages are numbered and get lost."""
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
    """The rules of the model."""

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
        self.clients = [Client(self.world), Client(self.world)]
        for number, client in enumerate(self.clients):
            await client.connect(self.nodes[number])

    async def node(self):
        runtime = Runtime(self.url, tokens=TOKENS, limits=LIMITS)
        runtime.register_agent("once", self.world.agent)
        runtime.register_agent("often", self.world.agent, repeatable=True)
        await runtime.start()
        self.world.record_renewals(runtime.node)
        return runtime

    client = st.integers(0, 1)
    node_number = st.integers(0, 1)

    @rule(client=client, agent=st.sampled_from(["once", "often"]), input=st.sampled_from(INPUTS))
    def submit(self, client, agent, input):
        self.do(self._submit(client, agent, input, None))

    @rule(client=client, key=st.sampled_from(KEYS), input=st.sampled_from(INPUTS))
    def submit_with_a_key(self, client, key, input):
        """The first input of a key stays valid; other inputs are refused."""
        self.do(self._submit(client, "often" if key == "k3" else "once", input, key))

    async def _submit(self, number, agent, input, key):
        client = self.clients[number]
        if client.raw is None:
            return
        payload = {"agent": agent, "input": input} | ({} if key is None else {"idempotency_key": key})
        request = await client.send("job.submit", payload)
        if request is not None:
            client.requests[request] = key
        await self.settle()

    @rule(client=client, node=node_number, key=st.sampled_from([None, *KEYS]), closed=st.booleans())
    def interrupted(self, client, node, key, closed):
        """The client stops reading in the middle of a job's events, and resumes on the other node."""

        async def work():
            one = self.clients[client]
            if one.raw is None:
                await one.connect(self.nodes[1 - node])
            await self._submit(client, "often" if key == "k3" else "once", {"does": "chat"}, key)
            one.stop_reading()
            await self.settle(0.01)
            old = one.raw
            if closed:
                await one.disconnect()
            await one.connect(self.nodes[node])
            await self.settle(0.01)
            await old.close()

        self.do(work())

    @rule(client=client, which=st.integers(0, 5))
    def cancel(self, client, which):
        async def work():
            one = self.clients[client]
            if one.raw is not None and one.open:
                await one.send("job.cancel", {}, job_id=one.open[which % len(one.open)])
                await self.settle()

        self.do(work())

    @rule(client=client)
    def stop_reading(self, client):
        async def work():
            self.clients[client].stop_reading()
            await self.settle(0.02)
            await self.clients[client].disconnect()

        self.do(work())

    @rule(client=client)
    def disconnect(self, client):
        self.do(self.clients[client].disconnect())

    @rule(client=client, node=node_number)
    def resume(self, client, node):
        """The old connection may still be open; the runtime has to close it."""

        async def work():
            one = self.clients[client]
            old = one.raw
            one.stop_reading()
            await one.connect(self.nodes[node])
            await self.settle()
            if old is not None:
                await old.close()

        self.do(work())

    @rule(client=client, node=node_number)
    def lose_a_welcome(self, client, node):
        async def work():
            one = self.clients[client]
            await one.disconnect()
            await one.lose_a_welcome(self.nodes[node])
            await one.connect(self.nodes[node])

        self.do(work())

    @precondition(lambda self: self.crashes < 3)
    @rule(node=node_number)
    def crash(self, node):
        """A node stops without writing anything, and another one is started in its place."""

        async def work():
            self.crashes += 1
            await self.nodes[node].abandon()
            for client in self.clients:
                # Clients of that node notice that their connection is closed.
                if client.reader is not None and client.raw is not None:
                    await self.settle()
                    if client.reader.done():
                        client.raw = None
                        client.requests.clear()
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
        for number, client in enumerate(self.clients):
            await asyncio.sleep(0)
            if client.raw is None or client.reader.done():
                client.raw = None
                await client.connect(self.nodes[number])
        try:
            async with asyncio.timeout(100):
                while any(client.open for client in self.clients):
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"jobs without an end: {[client.open for client in self.clients]}") from None
        finally:
            for client in self.clients:
                await client.disconnect()
            for runtime in self.nodes:
                await runtime.stop()
        await self.check()

    async def check(self):
        for client in self.clients:
            assert not client.faults
            often = {job_id for job_id, _, agent in self.world.starts if agent.startswith("often")}
            assert not [line for line, count in client.lines.items() if count > 1 and line[0] not in often]
        keys = defaultdict(set)
        for client in self.clients:
            for key, jobs in client.keys.items():
                keys[key] |= jobs
        assert all(len(jobs) == 1 for jobs in keys.values())
        for (_, _, agent), count in self.world.starts.items():
            assert count == 1 or agent.startswith("often")
        async with await stores.open(self.url) as store:
            jobs = {job_id for client in self.clients for job_id in client.known}
            for job_id in jobs:
                entries = [
                    read_entry(entry.value)
                    for entry in await store.log(f"arcp.job/{job_id}").read(limit=10_000)
                ]
                _check_log(entries)
                self._check_work(entries, self.world.work[job_id])
            left = [
                row async for row in store.table("arcp.active").scan() if row.key.partition("/")[2] in jobs
            ]
            assert not left

    def _check_work(self, entries, work):
        """
        No two executions overlap, unless the first one's node did not renew its row for longer than its lease.

        That node is fenced, but its agent runs until the node notices. Nothing that it does is written (`_check_log`:
        epochs never decrease), and only repeatable jobs start again.
        """
        for before, after in combinations(sorted(work, key=lambda work: work.epoch), 2):
            if before.ended > after.began and after.ended > before.began:
                taken = [
                    entry
                    for entry in entries
                    if entry.kind == "requeued" and before.epoch < entry.epoch <= after.epoch
                ]
                assert taken
                assert self.world.expired(before.node, taken[0].at)


def _check_log(entries):
    """Each run ends once, with its last entry; epochs never decrease."""
    assert entries[0].kind == "accepted"
    ended = 0
    for number, entry in enumerate(entries):
        assert number == 0 or entry.epoch >= entries[number - 1].epoch
        assert entry.run == ended + 1
        if entry.ended:
            ended += 1
    assert entries[-1].ended


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
def test_random_histories(kind, examples):
    """The invariants hold for random histories."""
    run(kind, examples, 15)


@pytest.mark.soak
@pytest.mark.timeout(3600)  # they take more than four minutes, and twice as long on a busy machine
@pytest.mark.parametrize(("kind", "examples"), [("memory", 400), ("sqlite", 200)])
def test_many_random_histories(kind, examples):
    """The invariants hold for many long histories, which are different every time."""
    run(kind, examples, 40)
