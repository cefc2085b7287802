"""Check the `retryPolicy` of a request or a step (T8). `amends.recovery.policies.from_retry_policy` applies it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from difflib import get_close_matches

from amends.core.backoff import BackoffKind
from amends.core.validate import shown
from amends.errors.task import InvalidFieldValueError

__all__ = ["MOST_ATTEMPTS", "check_retry_policy"]

MOST_ATTEMPTS = 100
"""The largest `maxAttempts`."""
_LONGEST_MS = 3_600_000
_BACKOFFS = tuple(kind.value for kind in BackoffKind)
_NAMES = ("maxAttempts", "backoffType", "initialDelay")


def check_retry_policy(policy: object) -> None:
    """
    Check a `retryPolicy`: {maxAttempts, backoffType, initialDelay in ms}, all optional. An empty one is the default policy.

    >>> check_retry_policy({"maxAttempts": 5.0, "backoffType": "linear"})

    Raises:
        FaultError: INVALID_FIELD_VALUE, with the pointer of the member.
    """
    if not isinstance(policy, Mapping):
        raise _invalid("retryPolicy must be an object", None)
    for name in policy:
        if name not in _NAMES:
            raise _unknown_name(name)
    attempts, kind, delay = (policy.get(name) for name in _NAMES)
    if attempts is not None and not (_is_number(attempts, 1, MOST_ATTEMPTS) and attempts == int(attempts)):
        raise _invalid(
            f"retryPolicy.maxAttempts must be a whole number from 1 to {MOST_ATTEMPTS}", "maxAttempts"
        )
    if kind is not None and kind not in _BACKOFFS:
        raise _invalid(f"retryPolicy.backoffType must be one of {', '.join(_BACKOFFS)}", "backoffType")
    if delay is not None and not _is_number(delay, 0, _LONGEST_MS):
        raise _invalid(f"retryPolicy.initialDelay must be from 0 to {_LONGEST_MS} ms", "initialDelay")


def _is_number(value: object, least: float, most: float) -> bool:
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    return least <= number <= most


def _unknown_name(name: object) -> InvalidFieldValueError:
    folded = {known.casefold(): known for known in _NAMES}
    word = str(name)[:64].replace("_", "").casefold()
    near = [folded[match] for match in get_close_matches(word, folded, 1)]
    means = f"did you mean {near[0]}?" if near else f"there are {', '.join(_NAMES)}"
    suggestion = f"Write {near[0]} instead" if near else f"Use only {', '.join(_NAMES)}"
    problem = f"retryPolicy has no member {shown(name)}: {means}"
    return _invalid(problem, str(name)[:64], suggestions=[suggestion])


def _invalid(problem: str, name: str | None, suggestions: list[str] | None = None) -> InvalidFieldValueError:
    pointer = "/retryPolicy"
    if name is not None:
        pointer += "/" + name.replace("~", "~0").replace("/", "~1")
    details = {"name": name or "retryPolicy", "pointer": pointer}
    return InvalidFieldValueError(problem, field=pointer, details=details, suggestions=suggestions or ())
