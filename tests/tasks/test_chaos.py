"""Workers are killed at random while their agents fail at random. Each task ends once, and finished steps are not repeated."""

import asyncio
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from contextlib import AsyncExitStack, closing

import pytest

from amends import stores
from amends.tasks import Agent, Orchestrator, entries
from amends.tasks.documents import ENDED
from amends.tasks.journal import log_name
from tests.stores.servers import NatsCluster
from tests.tasks.call_evidence import judge, judge_actions
from tests.tasks.chaos import LEASE, POLICY, Ledger, plan, store_url

_STARTS_BETWEEN_KILLS = 5


class WorkerProcesses:
    """Worker processes that are killed and replaced."""

    def __init__(self, arguments, size):
        self.arguments, self.kills, self.pauses, self.closes = arguments, 0, 0, 0
        self.paused, self.closing = {}, []
        """Suspended processes, each with the timer that lets it go on."""
        self.workers = [self.start_one() for _ in range(size)]

    def start_one(self):
        return subprocess.Popen(
            [sys.executable, "-m", "tests.tasks.chaos", *self.arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def kill_one(self, dice):
        """Kill any one of them, whether it is idle, at work or starting, and start another."""
        victim = dice.randrange(len(self.workers))
        os.kill(self.workers[victim].pid, signal.SIGKILL)
        self.workers[victim].wait()
        self.workers[victim] = self.start_one()
        self.kills += 1

    def close_one(self, dice):
        """Let any one of them end as it should, and start another."""
        victim = dice.randrange(len(self.workers))
        self.workers[victim].terminate()
        self.closing.append(self.workers[victim])
        self.workers[victim] = self.start_one()
        self.closes += 1

    def pause_one(self, dice, seconds):
        """Suspend any one of them for longer than its lease."""
        worker = dice.choice(self.workers)
        if worker in self.paused:
            return
        os.kill(worker.pid, signal.SIGSTOP)
        # In a thread, because the suspended process may hold a lock of the file that the test waits for.
        self.paused[worker] = timer = threading.Timer(seconds, self._resume, (worker,))
        timer.start()
        self.pauses += 1

    def _resume(self, worker):
        if worker.poll() is None:
            os.kill(worker.pid, signal.SIGCONT)
        self.paused.pop(worker, None)

    def harm_one(self, dice, harms):
        harm = dice.choice(harms)
        if harm == "kill":
            self.kill_one(dice)
        elif harm == "close":
            self.close_one(dice)
        else:
            self.pause_one(dice, 2 * LEASE)

    def stop(self):
        for timer in list(self.paused.values()):
            timer.join()
        for worker in self.closing:
            if worker.poll() is None:
                worker.kill()
            worker.wait()
        for worker in self.workers:
            if worker.poll() is None:
                os.kill(worker.pid, signal.SIGKILL)
            worker.wait()


async def run(
    path, count, worker_count, every, url=None, harms=("kill",), wave=1000, report=None, most_seconds=math.inf
):
    """
    Submit tasks, harm workers and verify interrupted steps until all tasks have ended. Return the outcomes and the kills.

    The tasks come in waves. After each one its logs and effects are checked, and the tasks are forgotten. After `most_seconds` there
    is no further wave.
    """
    dice, outcomes = random.Random(7), Counter()
    async with AsyncExitStack() as stack:
        ledger = stack.enter_context(closing(Ledger(path)))
        client = await stack.enter_async_context(
            Orchestrator(store=url or store_url(path), worker=False, policy=POLICY, lease=LEASE, keep=None)
        )
        workers = WorkerProcesses([path] if url is None else [path, url], worker_count)
        began = time.monotonic()
        try:
            for first in range(0, count, wave):
                ids = [f"task-{n}" for n in range(first, min(count, first + wave))]
                await run_wave(client, ledger, workers, ids, dice, every, harms)
                outcomes += await check_outcomes(client, ledger, ids)
                if first + wave < count:
                    for id in ids:
                        await client.forget(id)
                seconds = time.monotonic() - began
                if report is not None:
                    done = first + len(ids)
                    harmed = f"{workers.kills} kills, {workers.pauses} pauses, {workers.closes} closes"
                    report(f"{done} of {count} tasks after {seconds:.0f} s, {harmed}, {dict(outcomes)}")
                if seconds > most_seconds:
                    break
        finally:
            workers.stop()
        outcomes += Counter(pauses=workers.pauses, closes=workers.closes)
        return outcomes, workers.kills


async def submit_wave(client, ids):
    for id in ids:
        task = plan(int(id.partition("-")[2]))
        await client.submit(task, agent="flaky" if isinstance(task, str) else None, id=id)


async def run_wave(client, ledger, workers, ids, dice, every, harms):
    submitting = asyncio.ensure_future(submit_wave(client, ids))
    open_ids, seen = set(ids), 0
    while open_ids:
        await asyncio.sleep(every * (0.5 + dice.random()))
        # On a slow machine, workers need time to start before the next one is killed.
        ((starts,),) = ledger.rows("SELECT count(*) FROM starts")
        if len(open_ids) > len(ids) // 10 and starts >= seen + _STARTS_BETWEEN_KILLS:
            workers.harm_one(dice, harms)
            seen = starts
        # A person who looks while a worker is paused cannot know what it will do when it goes on.
        open_ids -= await ended_tasks(client, ledger, verify=not workers.paused)
    await submitting


async def ended_tasks(client, ledger, verify=True):
    """Return the ids of ended tasks. Verify the steps of those that wait for a verification."""
    found = set()
    async for listed in client.list():
        if listed.status in ENDED:
            found.add(listed.id)
        elif listed.status == "input_required" and verify:
            state = await client.state(listed.id)
            wanted = state.pending_input()
            if wanted is not None:
                happened = ledger.has_action(listed.id, wanted["step"])
                result = "seen" if happened else None
                await client.verify(listed.id, happened=happened, result=result, step=wanted["step"])
    return found


async def check_outcomes(client, ledger, ids):
    """Check every log and table. Return the number of tasks by status, and of takeovers."""
    outcomes = Counter()
    undos = Counter((task, step, key) for task, step, key in ledger.rows("SELECT * FROM undos"))
    effects = Counter(ledger.rows("SELECT * FROM effects"))
    starts, actions = defaultdict(list), defaultdict(list)
    for call in ledger.calls("starts"):
        starts[call.task].append(call)
    for call in ledger.calls("actions"):
        actions[call.task, call.step].append(call)
    for id in ids:
        records = []
        for entry in await client.store.log(log_name("tasks", id)).read(limit=10_000):
            records += entries.decode(entry.value)
        ends = [record for record in records if isinstance(record, entries.Ended)]
        assert len(ends) == 1, f"{id} ended {len(ends)} times"
        assert records[-1] is ends[0]
        outcomes[ends[0].status] += 1
        outcomes["taken over"] += sum(isinstance(r, entries.Taken) and r.takeover for r in records)
        done = [r for r in records if isinstance(r, entries.Finished) and not r.undo]
        finished = [r.step for r in done]
        assert len(finished) == len(set(finished)), f"{id} finished a step twice"
        taken = [record for record in records if isinstance(record, entries.Taken)]
        delayed, violations = judge(starts[id], taken, {r.step: r.at for r in done})
        assert violations == [], (
            f"a worker that had lost {id}, or had finished the step, called it: {taken}, {done}"
        )
        for step in {step for task, step in list(actions) if task == id}:
            late, violations = judge_actions(actions[id, step])
            assert violations == [], f"{step} of {id} happened twice: {taken}"
            delayed += late
        outcomes += Counter(call.cause for call in delayed)
        booked = [step for step in finished if step in {"hotel", "flight", "car", "book"}]
        for step in booked:
            assert effects[id, step, 0] == 1, "an effect in the transaction, or with a key, happens once"
            undone = undos[id, step, f"{id}/{step}/undo"]
            if ends[0].status == "failed":
                assert undone >= 1, f"{id} did not undo {step}"
                # All six attempts to undo a step may fail: rarely, and then the task reports it.
                allowed = {0, 1} if step in ends[0].fault.details.get("notUndone", ()) else {1}
                assert effects[id, step, 1] in allowed, f"{id} undid {step} {effects[id, step, 1]} times"
            else:
                assert undone == effects[id, step, 1] == 0
        if ends[0].status == "completed":
            names = {
                *finished,
                *(r.step for r in records if isinstance(r, entries.Delegated | entries.Verified)),
            }
            for step in names:
                if step.rpartition("/")[2].partition("#")[0] in {"pay", "shout", "block"}:
                    assert ledger.has_action(id, step), f"{id} completed {step}, which did not happen"
    return outcomes


async def test_killed_workers(tmp_path):
    """Every task ends exactly once."""
    outcomes, kills = await run(f"{tmp_path}/chaos.db", 96, worker_count=3, every=0.45)
    assert outcomes["completed"] + outcomes["failed"] == 96
    assert outcomes["failed"] >= 12  # the plans with a doomed step
    assert kills >= 3
    assert outcomes["taken over"] >= 1


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_a_thousand_tasks_and_killed_workers(tmp_path):
    """The same, for longer."""
    outcomes, kills = await run(f"{tmp_path}/chaos.db", 1000, worker_count=4, every=0.6)
    print(outcomes, kills)
    assert outcomes["completed"] + outcomes["failed"] == 1000
    assert outcomes["taken over"] >= 10
    assert kills >= 10


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_killed_workers_on_nats(tmp_path, nats_server):
    """Without transactions, the log's compare-and-set is enough for everything except effects in a shared transaction."""
    url = f"{nats_server.url}/chaos"
    outcomes, kills = await run(f"{tmp_path}/ledger.db", 300, worker_count=3, every=0.6, url=url)
    print(outcomes, kills)
    assert outcomes["completed"] + outcomes["failed"] == 300
    assert outcomes["taken over"] >= 5
    assert kills >= 5


@pytest.fixture
def storm_url(request, tmp_path, backend):
    if backend == "three servers":
        servers = NatsCluster(tmp_path / "servers")
        servers.start()
        yield servers.url("storm")
        servers.stop()
    elif backend == "nats":
        yield f"{request.getfixturevalue('nats_server').url}/storm"
    else:
        yield None


@pytest.fixture
def storm(tmp_path, monkeypatch, capsys, backend, storm_url):
    """
    Run many tasks on a store, and return the number of tasks, the outcomes, and the kills.

    CHAOS_TASKS says how many tasks, CHAOS_SECONDS after how many seconds no further wave of 250 tasks is begun. After each wave it
    prints how far it is.
    """
    monkeypatch.setenv("PAUSES", "1")
    most_seconds = float(os.environ.get("CHAOS_SECONDS", "inf"))

    def report(text):
        with capsys.disabled():
            print(f"{backend}: {text}", flush=True)

    async def run_storm(count, every, harms):
        count = int(os.environ.get("CHAOS_TASKS", count))
        outcomes, kills = await run(
            f"{tmp_path}/ledger.db",
            count,
            worker_count=4,
            every=every,
            url=storm_url,
            harms=harms,
            wave=250,
            report=report,
            most_seconds=most_seconds,
        )
        report(f"{dict(outcomes)}, {kills} kills, 0 violations")
        ended = outcomes["completed"] + outcomes["failed"]
        assert ended == count or (ended % 250 == 0 and most_seconds < math.inf)
        return ended, outcomes, kills

    return run_storm


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("backend", ["sqlite", "nats", "three servers"])
async def test_killed_paused_and_closed_workers(storm):
    """Effects are counted: none is missing, and none that must not happen twice happened twice."""
    ended, outcomes, kills = await storm(5000, 0.4, ("kill", "pause", "close"))
    assert min(outcomes["taken over"], kills, outcomes["pauses"], outcomes["closes"]) >= ended // 200


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("backend", ["sqlite", "nats"])
async def test_workers_that_are_paused_most_of_the_time(storm):
    """Some calls are delayed past the lease; each is proved to be one (`tests/tasks/call_evidence.py`)."""
    ended, outcomes, _ = await storm(1000, 0.1, ("pause", "pause", "pause", "kill"))
    assert min(outcomes["taken over"], outcomes["pauses"]) >= ended // 25


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_orchestrators_that_are_closed_and_paused_in_memory(monkeypatch):
    """The same in one process: orchestrators are closed at random; a cancelled run stands for a pause."""
    count, dice, effects = int(os.environ.get("CHAOS_TASKS", "5000")), random.Random(3), Counter()
    async with (
        await stores.open("memory:") as store,
        Orchestrator(store=store, worker=False, keep=None) as client,
    ):
        for number in range(count):
            await client.submit("pay" if number % 2 else "keyed", agent="worker", id=f"t{number}")
        workers = []
        open_ids = {f"t{number}" for number in range(count)}
        while open_ids:
            while len(workers) < 3:
                workers.append(Orchestrator([counted(effects)], store=store, lease=0.5, grace=0, keep=None))
                await workers[-1].start()
            await asyncio.sleep(0.05)
            victim = workers[dice.randrange(3)]
            if dice.random() < 0.5:
                workers.remove(victim)
                await victim.close()
            else:
                for task in list(victim._worker._runs):
                    task.cancel()
            async for row in client.list():
                if row.status == "input_required" and row.in_doubt:
                    seen = effects[row.id] > 0
                    await client.verify(row.id, happened=seen, result="seen" if seen else None)
                elif row.status in ENDED:
                    open_ids.discard(row.id)
        for worker in workers:
            await worker.close()
    assert len(effects) == count
    assert [id for id, n in effects.items() if n > 1 and int(id[1:]) % 2] == []


def counted(effects):
    agent = Agent("worker")

    @agent.capability
    async def pay(payload, ctx):
        effects[ctx.task] += 1
        await asyncio.sleep(random.random() * 0.05)
        return "paid"

    @agent.capability(keyed=True)
    async def keyed(payload, ctx):
        effects[ctx.task] += 1
        await asyncio.sleep(random.random() * 0.05)
        return "paid"

    return agent
