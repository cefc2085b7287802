"""
One attempt of one capability (T4): check the input, connect the MCP servers it requires, call it, and classify a failure.

The text of an exception is only written to this process's log. A fault that another agent, tool or service reported is
translated into the task vocabulary; its context is added and its original code kept.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from msgspec.structs import replace

from amends.core.crosswalk import transfer
from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault
from amends.core.vocabularies.task import VOCABULARY as TASK_CODES
from amends.core.vocabulary import row_for
from amends.errors import CancelledError
from amends.errors.base import FaultError
from amends.errors.task import AgentBusyError
from amends.errors.task import TimeoutError as TaskTimeoutError
from amends.foreign import from_exception
from amends.serving.server_errors import find_fault_error, is_about_a_part
from amends.serving.tracing import id_of, incoming
from amends.tasks.capability import Capability
from amends.tasks.connections import Connections
from amends.tasks.context import Context, Question
from amends.tasks.documents import Metadata, Request, Response, Status
from amends.tasks.invoke import invoke
from amends.tasks.threads import NoThreadError, Threads
from amends.tasks.values import UnstorableError, to_json_value

__all__ = ["AgentParts", "connect", "handle_request", "perform", "to_task_fault"]

_log = logging.getLogger("amends.tasks")
_BUSY_SECONDS = 1.0
_SHARED = frozenset({"TIMEOUT", "RATE_LIMITED", "INTERNAL_ERROR"})


class AgentParts(Protocol):
    """What an attempt uses of an agent."""

    name: str
    connections: Connections
    threads: Threads

    async def find(self, type: str) -> Capability:
        """See `Agent.find`."""
        ...

    async def run_limited(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """See `Agent.run_limited`."""
        ...


async def perform(
    agent: AgentParts,
    capability: Capability,
    payload: Any,
    ctx: Context,
    timeout: float | None = None,  # noqa: ASYNC109
    hold: Callable[[], Awaitable[None]] | None = None,
) -> Any:
    """
    Call a capability once and return its result as it reads back from JSON.

    Args:
        agent: the agent.
        capability: its capability.
        payload: the input.
        ctx: the context of the attempt.
        timeout: seconds for the attempt.
        hold: checks immediately before the call whether this worker may still make it.

    Raises:
        FaultError: the failure, in the task vocabulary.
        Question: the capability needs an answer.
    """
    limit = asyncio.timeout(timeout)

    async def call() -> Any:
        if hold is not None:
            await hold()
        ctx.called = True
        return await invoke(
            capability.call, value, ctx, threads=agent.threads, key=ctx.key or ctx.task, wait=False
        )

    try:
        value = payload if capability.check is None else capability.check(payload)
        async with limit:
            await connect(agent, capability, ctx)
            result = await agent.run_limited(call)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # This task was not cancelled: the capability raised the CancelledError of something it awaited.
        raise FaultError.from_fault(to_task_fault(CancelledError(), agent.name, capability.name)) from None
    except Exception as exc:
        raised: Exception = exc
        if limit.expired() and isinstance(exc, TimeoutError) and timeout is not None:
            raised = TaskTimeoutError(
                details={"timeout_ms": round(timeout * 1000)},
                executed=Executed.MAYBE if ctx.called else Executed.NO,
            )
        elif isinstance(exc, NoThreadError):
            ctx.called = False
            raised = AgentBusyError(details={"agent": agent.name}, retry_after=_BUSY_SECONDS)
        fault = _inside(to_task_fault(raised, agent.name, capability.name), raised, capability)
        raise FaultError.from_fault(fault) from exc
    try:
        return to_json_value(result)
    except UnstorableError as problem:
        _log.error("%s/%s: the result cannot be stored: %s", agent.name, capability.name, problem.reason)
        raise FaultError.from_fault(_unstorable_result(agent.name, capability.name, problem)) from None


async def connect(agent: AgentParts, capability: Capability, ctx: Context) -> None:
    """
    Connect the MCP servers that a capability requires, and put them into its context.

    Raises:
        FaultError: one of them cannot be connected.
    """
    if capability.requires:
        ctx.mcp = {
            name: await agent.connections.connect(name, capability.name) for name in capability.requires
        }


def to_task_fault(exc: Exception, agent: str, capability: str) -> Fault:
    """
    Convert any exception into a fault of the task vocabulary with its context (T4).

    Exceptions that are no FaultError are logged here and nowhere else.
    """
    raised = find_fault_error(exc)
    if raised is None:
        trace = id_of(incoming())
        where = f" [trace_id={trace}]" if trace else ""
        _log.error("%s/%s raised %s%s", agent, capability, type(exc).__name__, where, exc_info=exc)
        fault = _from_foreign(from_exception(exc))
    else:
        fault = transfer(_with_task_code(raised.fault), "task")
    details = dict(fault.details or {})
    if "requiredBy" not in details:
        details.setdefault("context", {"agent": agent, "capability": capability})
    return replace(fault, details=details, message=fault.message or row_for("task", fault.code).message)


def _with_task_code(fault: Fault) -> Fault:
    """
    A code of the task vocabulary that arrived in another format is kept unchanged.

    Codes that the formats share are left to the translation, which gives them the same name.
    """
    row = TASK_CODES.rows.get(fault.code)
    if fault.vocabulary == "task" or row is None or row.code in _SHARED:
        return fault
    return replace(fault, vocabulary="task")


def _from_foreign(fault: Fault) -> Fault:
    """
    Reduce the fault of a foreign exception to what the caller of the agent may see.

    If a library or service rejected what the agent sent, the caller cannot correct that, and the same task would send it again:
    such a fault becomes a terminal INTERNAL_ERROR. Of other faults only the members that decide about recovery are kept; text,
    other members and addresses belong to the other service.
    """
    if fault.recovery is Recovery.CORRECTABLE:
        return Fault(
            code="INTERNAL_ERROR", vocabulary="task", recovery=Recovery.TERMINAL, executed=fault.executed
        )
    translated = transfer(fault, "task")
    return Fault(
        code=translated.code,
        vocabulary="task",
        recovery=translated.recovery,
        executed=translated.executed,
        actor=translated.actor,
        retry_after=translated.retry_after,
    )


def _inside(fault: Fault, exc: Exception, capability: Capability) -> Fault:
    """
    The fault with what is known about the whole step (M3, "Failures from inside a handler").

    The function may have had an effect before the call that failed, whatever the called service says about that call.
    """
    if capability.relays or not is_about_a_part(exc, fault):
        return fault
    return replace(fault, executed=Executed.NO if capability.read_only else Executed.MAYBE)


def _unstorable_result(agent: str, capability: str, problem: UnstorableError) -> Fault:
    # The call was executed; a repeat would return the same unusable result.
    return Fault(
        code="INTERNAL_ERROR",
        vocabulary="task",
        message=f"The step happened, but its result cannot be stored: {problem.reason}",
        recovery=Recovery.TERMINAL,
        executed=Executed.YES,
        details={"context": {"agent": agent, "capability": capability}, "happened": True},
    )


async def handle_request(agent: AgentParts, document: Any) -> Response:
    """See `Agent.handle`."""
    began = time.time()
    given = document.get("id") if isinstance(document, Mapping) else None
    id, type = (given if isinstance(given, str) else ""), ""
    metadata = Metadata(started=began, agent=agent.name)
    try:
        request = Request.read(document)
        id, type = request.id, request.type
        capability = await agent.find(type)
        ctx = Context(
            task=id,
            agent=agent.name,
            capability=capability.name,
            step=capability.name,
            key=request.idempotency_key or id,
        )
        result = await perform(agent, capability, request.payload, ctx, capability.timeout)
    except Question as asked:
        wanted = {"step": ctx.step, "kind": "answer", "question": asked.question}
        return Response(id=id, status=Status.INPUT_REQUIRED, input=wanted, metadata=metadata)
    except Exception as exc:  # noqa: BLE001 - a remote agent may raise anything while a capability is looked up
        fault = exc.fault if isinstance(exc, FaultError) else to_task_fault(exc, agent.name, type)
        ended = replace(metadata, completed=time.time())
        return Response(id=id, status=Status.FAILED, error=fault, metadata=ended)
    return Response(
        id=id, status=Status.COMPLETED, result=result, metadata=replace(metadata, completed=time.time())
    )
