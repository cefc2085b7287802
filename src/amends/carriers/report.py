"""What a response reports and what to do about it, as one value: what `amends decode` prints (mappings M6)."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from amends.carriers.reading import Reading
from amends.core.decision import NON_FATAL, NOTHING_FOUND, Decision, decide
from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.core.policy import UNBOUNDED

__all__ = ["Report", "report"]

_REPEATABLE = Operation(idempotent=True)
_ONCE = Operation()


class Report(msgspec.Struct, frozen=True, gc=False):
    """What `amends decode` prints for one response."""

    found: bool
    """A structured error was extracted; for http and cli a bare status or exit code counts."""
    failed: bool
    """The response reports a failure at all."""
    fatal: bool
    """False for remarks on a response that did not fail."""
    via: str | None
    path: str | None
    error: Any
    """The object as received."""
    fault: Fault | None
    decision: Decision


def report(via: str | None, reading: Reading, *, safe: bool = True) -> Report:
    """
    The report of a reading.

    The decision is for the first failure of an operation whose repeat is safe (or not), without jitter and
    without ceilings of attempts or waiting.
    """
    fault = reading.fault
    if fault is None:
        return Report(
            False, reading.failed, reading.fatal, via, reading.path, reading.error, None, NOTHING_FOUND
        )
    fatal = reading.fatal
    if fatal:
        decision = decide(fault, policy=UNBOUNDED, operation=_REPEATABLE if safe else _ONCE)
    else:
        decision = NON_FATAL
    details, intent = fault.details, fault.intent
    if (details is not None and not details) or (intent is not None and not intent):
        # Empty fields are left out; what was received empty still stands in `error`.
        fault = replace(fault, details=details or None, intent=intent or None)
    return Report(True, reading.failed, fatal, via, reading.path, reading.error, fault, decision)
