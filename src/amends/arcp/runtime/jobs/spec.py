"""Validation of submissions: the `JobSpec` that a `job.submit` results in, and the payload of `job.accepted`."""

from __future__ import annotations

import time
from hashlib import sha256
from random import getrandbits
from typing import Any

import msgspec

from amends.arcp.leases import Lease
from amends.arcp.leases import read as read_lease
from amends.arcp.runtime.agents import resolve
from amends.arcp.runtime.cluster.membership import Membership
from amends.arcp.runtime.entries import JobSpec
from amends.arcp.runtime.jobs.amounts import counters_on_wire
from amends.arcp.wire import new_id, text_of
from amends.arcp.wire.messages import Accepted, Submit
from amends.durable.keys import key_name
from amends.errors.arcp import InvalidRequestError

__all__ = ["accepted_payload", "check_lease_not_expired", "spec_from_request", "trace_id_from"]

_LONGEST_KEY = 256
_NO_LEASE = Lease()
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


async def spec_from_request(
    membership: Membership, principal: str, session: str, trace: str | None, request: Submit
) -> JobSpec:
    """
    Validate a submission, resolve its agent, and return the job's spec.

    Args:
        membership: the agents of all nodes.
        principal: who submits the job.
        session: the id of the session.
        trace: the trace id of the message, if it has one.
        request: the submission.

    Raises:
        ARCPError: the submission is invalid, or its agent is not available.

    """
    agent = membership.agents.lookup(request.agent)
    if agent is not None:
        reference, can_repeat = agent.ref, agent.repeatable
    else:
        name, version = resolve(request.agent, await membership.known_agents(request.agent))
        reference, can_repeat = f"{name}@{version}", await membership.repeatable(name, version)
    key = request.idempotency_key
    if key is not None and not 0 < len(key) <= _LONGEST_KEY:
        raise InvalidRequestError(
            "The idempotency key must have 1 to 256 characters", details={"field": "idempotency_key"}
        )
    limit = request.max_runtime_sec
    if limit is not None and not 0 < limit < float("inf"):
        raise InvalidRequestError(
            "max_runtime_sec must be greater than 0", details={"field": "max_runtime_sec"}
        )
    now = time.time()
    lease = _lease(request, now, keyed=key is not None)
    return JobSpec(
        job_id=new_id("job"),
        principal=principal,
        session=session,
        agent=reference,
        created=now,
        trace=trace_id_from(trace),
        input=request.input,
        grants=lease.grants,
        expires_at=lease.expires_at,
        key=None if key is None else key_name(principal, key),
        fingerprint="" if key is None else _fingerprint(request),
        max_runtime=limit,
        repeatable=can_repeat,
    )


def _lease(request: Submit, now: float, *, keyed: bool) -> Lease:
    if not request.lease_request and not request.lease_constraints:
        return _NO_LEASE
    # With a key, this may repeat a submission whose lease has expired since. `check_lease_not_expired` checks the
    # lease if a job is about to start.
    return read_lease(request.lease_request, request.lease_constraints, now=0.0 if keyed else now)


def _fingerprint(request: Submit) -> str:
    """Return a digest of everything that two submissions with the same key must have in common."""
    identity = (
        request.agent,
        request.input,
        request.lease_request or {},
        request.lease_constraints or {},
        request.max_runtime_sec,
    )
    return sha256(_encode_sorted(identity)).hexdigest()


def trace_id_from(given: str | None) -> str:
    """
    Return the 32 digits of a trace id, from a trace id or a `traceparent`; a new id if there is none.

    >>> trace_id_from("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    '4bf92f3577b34da6a3ce929d0e0e4736'
    """
    if given:
        parts = given.split("-")
        found = parts[1] if len(parts) >= 4 else given
        if len(found) == 32 and _hexadecimal(found) and found != "0" * 32:
            return found
    # A trace id needs no secure random source: it is not a secret.
    return f"{getrandbits(128) or 1:032x}"


def _hexadecimal(text: str) -> bool:
    return all(digit in "0123456789abcdef" for digit in text)


def check_lease_not_expired(spec: JobSpec) -> None:
    """
    Check that a new job's lease has not expired; a submission that repeats an accepted one is not checked.

    Raises:
        InvalidRequestError: the lease has expired.

    """
    if spec.expires_at is not None and spec.expires_at <= spec.created:
        raise InvalidRequestError(
            "The lease must expire in the future", details={"field": "lease_constraints.expires_at"}
        )


def accepted_payload(
    spec: JobSpec,
    request_id: str | None,
    credentials: list[dict[str, Any]] | None = None,
    *,
    amounts_as_text: bool = False,
) -> Accepted:
    """Return the payload of `job.accepted`; apart from the request id it is the same for all submissions of a job."""
    plain = not spec.grants and spec.expires_at is None
    lease = _NO_LEASE if plain else Lease(spec.grants, spec.expires_at)
    return Accepted(
        spec.job_id,
        spec.agent,
        lease.wire(),
        lease.constraints(),
        None if plain else counters_on_wire(lease.budget, as_text=amounts_as_text),
        credentials,
        text_of(spec.created),
        spec.trace,
        spec.parent,
        spec.delegate,
        request_id,
    )
