"""
Whatever ends a command, as a fault and an exit code.

- A FaultError is what its author says. What recovery raised about an upstream, and every other exception, is told in
  our own words: nothing of a foreign text leaves the process.
- An explicit exit keeps its number; the profile says what it means.
- Interrupts are 130 and 143.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec.structs import replace

from amends.core.crosswalk import source_row, transfer
from amends.core.enums import Recovery
from amends.core.exits import PROFILES, exit_code
from amends.core.fault import Fault
from amends.core.vocabulary import APP, EVERYDAY, row_for
from amends.errors.base import FaultError

__all__ = ["Verdict", "interrupted", "left", "told", "verdict"]

INTERRUPTED, TERMINATED = 130, 143
RETRIES = 3
"""S2's own example of `max_retries`."""


class Verdict(NamedTuple):
    """How a command ended: with a fault and its exit code, or, without one, well."""

    fault: Fault | None
    exit: int


def verdict(exc: BaseException, profile: str) -> Verdict:
    """What to say about an exception that ended a command."""
    if isinstance(exc, SystemExit):
        return left(exc.code, profile)
    if isinstance(exc, KeyboardInterrupt):
        return interrupted(INTERRUPTED)
    fault = told(_fault(exc))
    return Verdict(fault, exit_code(fault, profile))


def interrupted(number: int) -> Verdict:
    """Somebody outside ended it; how far it got nobody knows."""
    return Verdict(told(Fault(code="CANCELLED", message=row_for(EVERYDAY, "CANCELLED").message)), number)


def left(code: Any, profile: str) -> Verdict:
    """An explicit exit: 0 or nothing is success, a text is a message of the author's, a number stays what it is."""
    if code is None or code == 0:
        return Verdict(None, 0)
    if not isinstance(code, int):
        message = code if isinstance(code, str) else ""
        return Verdict(_plain("INTERNAL_ERROR", message), 1)
    number = code & 0xFF or 1  # what the operating system leaves of it, and never success
    if number in {INTERRUPTED, TERMINATED}:
        return interrupted(number)
    known = PROFILES[profile].get(number)
    return Verdict(_plain(known.code if known else "INTERNAL_ERROR", "", {"exit": number}), number)


def _plain(code: str, message: str, details: dict[str, Any] | None = None) -> Fault:
    words = message or row_for("cli", code).message
    return told(Fault(code=code, message=words, vocabulary="cli", details=details))


def _fault(exc: BaseException) -> Fault:
    if isinstance(exc, FaultError):
        # What recovery raises about a foreign failure carries the answer as it was received.
        carried = exc.fault.origin is not None and exc.history and not isinstance(exc.__cause__, FaultError)
        return _own_words(exc.fault) if carried else exc.fault
    from amends.foreign import from_exception

    return _own_words(from_exception(exc))


def _own_words(fault: Fault) -> Fault:
    """The same failure without anything that was written elsewhere; numbers and classes stay."""
    errors = tuple(_own_words(part) for part in fault.errors)
    if fault.origin is None:
        return fault if errors == fault.errors else replace(fault, errors=errors)
    row = row_for(EVERYDAY, row_for(fault.vocabulary, fault.code, fault.status).everyday)
    return Fault(
        code=row.code,
        message=row.message,
        recovery=fault.recovery,
        retry_after=fault.retry_after,
        max_retries=fault.max_retries,
        status=fault.status,
        attempt=fault.attempt,
        executed=fault.executed,
        errors=errors,
    )


def told(fault: Fault) -> Fault:
    """In a command line's words, with what S2 wants beside `retryable`: how to space repeats, and how many."""
    if fault.vocabulary not in {"cli", APP}:
        fault = transfer(fault, "cli")
    if fault.recovery not in {Recovery.TRANSIENT, Recovery.UNCERTAIN}:
        return fault
    row = source_row(fault)
    strategy = "immediate" if row.wait == 0 else "exponential_backoff"
    retries = RETRIES if fault.recovery is Recovery.TRANSIENT else 1
    # C3: a rate limit always says how long, also one that was passed on without a wait.
    wait = row_for("cli", "RATE_LIMITED").wait if row.everyday == "RATE_LIMITED" else None
    return replace(
        fault,
        retry_after=wait if fault.retry_after is None else fault.retry_after,
        strategy=fault.strategy or strategy,
        max_retries=retries if fault.max_retries is None else fault.max_retries,
    )
