"""Build the first record of a task's log from what was submitted: a capability and its input, a request document, or a plan."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

from msgspec.structs import replace

from amends.errors.base import FaultError
from amends.errors.task import InvalidFieldValueError, InvalidInputError
from amends.tasks.documents import Request, parse_time, seconds_of
from amends.tasks.entries import Submitted, encode
from amends.tasks.plan import Step, graph
from amends.tasks.registry import Registry
from amends.tasks.retry_policy import check_retry_policy
from amends.tasks.values import MAX_BYTES, storable

__all__ = ["build_submission"]


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
    record = replace(
        record,
        id=id or record.id or str(uuid4()),
        retry_policy=record.retry_policy if retry_policy is None else retry_policy,
        until=record.until if deadline is None else _until(deadline, now),
        key=record.key if key is None else key,
        promises=registry.promises(record.steps) or None,
    )
    _check(record)
    return record


def _check(record: Submitted) -> None:
    """Refuse what cannot be stored, before anything is."""
    texts: dict[str, Any] = {"id": record.id, "idempotencyKey": record.key, "agent": record.agent}
    for name, value in texts.items():
        if value is not None and not (isinstance(value, str) and value and _is_utf8(value)):
            raise InvalidFieldValueError(
                f"The {name} must be a text that is not empty and that UTF-8 can encode",
                field=f"/{name}",
                details={"name": name, "pointer": f"/{name}"},
            )
    check_retry_policy(record.retry_policy)
    for step in record.steps:
        check_retry_policy(step.retry_policy)
    try:
        size = len(encode([record]))
    except (TypeError, ValueError, RecursionError):
        raise InvalidInputError("The request cannot be written as JSON") from None
    if size > MAX_BYTES:
        raise InvalidInputError(f"The request has {size} bytes, and at most {MAX_BYTES} are stored")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _single(registry: Registry, task: Any, payload: Any, agent: str | None, now: float) -> Submitted:
    if isinstance(task, str) and not task.lstrip().startswith("{"):
        request = Request(id="", type=task, payload=payload, agent=agent)
    else:
        request = Request.read(task)
    step = Step(
        name=request.type.replace(">", "") or "step",
        type=request.type,
        payload=storable(request.payload, "payload"),
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
            step,
            payload=storable(step.payload, "payload"),
            agent=step.agent or _agent_for(registry, step.type),
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
