"""The reading of a response and the decision about it, as `amends decode` prints them (mappings M6)."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from amends.core.decision import NON_FATAL, NOTHING_FOUND, Decision, decide
from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.core.policy import UNBOUNDED
from amends.core.reading import Reading
from amends.vendors.registry import NAMES

__all__ = ["Report", "report"]

_REPEATABLE = Operation(idempotent=True)
_ONCE = Operation()


class Report(msgspec.Struct, frozen=True, gc=False):
    """What `amends decode` prints for one response."""

    found: bool
    """Whether an error was found; for http and cli a status or exit code alone counts."""
    failed: bool
    """Whether the response reports a failure."""
    fatal: bool
    """False for an error about a part of a response that did not fail."""
    via: str | None
    vendor: str | None
    """The service whose format was recognised; None if it was one of our formats, or unknown."""
    path: str | None
    error: Any
    """The object as received."""
    fault: Fault | None
    decision: Decision


def report(via: str | None, reading: Reading, *, safe: bool = True) -> Report:
    """
    Return the report of a reading.

    The decision is about a first failure, without jitter and without limits on attempts or waiting. `safe` says whether
    a repeat of the operation is safe.
    """
    fault = reading.fault
    if fault is None:
        return Report(
            False, reading.failed, reading.fatal, via, None, reading.path, reading.error, None, NOTHING_FOUND
        )
    fatal = reading.fatal
    if fatal:
        decision = decide(fault, policy=UNBOUNDED, operation=_REPEATABLE if safe else _ONCE)
    else:
        decision = NON_FATAL
    details, intent = fault.details, fault.intent
    if (details is not None and not details) or (intent is not None and not intent):
        # Empty fields are left out of the fault; `error` still has them.
        fault = replace(fault, details=details or None, intent=intent or None)
    vendor = None if fault.origin is None or fault.origin.dialect not in NAMES else fault.origin.dialect
    return Report(True, reading.failed, fatal, via, vendor, reading.path, reading.error, fault, decision)
