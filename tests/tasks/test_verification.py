"""Whether an interrupted step happened: by `verify`, by its promises, or unknown."""

import threading

import pytest

from amends.tasks import Agent, entries
from amends.tasks.entries import Doubted, Verified
from amends.tasks.journal import Journal, log_name, read_task
from amends.tasks.run import Run

ANSWERS = [
    ("a result", Verified(at=0.0, step="work", happened=True, result="a result")),
    (False, Verified(at=0.0, step="work", happened=False)),
    (None, Doubted(at=0.0, step="work")),
    (object(), Doubted(at=0.0, step="work")),
    (ZeroDivisionError(), Doubted(at=0.0, step="work")),
]


async def verification(manual, function=lambda payload: None, began="", **options):
    """The verification of a task whose worker was lost after it had begun the step under the promises `began`."""
    agent = Agent("worker")
    agent.capability("work", **options)(function)
    manual.register(agent)
    await manual.submit("work", agent="worker", id="t")
    started = entries.Started(at=1.0, step="work", attempt=1, promises=began)
    await manual.store.log(log_name("tasks", "t")).append(entries.encode([started]))
    lease = await manual.store.queue("tasks", lease=30).take()
    journal = Journal(manual.store, "tasks", await read_task(manual.store, "tasks", "t"), lease)
    return Run(manual._registry, journal)._attempts


def without_time(record):
    return {name: getattr(record, name) for name in record.__struct_fields__ if name != "at"}


@pytest.mark.parametrize(("answer", "expected"), ANSWERS)
async def test_what_verify_returns(manual, answer, expected):
    def verify(payload, ctx):
        if isinstance(answer, Exception):
            raise answer
        return answer

    found = await (await verification(manual, verify=verify)).resolve("work")
    assert type(found) is type(expected)
    assert without_time(found) == without_time(expected)


@pytest.mark.parametrize(
    ("options", "began", "repeats", "kind"),
    [
        ({"idempotent": True}, "idempotent", True, Verified),
        ({"idempotent": True}, "idempotent", False, Doubted),
        ({"idempotent": True}, "", True, Doubted),
        ({"idempotent": True}, "keyed", True, Doubted),
        ({"keyed": True}, "read_only", True, Verified),
        ({}, "", True, Doubted),
    ],
)
async def test_without_verify(manual, options, began, repeats, kind):
    """A step may run again if it began under the promises that it has now, or changed nothing."""
    found = await (await verification(manual, began=began, **options)).resolve("work", repeats=repeats)
    assert isinstance(found, kind)
    assert not getattr(found, "happened", False)


async def test_a_step_without_its_agent(manual):
    """It cannot be checked here."""
    check = await verification(manual, read_only=True)
    manual._registry.agents.clear()
    assert isinstance(await check.resolve("work"), Doubted)
    assert await check.changed_promises("work") is False


async def test_a_thread_that_still_runs(manual):
    """Its step is in doubt, whatever `verify` would return now."""
    gate, asked = threading.Event(), []
    check = await verification(
        manual, lambda payload: gate.wait(20), verify=lambda payload, ctx: asked.append(1)
    )
    agent = manual.agents["worker"]
    from amends.tasks.invoke import thread_key

    key = thread_key(agent.capabilities["work"].call, "t/work")
    agent.threads._start(key, gate.wait, (20,))
    assert isinstance(await check.resolve("work"), Doubted)
    assert asked == []
    gate.set()
    await manual._registry.late_results.close()
