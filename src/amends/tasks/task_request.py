"""What may be handed to an orchestrator — a capability and its input, S3's document, a plan — as the first record of a log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from amends.errors.base import FaultError
from amends.errors.task import InvalidFieldValueError, InvalidInputError
from amends.tasks.documents import Request, moment, seconds_of
from amends.tasks.entries import Submitted, stored
from amends.tasks.plan import Step, graph
from amends.tasks.registry import House

__all__ = ["kept", "requested"]


def requested(
    house: House,
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
    The record of what is asked for; the arguments are those of `Orchestrator.submit`.

    Raises:
        FaultError: it cannot be understood.
    """
    now = house.clock()
    if isinstance(task, tuple | list):
        record = _plan(house, task, now)
    else:
        record = _single(house, task, payload, agent, now)
    return replace(
        record,
        id=id or record.id or str(uuid4()),
        retry_policy=record.retry_policy if retry_policy is None else retry_policy,
        until=record.until if deadline is None else _until(deadline, now),
        key=record.key if key is None else key,
    )


def kept(value: Any) -> Any:
    """
    A value as the log gives it back.

    Raises:
        FaultError: INVALID_INPUT for one that cannot be written there, which is the caller's mistake.
    """
    try:
        return stored(value)
    except (TypeError, ValueError, msgspec.MsgspecError):
        raise InvalidInputError("What was given cannot be written as JSON") from None


def _single(house: House, task: Any, payload: Any, agent: str | None, now: float) -> Submitted:
    if isinstance(task, str) and not task.lstrip().startswith("{"):
        request = Request(id="", type=task, payload=payload, agent=agent)
    else:
        request = Request.read(task)
    step = Step(
        name=request.type.replace(">", "") or "step",
        type=request.type,
        payload=kept(request.payload),
        agent=agent or request.agent or _agent_for(house, request.type),
    )
    return Submitted(
        at=now,
        id=request.id,
        type=request.type,
        steps=(step,),
        agent=step.agent,
        retry_policy=request.retry_policy,
        until=moment(request.deadline),
        key=request.idempotency_key,
    )


def _plan(house: House, steps: Sequence[Any], now: float) -> Submitted:
    if not all(isinstance(step, Step) for step in steps):
        raise TypeError("a plan consists of Steps: use sequence(), fan_out() or graph()")
    checked = tuple(
        replace(step, payload=kept(step.payload), agent=step.agent or _agent_for(house, step.type))
        for step in graph(steps)
    )
    return Submitted(at=now, id="", type="plan", steps=checked, single=False)


def _agent_for(house: House, type: str) -> str | None:
    try:
        return house.agent_for(type, None).name
    except FaultError:
        return None  # perhaps another process has it


def _until(deadline: float | timedelta | str, now: float) -> float:
    if isinstance(deadline, str):
        at = moment(deadline)
        if at is None:
            raise InvalidFieldValueError("A deadline is an RFC 3339 time", field="/deadline")
        return at
    return now + seconds_of(deadline)
