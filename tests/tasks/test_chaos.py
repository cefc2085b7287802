"""Workers killed at random, over flaky agents: nothing is lost, nothing finished is done again, undone is undone."""

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from contextlib import AsyncExitStack, closing

import pytest

from amends.tasks import Orchestrator, entries
from amends.tasks.documents import ENDED
from amends.tasks.task_reader import log_name
from tests.tasks.chaos import LEASE, POLICY, Ledger, address, plan

_BETWEEN = 5
"""Steps that begin between two kills."""
_LAST_BEGINS = "SELECT task, step, max(at) FROM begins GROUP BY 1, 2"


class Crew:
    """Real worker processes, killed and replaced."""

    def __init__(self, arguments, size):
        self.arguments, self.kills = arguments, 0
        self.workers = [self.hire() for _ in range(size)]

    def hire(self):
        return subprocess.Popen(
            [sys.executable, "-m", "tests.tasks.chaos", *self.arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def kill_one(self, dice):
        """Whichever: idle, at work, or not yet up."""
        victim = dice.randrange(len(self.workers))
        os.kill(self.workers[victim].pid, signal.SIGKILL)
        self.workers[victim].wait()
        self.workers[victim] = self.hire()
        self.kills += 1

    def dismiss(self):
        for worker in self.workers:
            if worker.poll() is None:
                os.kill(worker.pid, signal.SIGKILL)
            worker.wait()


async def run(path, count, crew_size, every, url=None):
    """Submit, kill, answer what only a person can, until everything is over."""
    dice = random.Random(7)
    async with AsyncExitStack() as stack:
        ledger = stack.enter_context(closing(Ledger(path)))
        client = await stack.enter_async_context(
            Orchestrator(store=url or address(path), worker=False, policy=POLICY, lease=LEASE, keep=None)
        )
        ids = [f"task-{n}" for n in range(count)]
        crew = Crew([path] if url is None else [path, url], crew_size)
        try:
            for id in ids:
                task = plan(int(id.partition("-")[2]))
                await client.submit(task, agent="flaky" if isinstance(task, str) else None, id=id)
            open_ones, begun = set(ids), 0
            while open_ones:
                await asyncio.sleep(every * (0.5 + dice.random()))
                # Where starting takes longer than that, nobody would ever get to work.
                ((begins,),) = ledger.rows("SELECT count(*) FROM begins")
                if len(open_ones) > count // 10 and begins >= begun + _BETWEEN:
                    crew.kill_one(dice)
                    begun = begins
                open_ones -= await over(client, ledger)
        finally:
            crew.dismiss()
        return await judged(client, ledger, ids), crew.kills


async def over(client, ledger):
    """The tasks that have ended; those that wait for a person who can look are answered."""
    found = set()
    async for listed in client.list():
        if listed.status in ENDED:
            found.add(listed.id)
        elif listed.status == "input_required":
            state = await client.state(listed.id)
            wanted = state.wanted()
            if wanted is not None:
                did = ledger.did(listed.id, wanted["step"])
                result = "seen" if did else None
                await client.verify(listed.id, happened=did, result=result, step=wanted["step"])
    return found


async def judged(client, ledger, ids):
    """Look at every log and every table; the number of tasks by status, and of workers lost."""
    outcomes = Counter()
    undos = Counter((task, step, key) for task, step, key in ledger.rows("SELECT * FROM undos"))
    effects = Counter(ledger.rows("SELECT * FROM effects"))
    assert ledger.rows("SELECT * FROM begins WHERE again") == [], "a finished step ran again"
    begun = {(task, step): at for task, step, at in ledger.rows(_LAST_BEGINS)}
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
        again = [r.step for r in done if begun.get((id, r.step), 0.0) > r.at]
        assert again == [], f"{id} ran what was finished"
        booked = [step for step in finished if step in {"hotel", "flight", "car", "book"}]
        for step in booked:
            assert effects[id, step, 0] == 1, "an effect in the transaction, or by its key, happens once"
            undone = undos[id, step, f"{id}/{step}/undo"]
            if ends[0].status == "failed":
                assert undone >= 1, f"{id} left {step} behind"
                assert effects[id, step, 1] == 1, "so does its undoing"
            else:
                assert undone == effects[id, step, 1] == 0
    # What must not happen twice did not: a person or a look said so before any repeat.
    twice = ledger.rows("SELECT task, step, count(*) AS n FROM deeds GROUP BY 1, 2 HAVING n > 1")
    for task, step, _ in twice:
        at = f"at FROM begins WHERE task = '{task}' AND step = '{step}'"
        done = f"at FROM deeds WHERE task = '{task}' AND step = '{step}'"
        print(task, ledger.rows(f"SELECT 'begun', {at} UNION SELECT 'done', {done} ORDER BY 2"))
        print(*(await client.records(task)), sep="\n")
    assert twice == []
    return outcomes


async def test_killed_workers(tmp_path):
    """Every task ends exactly once, whoever dies when."""
    outcomes, kills = await run(f"{tmp_path}/chaos.db", 96, crew_size=3, every=0.45)
    assert outcomes["completed"] + outcomes["failed"] == 96
    assert outcomes["failed"] >= 16
    assert kills >= 3
    assert outcomes["taken over"] >= 1


@pytest.mark.soak
async def test_a_thousand_tasks_and_killed_workers(tmp_path):
    """The same, for longer."""
    outcomes, kills = await run(f"{tmp_path}/chaos.db", 1000, crew_size=4, every=0.6)
    print(outcomes, kills)
    assert outcomes["completed"] + outcomes["failed"] == 1000
    assert outcomes["taken over"] >= 10
    assert kills >= 10


@pytest.mark.soak
async def test_killed_workers_on_nats(tmp_path, nats_server):
    """No transactions there: the log's compare-and-set alone keeps all the same promises but the shared effect."""
    url = f"{nats_server.url}/chaos"
    outcomes, kills = await run(f"{tmp_path}/ledger.db", 300, crew_size=3, every=0.6, url=url)
    print(outcomes, kills)
    assert outcomes["completed"] + outcomes["failed"] == 300
    assert outcomes["taken over"] >= 5
    assert kills >= 5
