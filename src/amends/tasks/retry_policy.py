"""Check the `retryPolicy` of a request (T8), and say where a rule of the contract overrides it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from amends.core.backoff import BackoffKind
from amends.core.enums import Recovery
from amends.core.fault import Fault
from amends.core.vocabulary import row_for
from amends.errors.base import FaultError
from amends.errors.task import InvalidFieldValueError

__all__ = ["MOST_ATTEMPTS", "check_retry_policy", "overridden"]

MOST_ATTEMPTS = 100
"""The largest `maxAttempts`."""
_LONGEST_MS = 3_600_000
_KINDS = tuple(kind.value for kind in BackoffKind)


def check_retry_policy(policy: Any) -> None:
    """
    Check a `retryPolicy`: {maxAttempts, backoffType, initialDelay in ms}, all optional.

    Raises:
        FaultError: INVALID_FIELD_VALUE, with the pointer of the member.
    """
    if policy is None:
        return
    if not isinstance(policy, Mapping):
        raise _wrong("", "must be an object")
    attempts, kind, delay = (policy.get(name) for name in ("maxAttempts", "backoffType", "initialDelay"))
    if attempts is not None and not (
        _is_number(attempts) and attempts == int(attempts) and 1 <= attempts <= MOST_ATTEMPTS
    ):
        raise _wrong("maxAttempts", f"must be a whole number from 1 to {MOST_ATTEMPTS}")
    if kind is not None and kind not in _KINDS:
        raise _wrong("backoffType", f"must be one of {', '.join(_KINDS)}")
    if delay is not None and not (_is_number(delay) and 0 <= delay <= _LONGEST_MS):
        raise _wrong("initialDelay", f"must be from 0 to {_LONGEST_MS} ms")


def overridden(policy: Mapping[str, Any] | None, fault: Fault) -> str | None:
    """Why a request's `maxAttempts` did not apply to a failure; None if it did, or was not given."""
    if policy is None or (policy.get("maxAttempts") or 1) <= 1:
        return None
    if row_for("task", fault.code).category == "input":
        return "not applied: input errors are never retried"
    if fault.recovery is Recovery.TERMINAL:
        return "not applied: an error that is not recoverable is never retried"
    if fault.recovery is Recovery.CORRECTABLE:
        return "not applied: the same request would fail again until its cause is removed"
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _wrong(name: str, problem: str) -> FaultError:
    pointer = f"/retryPolicy/{name}" if name else "/retryPolicy"
    return InvalidFieldValueError(
        f"{pointer[1:].replace('/', '.')} {problem}",
        field=pointer,
        details={"name": name or "retryPolicy", "pointer": pointer},
    )
