"""Functions that are not async run in threads of their agent: bounded, and a step is in doubt while its thread runs."""

import asyncio
import subprocess
import sys
import threading
import time

import pytest

from amends.errors import task as errors
from amends.tasks import Agent
from amends.tasks.invoke import NoThreadError, Threads
from tests.tasks.conftest import wait_until


@pytest.fixture
def release():
    """Lets all threads of a test end."""
    event = threading.Event()
    yield event
    event.set()


async def test_a_later_call_waits_for_the_thread_that_is_running(release):
    threads, ran = Threads(), []

    def work():
        ran.append(1)
        release.wait(30)
        return "done"

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await threads.run("key", work)
    assert threads.running("key") is not None
    later = asyncio.ensure_future(threads.run("key", work))
    await asyncio.sleep(0)
    release.set()
    assert (await later, ran, threads.running("key")) == ("done", [1], None)


async def test_the_number_of_threads_is_bounded(release):
    threads = Threads(2)
    held = [asyncio.ensure_future(threads.run(number, release.wait, 30)) for number in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(NoThreadError):
        await threads.run("more", time.time)
    waiting = asyncio.ensure_future(threads.run("more", lambda: "ran", wait=True))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    release.set()
    assert await waiting == "ran"
    await asyncio.gather(*held)
    with pytest.raises(ValueError, match="thread"):
        Threads(0)


async def test_each_agent_has_its_own_threads(open_orchestrator, release):
    """An agent whose threads all hang does not stop another agent; its own tasks wait, and that is not an attempt."""
    full, free = Agent("full", threads=1), Agent("free")

    @full.capability(read_only=True)
    def hang(payload):
        release.wait(30)
        return "ended"

    @free.capability(read_only=True)
    def quick(payload):
        return threading.current_thread().daemon

    orchestrator = await open_orchestrator(full, free)
    first = await orchestrator.submit("hang", id="a")
    await wait_until(lambda: full.threads._running)
    second = await orchestrator.submit("hang", id="b")
    assert (await asyncio.wait_for(orchestrator.run("quick"), 20)).result is True

    async def parked():
        return any(type(r).__name__ == "Parked" for r in await orchestrator.records("b"))

    await wait_until(parked)
    release.set()
    assert (await asyncio.wait_for(first.wait(), 20)).result == "ended"
    assert (await asyncio.wait_for(second.wait(), 20)).result == "ended"
    assert len((await orchestrator.state("b")).steps["hang"].stepper.history) == 1


async def test_a_step_is_in_doubt_until_its_thread_ends(open_orchestrator, release):
    effects, agent = [], Agent("worker")

    @agent.capability(timeout=0.05)
    def pay(payload):
        release.wait(30)
        effects.append(1)
        return "paid"

    orchestrator = await open_orchestrator(agent)
    handle = await orchestrator.submit("pay", id="t")
    response = await asyncio.wait_for(handle.wait(), 20)
    assert (response.status, response.input["kind"], effects) == ("input_required", "verify", [])
    release.set()

    async def over():
        return (await handle.response()).ok

    await wait_until(over)
    assert ((await handle.response()).result, effects) == ("paid", [1])


@pytest.mark.parametrize(
    ("error", "verify", "status"),
    [
        (ValueError("?"), None, "input_required"),
        (ValueError("?"), "seen", "completed"),
        (errors.KnowledgeNotFoundError(), None, "completed"),
    ],
)
async def test_a_thread_that_ends_late_with_an_exception(open_orchestrator, release, error, verify, status):
    """`verify` is asked when the thread has ended, and not before."""
    ended, calls, asked, agent = [], [], [], Agent("worker")

    def check(payload, ctx):
        asked.append(list(ended))
        return verify

    @agent.capability(timeout=0.05, verify=check if verify else None)
    def pay(payload):
        calls.append(1)
        if len(calls) > 1:
            return "again"
        release.wait(30)
        ended.append(1)
        raise error

    orchestrator = await open_orchestrator(agent)
    handle = await orchestrator.submit("pay", id="t")
    await asyncio.wait_for(handle.wait(), 20)
    release.set()

    async def settled():
        return (await handle.response()).status == status and not orchestrator._registry.late_results._watched

    await wait_until(settled)
    assert all(each == [1] for each in asked)
    if status == "completed":
        assert (await handle.response()).result == (verify or "again")


async def test_a_repeatable_step_waits_for_its_thread(open_orchestrator, release):
    """After a time-out, the next attempt takes the result of the thread that is still running."""
    effects, at_once, agent = [], [], Agent("worker")

    @agent.capability(idempotent=True, timeout=0.05)
    def pay(payload):
        effects.append(1)
        release.wait(30)
        at_once.append(len(agent.threads._running))
        return "paid"

    orchestrator = await open_orchestrator(agent)
    policy = {"maxAttempts": 100, "backoffType": "constant", "initialDelay": 10}
    handle = await orchestrator.submit("pay", id="t", retry_policy=policy)

    async def retried():
        return len((await orchestrator.state("t")).steps["pay"].stepper.history) >= 2

    await wait_until(retried)
    assert effects == [1]
    release.set()
    assert (await asyncio.wait_for(handle.wait(), 20)).result == "paid"
    assert set(at_once) == {1}


SCRIPT = """
import asyncio, time
from amends.tasks import Agent, Orchestrator
agent = Agent("worker")

@agent.capability(read_only=True, timeout=0.05)
def hang(payload):
    time.sleep(600)

async def main():
    async with Orchestrator([agent], grace=0) as orchestrator:
        await orchestrator.run("hang", retry_policy={"maxAttempts": 1})
    print("closed")

asyncio.run(main())
"""


def test_the_process_does_not_wait_for_its_threads():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, timeout=60, check=True)
    assert done.stdout.strip() == b"closed"
