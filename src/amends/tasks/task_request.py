"""Build the first record of a task's log from what was submitted: a capability and its input, a request document, or a plan."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from amends.errors.base import FaultError
from amends.errors.task import InvalidFieldValueError, InvalidInputError
from amends.tasks.documents import Request, parse_time, seconds_of
from amends.tasks.entries import Submitted, json_round_trip
from amends.tasks.plan import Step, graph
from amends.tasks.registry import Registry

__all__ = ["build_submission", "to_json_value"]


def build_submission(
    registry: Registry,
    task: Any,
    payload: Any,
    *,
    id: str | None,
    agent: str | None,
    retry_policy: dict[str, Any] | None,
    deadline: float | timedelta | str | None,
    key: str | None,
) -> Submitted:
    """
    Build the record of a submission; the arguments are those of `Orchestrator.submit`.

    Raises:
        FaultError: the request is invalid.
    """
    now = registry.clock()
    if isinstance(task, tuple | list):
        record = _plan(registry, task, now)
    else:
        record = _single(registry, task, payload, agent, now)
    return replace(
        record,
        id=id or record.id or str(uuid4()),
        retry_policy=record.retry_policy if retry_policy is None else retry_policy,
        until=record.until if deadline is None else _until(deadline, now),
        key=record.key if key is None else key,
    )


def to_json_value(value: Any) -> Any:
    """
    Return a value as it reads back from the log.

    Raises:
        FaultError: INVALID_INPUT if the caller passed a value that cannot be written as JSON.
    """
    try:
        return json_round_trip(value)
    except (TypeError, ValueError, msgspec.MsgspecError):
        raise InvalidInputError("The value cannot be written as JSON") from None


def _single(registry: Registry, task: Any, payload: Any, agent: str | None, now: float) -> Submitted:
    if isinstance(task, str) and not task.lstrip().startswith("{"):
        request = Request(id="", type=task, payload=payload, agent=agent)
    else:
        request = Request.read(task)
    step = Step(
        name=request.type.replace(">", "") or "step",
        type=request.type,
        payload=to_json_value(request.payload),
        agent=agent or request.agent or _agent_for(registry, request.type),
    )
    return Submitted(
        at=now,
        id=request.id,
        type=request.type,
        steps=(step,),
        agent=step.agent,
        retry_policy=request.retry_policy,
        until=parse_time(request.deadline),
        key=request.idempotency_key,
    )


def _plan(registry: Registry, steps: Sequence[Any], now: float) -> Submitted:
    if not all(isinstance(step, Step) for step in steps):
        raise TypeError("a plan must consist of Steps: use sequence(), fan_out() or graph()")
    checked = tuple(
        replace(
            step, payload=to_json_value(step.payload), agent=step.agent or _agent_for(registry, step.type)
        )
        for step in graph(steps)
    )
    return Submitted(at=now, id="", type="plan", steps=checked, single=False)


def _agent_for(registry: Registry, type: str) -> str | None:
    try:
        return registry.agent_for(type, None).name
    except FaultError:
        return None  # another process may have the agent


def _until(deadline: float | timedelta | str, now: float) -> float:
    if isinstance(deadline, str):
        at = parse_time(deadline)
        if at is None:
            raise InvalidFieldValueError("A deadline must be an RFC 3339 time", field="/deadline")
        return at
    return now + seconds_of(deadline)
