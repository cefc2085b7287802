"""
Whether a finished command failed, and as what (C12).

In this order: it was never started, a time-out or a signal ended it, the envelope it wrote, its declared profile, an
exit table it was named conformant to, and at last that nobody knows. Text decides nothing.
"""

from __future__ import annotations

from errno import errorcode
from typing import Any

from msgspec.structs import replace

from amends.carriers import process as carrier
from amends.carriers.reading import Reading
from amends.core.enums import Executed
from amends.core.exits import PROFILES
from amends.core.fault import Fault, Origin
from amends.core.vocabularies.cli import VOCABULARY
from amends.core.wire import MAX_BYTES
from amends.process.finished import Finished
from amends.profiles import NAMES, profile

__all__ = ["PROFILE_NAMES", "fault_of", "spoken"]

PROFILE_NAMES = (*PROFILES, *NAMES)
"""What a command may be named as: conformant to an exit table, or one of the tools with a profile."""

_NOT_STARTED = {"ENOENT": "NOT_FOUND", "EACCES": "PERMISSION_DENIED"}


def fault_of(done: Finished, name: str | None = None, *, believing: bool = True) -> Fault | None:
    """
    The failure of a command, or None.

    Args:
        done: the command.
        name: its profile.
        believing: take an envelope that says `retryable: true` for a promise that a repeat cannot harm.

    """
    if done.not_started is not None:
        word = errorcode.get(done.not_started, "")
        return _fault(_NOT_STARTED.get(word, "INTERNAL_ERROR"), Executed.NO, "exit", {"errno": word})
    if done.timed_out:
        return _fault("TIMEOUT", Executed.MAYBE, "timeout", None)
    if done.lost:
        return _fault("INTERNAL_ERROR", Executed.MAYBE, "exit", None)
    if done.signal is not None:
        return _fault("INTERNAL_ERROR", Executed.MAYBE, "exit", {"signal": done.signal})
    reading = spoken(done, name)
    if reading.path == "envelope" and reading.fault is not None:
        said = reading.error.get("retryable") is True
        return replace(reading.fault, executed=Executed.NO) if said and believing else reading.fault
    if not reading.failed:
        return None
    row = profile(name).exits.get(done.exit or 0) if name in NAMES else None
    if row is None:
        return reading.fault or _fault("INTERNAL_ERROR", Executed.MAYBE, "exit", {"exit": done.exit})
    fault = _fault(row.code, row.executed, "exit", {"exit": done.exit, "profile": name})
    return fault if row.recovery is None else replace(fault, recovery=row.recovery)


def spoken(done: Finished, name: str | None = None) -> Reading:
    """What the command's output and exit code say by themselves."""
    stdout = done.out.read() if done.out.size <= MAX_BYTES else done.out.end()
    process: dict[str, Any] = {"exit": done.exit, "stdout": stdout.decode("utf-8", "replace")}
    if name in PROFILES:
        process["profile"] = name
    return carrier.read(process)


def _fault(code: str, executed: Executed, path: str, details: dict[str, Any] | None) -> Fault:
    row = VOCABULARY.rows[code]
    return Fault(
        code=code,
        message=row.message,
        vocabulary="cli",
        details=details,
        executed=executed,
        origin=Origin("envelope", path),
        recovery=row.recovery,
        actor=row.actor,
    )
