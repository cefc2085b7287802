"""The outcome of a thread that ended after its step was given up."""

import asyncio
from concurrent.futures import Future

import pytest

from amends.core.enums import Executed
from amends.errors import task as errors
from amends.tasks import Agent, entries
from amends.tasks.journal import log_name
from amends.tasks.late_results import LateResults
from tests.tasks.conftest import wait_until


@pytest.fixture
async def doubted(manual):
    """A task whose step is in doubt."""
    agent = Agent("worker")

    @agent.capability
    async def work(payload):
        return "again"

    manual.register(agent)
    await manual.submit("work", id="t")
    records = [entries.Doubted(at=1.0, step="work"), entries.Released(at=1.0)]
    await manual.store.log(log_name("tasks", "t")).append(entries.encode(records))
    return manual


def started():
    thread = Future()
    thread.set_running_or_notify_cancel()
    return thread


async def unknown():
    return None


def watch(late, manual, thread, verify=unknown, id="t"):
    def record(happened, result):
        return manual.verify(id, happened=happened, result=result, step="work")

    late.watch(thread, record, verify)


@pytest.mark.parametrize(
    ("outcome", "verified", "recorded"),
    [
        ("done", None, (True, "done")),
        (errors.AgentBusyError(executed=Executed.NO), None, (False, None)),
        (OSError(), False, (False, None)),
        (OSError(), "seen", (True, "seen")),
        (SystemExit(), None, None),
        (OSError(), None, None),
    ],
)
async def test_the_outcome_is_recorded(doubted, outcome, verified, recorded):
    """What the thread returned, or what `verify` finds after it failed; nothing if that is unknown."""
    late, thread = LateResults(), started()

    async def verify():
        return verified

    watch(late, doubted, thread, verify)
    watch(late, doubted, thread, verify)
    assert len(late._watched) == 1
    if isinstance(outcome, BaseException):
        thread.set_exception(outcome)
    else:
        thread.set_result(outcome)
    await wait_until(lambda: not late._watched)
    last = (await doubted.records("t"))[-1]
    found = (last.happened, last.result) if isinstance(last, entries.Verified) else None
    assert found == recorded


async def test_it_waits_until_the_doubt_is_recorded(manual):
    """The thread may end before its step is given up in the log."""
    agent = Agent("worker")
    agent.capability("work")(lambda payload: None)
    manual.register(agent)
    await manual.submit("work", id="t")
    late, thread = LateResults(), started()
    watch(late, manual, thread)
    thread.set_result("done")
    await asyncio.sleep(0.01)
    await manual.store.log(log_name("tasks", "t")).append(
        entries.encode([entries.Doubted(at=1.0, step="work")])
    )
    await wait_until(lambda: not late._watched)
    assert (await manual.records("t"))[-1].result == "done"


async def test_a_task_that_is_gone(manual):
    late, thread = LateResults(), started()
    watch(late, manual, thread, id="no such task")
    thread.set_result("done")
    await wait_until(lambda: not late._watched)


async def test_closing_waits_for_no_thread(manual):
    late, thread = LateResults(), started()
    watch(late, manual, thread)
    await asyncio.wait_for(late.close(), 5)
    assert not late._watched
