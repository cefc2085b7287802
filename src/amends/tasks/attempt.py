"""
One try of one capability (T4): check the input, connect what is needed, call, and say what went wrong in S3's words.

What an exception says is never passed on: its own text stays in this process's log. A fault that another agent, tool or
service stated is translated into the task vocabulary, with its context added and its original code kept.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import msgspec
from msgspec.structs import replace

from amends.core.crosswalk import transfer
from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault
from amends.core.vocabulary import row_for
from amends.errors import CancelledError
from amends.errors.base import FaultError
from amends.errors.task import TimeoutError as TaskTimeoutError
from amends.foreign import from_exception
from amends.serving.server_errors import find_fault_error
from amends.tasks.agent import Agent
from amends.tasks.capability import Capability, called
from amends.tasks.context import Context, Question
from amends.tasks.documents import Metadata, Request, Response, Status
from amends.tasks.entries import stored

__all__ = ["answer", "connect", "perform", "wrapped"]

_log = logging.getLogger("amends.tasks")


async def perform(
    agent: Agent,
    capability: Capability,
    payload: Any,
    ctx: Context,
    timeout: float | None = None,  # noqa: ASYNC109
) -> Any:
    """
    The result of one call, as JSON gives it back.

    Raises:
        FaultError: in the task vocabulary.
        Question: it cannot go on without an answer.
    """
    try:
        given = payload if capability.check is None else capability.check(payload)
        await connect(agent, capability, ctx)
        if timeout is None:
            result = await agent.working(lambda: called(capability.call, given, ctx))
        else:
            result = await _within(timeout, agent, capability, given, ctx)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # Nobody cancelled us: something inside the call was, and it let that out.
        raise FaultError.from_fault(wrapped(CancelledError(), agent.name, capability.name)) from None
    except Exception as exc:
        raise FaultError.from_fault(wrapped(exc, agent.name, capability.name)) from exc
    try:
        return stored(result)
    except (TypeError, ValueError, msgspec.MsgspecError) as exc:
        _log.exception("%s/%s gave a result that cannot be kept", agent.name, capability.name)
        raise FaultError.from_fault(_unkept(agent.name, capability.name)) from exc


async def connect(agent: Agent, capability: Capability, ctx: Context) -> None:
    """
    Connect the MCP servers a capability needs, and put them into its context.

    Raises:
        FaultError: one of them is missing.
    """
    if capability.requires:
        ctx.mcp = {
            name: await agent.connections.connected(name, capability.name) for name in capability.requires
        }


async def _within(seconds: float, agent: Agent, capability: Capability, given: Any, ctx: Context) -> Any:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await agent.working(lambda: called(capability.call, given, ctx))
    except TimeoutError:
        if not limit.expired():
            raise  # somebody else's time was over, within ours
        raise TaskTimeoutError(details={"timeout_ms": round(seconds * 1000)}) from None


def wrapped(exc: Exception, agent: str, capability: str) -> Fault:
    """Any exception as a fault of S3, with its context (T4). What nobody expected is logged here, and only here."""
    raised = find_fault_error(exc)
    if raised is None:
        _log.error("%s/%s raised %s", agent, capability, type(exc).__name__, exc_info=exc)
        told = _foreign(from_exception(exc))
    else:
        told = transfer(raised.fault, "task")
    details = dict(told.details or {})
    if "requiredBy" not in details:
        details.setdefault("context", {"agent": agent, "capability": capability})
    return replace(told, details=details, message=told.message or row_for("task", told.code).message)


def _foreign(fault: Fault) -> Fault:
    """
    What went wrong inside an agent, as whoever asked it should hear it.

    That a library or a service refused what the agent sent it is no mistake of the asker's, and the same task makes it again.
    What decides is kept of the rest; the words, members and addresses are the other service's.
    """
    if fault.recovery is Recovery.CORRECTABLE:
        return Fault(
            code="INTERNAL_ERROR", vocabulary="task", recovery=Recovery.TERMINAL, executed=fault.executed
        )
    told = transfer(fault, "task")
    return Fault(
        code=told.code,
        vocabulary="task",
        recovery=told.recovery,
        executed=told.executed,
        actor=told.actor,
        retry_after=told.retry_after,
    )


def _unkept(agent: str, capability: str) -> Fault:
    # It was done, and repeating it gives the same thing that cannot be written down.
    return Fault(
        code="INTERNAL_ERROR",
        vocabulary="task",
        message="The result cannot be written as JSON",
        recovery=Recovery.TERMINAL,
        executed=Executed.YES,
        details={"context": {"agent": agent, "capability": capability}},
    )


async def answer(agent: Agent, document: Any) -> Response:
    """See `Agent.handle`."""
    began = time.time()
    given = document.get("id") if isinstance(document, dict) else None
    id = given if isinstance(given, str) else ""
    told = Metadata(started=began, agent=agent.name)
    try:
        request = Request.read(document)
        id = request.id
        capability = await agent.find(request.type)
        ctx = Context(
            task=id,
            agent=agent.name,
            capability=capability.name,
            step=capability.name,
            key=request.idempotency_key or id,
        )
        result = await perform(agent, capability, request.payload, ctx, capability.timeout)
    except FaultError as error:
        done = replace(told, completed=time.time())
        return Response(id=id, status=Status.FAILED, error=error.fault, metadata=done)
    except Question as asked:
        wanted = {"step": ctx.step, "kind": "answer", "question": asked.question}
        return Response(id=id, status=Status.INPUT_REQUIRED, input=wanted, metadata=told)
    return Response(
        id=id, status=Status.COMPLETED, result=result, metadata=replace(told, completed=time.time())
    )
