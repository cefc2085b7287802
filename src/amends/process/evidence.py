"""
Determines whether a finished command failed, and with which fault (C12).

The first that applies decides: the command was not started; a timeout or a signal ended it; the envelope it wrote; its
declared profile, or the one of its program's name; the exit table it conforms to; for a program without a profile,
sysexits.h. Otherwise the failure is unknown. Text never decides.
"""

from __future__ import annotations

from errno import errorcode

import msgspec
from msgspec.structs import replace

from amends.carriers import process as carrier
from amends.core.enums import Executed, Recovery
from amends.core.exits import PROFILES
from amends.core.fault import Fault, Origin
from amends.core.hints import excluded
from amends.core.reading import Reading
from amends.core.text import decoded
from amends.core.vocabularies.cli import VOCABULARY
from amends.core.wire import MAX_BYTES
from amends.process.finished import Finished
from amends.process.spool import Spool
from amends.profiles import NAMES, SYSEXITS, Row, profile, profile_of
from amends.proof import Claim, Proof, rests_on

__all__ = ["PROFILE_NAMES", "fault_of", "read_output"]

PROFILE_NAMES = (*PROFILES, *NAMES)
"""The profiles a command may have: an exit table it conforms to, or the name of a known tool."""

_TIMEOUT_EXIT = VOCABULARY.rows["TIMEOUT"].exit
_DONE = (Executed.MAYBE, Executed.YES)
_NOT_STARTED = {"ENOENT": "NOT_FOUND", "EACCES": "PERMISSION_DENIED"}


@rests_on(Claim.NOT_HAPPENED, Proof.PROCESS, Proof.USER, Proof.STATED)
def fault_of(done: Finished, name: str | None = None, *, trust_retryable: bool = True) -> Fault | None:
    """
    Return the fault of a finished command, or None if it succeeded.

    `run` calls it after each run. Call it for a command that other code ran.

    >>> done = Finished(["gh", "api", "/user"])
    >>> done.exit = 4
    >>> fault_of(done).code
    'AUTH_REQUIRED'

    Args:
        done: the finished command.
        name: its profile.
        trust_retryable: treat `retryable: true` in the command's envelope as a promise that a retry is safe.

    """
    if done.not_started is not None:
        errno = errorcode.get(done.not_started, "")
        return _fault(_NOT_STARTED.get(errno, "INTERNAL_ERROR"), Executed.NO, "exit", {"errno": errno})
    if done.timed_out:
        return _fault("TIMEOUT", Executed.MAYBE, "timeout", None)
    if done.lost:
        return _fault("INTERNAL_ERROR", Executed.MAYBE, "exit", None)
    if done.signal is not None:
        return _fault("INTERNAL_ERROR", Executed.MAYBE, "exit", {"signal": done.signal})
    reading = read_output(done, name)
    if done.reported is not None and done.exit and done.reported[0] != done.pid and reading.fault is not None:
        # A program below wrote it. What those beside it did is not known.
        executed = Executed.MAYBE if reading.fault.executed is Executed.NO else reading.fault.executed
        return replace(reading.fault, executed=executed)
    if reading.fault is not None and trust_retryable and _invites_repeat(done, reading):
        return replace(reading.fault, executed=Executed.NO)
    if reading.path == "envelope" and reading.fault is not None:
        return reading.fault
    if not reading.failed:
        return None
    row, used = (None, name) if name in PROFILES else _profile_row(done, name)
    if row is None:
        return reading.fault or _fault("INTERNAL_ERROR", Executed.MAYBE, "exit", {"exit": done.exit})
    fault = _fault(row.code, row.executed, "exit", {"exit": done.exit, "profile": used})
    return fault if row.recovery is None else replace(fault, recovery=row.recovery)


def _invites_repeat(done: Finished, reading: Reading) -> bool:
    """
    Return whether the tool itself says that a repeat is safe: `retryable: true`, or S2's exit 7 (M3).

    An envelope that says `executed: maybe` or `yes`, or whose code says so, does not. TIMEOUT is S2's exception: the
    reading has this code for exit 7 only if the tool wrote an envelope or was named conformant.
    """
    fault = reading.fault
    assert fault is not None
    retryable = reading.path == "envelope" and reading.error.get("retryable") is True
    if _states_effect(reading):
        # What the wire says comes first (M8).
        return False
    if fault.code == "TIMEOUT":
        return retryable or (fault.recovery is Recovery.TRANSIENT and done.exit == _TIMEOUT_EXIT)
    return retryable and not excluded(fault.code)


def _states_effect(reading: Reading) -> bool:
    """Return whether the tool says itself that the command may have had its effect: in its error, or in the record."""
    stated = reading.error.get("executed") if isinstance(reading.error, dict) else None
    if stated in _DONE:
        return True
    origin = None if reading.fault is None else reading.fault.origin
    record = None if origin is None else origin.record
    return record is not None and record.get("executed") in _DONE


def _profile_row(done: Finished, name: str | None) -> tuple[Row | None, str]:
    """Return the row of the exit code in the tool's profile, and the profile's name; sysexits.h if it has none."""
    used = name or profile_of(done.argv[0]) or SYSEXITS
    found = profile(used)
    row = found.exits.get(done.exit or 0)
    if row is not None and row.executed is Executed.NO and found.may_do_more(done.argv[1:]):
        row = replace(row, executed=Executed.MAYBE)
    return row, used


def read_output(done: Finished, name: str | None = None) -> Reading:
    """Read the command's output and exit code with the process carrier."""
    process: dict[str, object] = {"exit": done.exit, "stdout": _text(done.out), "stderr": _text(done.err)}
    if done.reported is not None and done.exit:
        process = {"exit": done.exit, "stdout": msgspec.json.encode(done.reported[1]).decode(), "stderr": ""}
    if name in PROFILES:
        process["profile"] = name
    return carrier.read(process)


def _text(output: Spool) -> str:
    """Return all of a stream, or its end if it is larger than a document may be."""
    whole = output.size <= MAX_BYTES and not output.truncated
    return decoded(output.read() if whole else output.end())


def _fault(code: str, executed: Executed, path: str, details: dict[str, object] | None) -> Fault:
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
