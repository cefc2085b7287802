"""One attempt of a capability, and what its failure is in the task vocabulary."""

import asyncio

import pytest

from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault
from amends.errors import FaultError
from amends.errors import task as errors
from amends.tasks import Agent
from amends.tasks.context import Context
from amends.tasks.faults import to_task_fault
from amends.tasks.journal import Fenced


def prepared(function, **options):
    agent = Agent("worker", **options.pop("agent", {}))
    agent.capability("work", **options)(function)
    return (
        agent,
        agent.capabilities["work"],
        Context(task="t", agent="worker", capability="work", key="t/work"),
    )


async def fault_of(function, *, timeout=None, payload=None, **options):
    agent, capability, ctx = prepared(function, **options)
    with pytest.raises(FaultError) as raised:
        await agent.perform(capability, payload, ctx, timeout)
    return raised.value.fault, ctx


async def test_a_result_reads_back_from_json():
    agent, capability, ctx = prepared(lambda payload: (payload, {1}))
    assert await agent.perform(capability, 5, ctx) == [5, [1]]
    assert ctx.called


async def test_a_time_out():
    """The step may have happened once the capability was called."""

    async def hang(payload):
        await asyncio.sleep(60)

    fault, _ = await fault_of(hang, timeout=0.01)
    assert (fault.code, fault.executed, fault.details["timeout_ms"]) == ("TIMEOUT", Executed.MAYBE, 10)

    async def own(payload):
        raise TimeoutError

    assert "timeout_ms" not in (await fault_of(own, timeout=5))[0].details


async def test_what_was_not_called():
    """An input that does not fit, and a hold that is lost."""

    def typed(payload: int):
        raise AssertionError("it was called")

    fault, ctx = await fault_of(typed, payload="x")
    assert (fault.code, ctx.called) == ("INVALID_INPUT", False)
    agent, capability, ctx = prepared(typed)

    async def lost():
        raise Fenced

    with pytest.raises(Fenced):
        await agent.perform(capability, 1, ctx, hold=lost)
    assert not ctx.called


async def test_all_threads_are_in_use():
    """The agent is busy, and the step did not happen."""
    import threading

    gate = threading.Event()
    agent, capability, ctx = prepared(lambda payload: gate.wait(20), agent={"threads": 1})
    first = asyncio.ensure_future(agent.perform(capability, 1, ctx))
    await asyncio.sleep(0)
    other = Context(task="u", agent="worker", capability="work", key="u/work")
    with pytest.raises(FaultError) as busy:
        await agent.perform(capability, 1, other)
    assert (busy.value.fault.code, other.called) == ("AGENT_BUSY", False)
    gate.set()
    await first


async def test_a_cancellation_of_something_else():
    """The capability awaited something that was cancelled; the attempt itself was not."""

    async def awaits(payload):
        inner = asyncio.ensure_future(asyncio.sleep(60))
        inner.cancel()
        await inner

    fault, _ = await fault_of(awaits)
    assert fault.recovery is Recovery.TERMINAL


@pytest.mark.parametrize(
    ("raised", "code", "recovery"),
    [
        (errors.AgentBusyError(), "AGENT_BUSY", Recovery.TRANSIENT),
        (ValueError("secret"), "INTERNAL_ERROR", Recovery.UNCERTAIN),
        (OSError("secret"), None, None),
        (
            FaultError.from_fault(Fault(code="KNOWLEDGE_NOT_FOUND", vocabulary="cli")),
            "KNOWLEDGE_NOT_FOUND",
            None,
        ),
        (
            FaultError.from_fault(Fault(code="RATE_LIMITED", vocabulary="http")),
            "RATE_LIMITED",
            Recovery.TRANSIENT,
        ),
    ],
)
def test_any_exception(raised, code, recovery):
    """It gets a code and its context, and a foreign text never leaves the process."""
    fault = to_task_fault(raised, "worker", "work")
    assert fault.vocabulary == "task"
    assert code in {None, fault.code}
    assert recovery in {None, fault.recovery}
    assert "secret" not in repr(fault)
    assert fault.details["context"] == {"agent": "worker", "capability": "work"}


async def test_connecting_what_is_required():
    agent = Agent("worker", mcp={"notion": lambda: None})
    agent.capability("work", requires=["notion"])(lambda payload: None)
    with pytest.raises(errors.McpNotConnectedError) as missing:
        await agent.connect(agent.capabilities["work"], Context(task="t", agent="worker", capability="work"))
    assert missing.value.fault.details["requiredBy"] == "worker"


@pytest.mark.parametrize("read_only", [False, True])
async def test_a_failure_of_the_capabilitys_own_code(read_only):
    """M3: a missing file says nothing about what the capability did before; one that only reads did nothing."""

    def work(payload):
        raise FileNotFoundError(2, "receipt.txt")

    fault, _ = await fault_of(work, read_only=read_only)
    assert (fault.recovery, fault.executed) == ("terminal", "no" if read_only else "maybe")
