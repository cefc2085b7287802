"""Functions of agents, and exceptions that must not end the worker."""

import sys

import pytest

from amends.tasks import Agent
from amends.tasks.invoke import FunctionExitedError, Threads, invoke


class Odd(BaseException):
    """An exception that is no Exception."""


def recurse():
    return recurse()


def leave():
    sys.exit(3)


def odd():
    raise Odd


@pytest.mark.parametrize("function", [leave, odd])
@pytest.mark.parametrize("sync", [True, False])
async def test_an_exception_that_would_end_the_worker(function, sync):
    async def later():
        function()

    with pytest.raises(FunctionExitedError):
        await invoke(function if sync else later, threads=Threads(), key="k")


@pytest.mark.parametrize("function", [leave, odd, recurse])
@pytest.mark.parametrize("sync", [True, False])
async def test_it_fails_the_task_and_not_the_worker(manual, function, sync):
    agent = Agent("worker")

    if sync:

        @agent.capability
        def work(payload):
            return function() if payload == "bad" else "fine"
    else:

        @agent.capability
        async def work(payload):
            return function() if payload == "bad" else "fine"

    manual.register(agent)
    bad, fine = await manual.submit("work", "bad"), await manual.submit("work", "fine")
    await manual.drain()
    assert (await bad.response()).error.code == "INTERNAL_ERROR"
    assert (await fine.response()).result == "fine"


@pytest.mark.parametrize("hook", ["verify", "undo", "fallback"])
async def test_hooks_do_not_end_the_worker_either(manual, hook):
    from amends.errors.task import AgentUnavailableError, KnowledgeNotFoundError
    from amends.tasks import Step, sequence

    agent = Agent("worker")

    @agent.capability(**{hook: lambda *_: leave()})
    async def work(payload):
        if payload == "bad":
            raise AgentUnavailableError if hook == "verify" else KnowledgeNotFoundError

    manual.register(agent)
    plan = sequence(Step(name="a", type="work"), Step(name="b", type="work", payload="bad"))
    handle = await manual.submit(plan, retry_policy={"maxAttempts": 1})
    await manual.drain()
    assert not (await handle.response()).ok
