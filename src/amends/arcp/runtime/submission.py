"""What a submission asks for: checked, with the agent resolved, as it is written down; and what is accepted of it."""

from __future__ import annotations

import time
from hashlib import sha256
from random import getrandbits
from typing import TYPE_CHECKING, Any

import msgspec

from amends.arcp.leases import Lease
from amends.arcp.leases import read as read_lease
from amends.arcp.runtime.agents import resolve
from amends.arcp.runtime.entries import JobSpec, key_name
from amends.arcp.wire import Envelope, new_id, text_of
from amends.arcp.wire.messages import Accepted, Submit
from amends.errors.arcp import InvalidRequestError

if TYPE_CHECKING:
    from amends.arcp.runtime.node import Node
    from amends.arcp.runtime.session import Session

__all__ = ["accepted_payload", "must_begin", "ordered", "trace_of"]

_LONGEST_KEY = 256
_NO_LEASE = Lease()
_sorted = msgspec.json.Encoder(order="sorted").encode


async def ordered(node: Node, session: Session, message: Envelope, request: Submit) -> JobSpec:
    """
    The order a submission means.

    Raises:
        ARCPError: it means none.

    """
    agent = node.agents.meant(request.agent)
    if agent is not None:
        reference, can_repeat = agent.ref, agent.repeatable
    else:
        name, version = resolve(request.agent, await node.known(request.agent))
        reference, can_repeat = f"{name}@{version}", await node.repeatable(name, version)
    key = request.idempotency_key
    if key is not None and not 0 < len(key) <= _LONGEST_KEY:
        raise InvalidRequestError("A key has 1 to 256 characters", details={"field": "idempotency_key"})
    limit = request.max_runtime_sec
    if limit is not None and not 0 < limit < float("inf"):
        raise InvalidRequestError("max_runtime_sec is more than 0", details={"field": "max_runtime_sec"})
    now = time.time()
    lease = _lease(request, now, keyed=key is not None)
    return JobSpec(
        job_id=new_id("job"),
        principal=session.principal,
        session=session.id,
        agent=reference,
        created=now,
        trace=trace_of(message.trace_id),
        input=request.input,
        grants=lease.grants,
        expires_at=lease.expires_at,
        key=None if key is None else key_name(session.principal, key),
        fingerprint="" if key is None else _fingerprint(request),
        max_runtime=limit,
        repeatable=can_repeat,
    )


def _lease(request: Submit, now: float, *, keyed: bool) -> Lease:
    if not request.lease_request and not request.lease_constraints:
        return _NO_LEASE
    # With a key it may be a repetition of what was accepted long ago: whether the end has passed is asked when a job
    # would begin.
    return read_lease(request.lease_request, request.lease_constraints, now=0.0 if keyed else now)


def _fingerprint(request: Submit) -> str:
    """What makes two submissions the same: everything that is asked for, nothing about who asks when."""
    asked = (
        request.agent,
        request.input,
        request.lease_request or {},
        request.lease_constraints or {},
        request.max_runtime_sec,
    )
    return sha256(_sorted(asked)).hexdigest()


def trace_of(given: str | None) -> str:
    """
    The 32 digits of a trace id, from a trace id or a `traceparent`; a new one where there is none.

    >>> trace_of("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    '4bf92f3577b34da6a3ce929d0e0e4736'
    """
    if given:
        parts = given.split("-")
        found = parts[1] if len(parts) >= 4 else given
        if len(found) == 32 and _hexadecimal(found) and found != "0" * 32:
            return found
    # Unique is enough: a trace id is shown to everybody.
    return f"{getrandbits(128) or 1:032x}"


def _hexadecimal(text: str) -> bool:
    return all(digit in "0123456789abcdef" for digit in text)


def must_begin(order: JobSpec) -> None:
    """
    Whether an order can begin now; one that only repeats what was accepted need not.

    Raises:
        InvalidRequestError: its lease has come to its end.

    """
    if order.expires_at is not None and order.expires_at <= order.created:
        raise InvalidRequestError(
            "A lease ends at a time to come", details={"field": "lease_constraints.expires_at"}
        )


def accepted_payload(
    order: JobSpec, request_id: str | None, credentials: list[dict[str, Any]] | None = None
) -> Accepted:
    """`job.accepted`; the same for every submission that leads to this job, but for the request it answers."""
    plain = not order.grants and order.expires_at is None
    lease = _NO_LEASE if plain else Lease(order.grants, order.expires_at)
    return Accepted(
        order.job_id,
        order.agent,
        lease.wire(),
        lease.constraints(),
        None if plain else lease.budget.counters() or None,
        credentials,
        text_of(order.created),
        order.trace,
        order.parent,
        order.delegate,
        request_id,
    )
