"""
Finished commands: {"exit", "stdout", "stderr", "timed_out", "profile"}, or the CLI agent spec's envelope alone (S2).

Order of evidence: the time-out, the envelope, the exit code. An exit table is used only for a tool that printed an
envelope or was declared conformant, because 7 and 9 mean opposite things in the two published tables. Where `ok` and
the exit code disagree, the one that reports failure wins.

The envelope is all of stdout, or its end after other output. If the command did not exit with 0, it may also be followed
by other lines, or be on stderr: with exit 0 such an object is part of a log.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from amends.core.enums import Executed
from amends.core.exits import DEFAULT_PROFILE, PROFILES, Exit
from amends.core.fault import Fault, Origin
from amends.core.reading import FAILED, NOT_FAILED, Reading
from amends.core.text import decoded, uncoloured
from amends.core.vocabularies.cli import VOCABULARY
from amends.core.wire import Unreadable
from amends.core.wire import read as read_json
from amends.dialects import envelope, members
from amends.proof import Claim, Proof, rests_on

__all__ = ["read", "read_envelope"]

_ENVELOPE = Origin("envelope", "envelope")
_DEFAULT = PROFILES[DEFAULT_PROFILE]
_FINE = frozenset({0, None})
_NOT_STARTED = frozenset({126, 127})
"""Exit codes of the shell for a command that could not be started."""


def read(process: Any) -> Reading:
    """Read a finished or timed-out command."""
    if not isinstance(process, dict):
        return NOT_FAILED
    if process.get("timed_out") is True:
        fault = _fault("TIMEOUT", Executed.MAYBE, "timeout", None)
        return Reading(failed=True, fatal=True, path="timeout", fault=fault)
    number = members.integer(process.get("exit"))
    profile = PROFILES.get(members.text(process.get("profile")) or "")
    printed = _printed_envelope(process.get("stdout"), anywhere=number != 0)
    if printed is None and number != 0:
        printed = _printed_envelope(process.get("stderr"), anywhere=True)
    if printed is None:
        # Without an exit code and an envelope nothing says that the command failed.
        fine = number == 0 or "exit" not in process
        return NOT_FAILED if fine else _bare(number, _exit(profile, number))
    if printed.get("ok") is not False and number in _FINE and not _only_error(printed):
        return NOT_FAILED
    reading = _with_envelope(printed, number, _exit(profile or _DEFAULT, number))
    return reading if _is_own(printed) else _of_another(reading, _exit(profile, number))


def read_envelope(data: Any) -> Reading:
    """Read an envelope without its process."""
    if not isinstance(data, dict) or (data.get("ok") is not False and not _only_error(data)):
        return NOT_FAILED
    error = envelope.error_of(data)
    if error is None:
        return FAILED
    return Reading(True, envelope.fault_of(error, data.get("meta"), None, _ENVELOPE), "envelope", error, True)


def _printed_envelope(output: Any, *, anywhere: bool) -> dict[str, Any] | None:
    """Return the envelope in a stream: all of it, or its end; with `anywhere`, the last one that begins a line."""
    if isinstance(output, dict):
        return _envelope(output)
    if not isinstance(output, (str, bytes, bytearray)):
        return None
    text = uncoloured(decoded(output)).removeprefix("\ufeff").strip()
    found = _read(text) if text.startswith("{") else None
    if found is None and (last := text.rfind("\n{") + 1):
        found = _read(text[last:])
    return _last_of(text[-_SEARCHED:]) if found is None and anywhere else found


_SEARCHED = 256 * 1024
"""Characters at the end of a stream in which an envelope that other lines follow is looked for."""
_CANDIDATES = 50
_CONTINUES = re.compile(r"\s*[\]},]")
# A string that is not closed ends with the text, so that the search stays linear.
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[{}]', re.DOTALL)


def _last_of(text: str) -> dict[str, Any] | None:
    """Return the last envelope that begins a line, whatever follows it. Only the last 50 lines with a brace are tried."""
    end = len(text)
    for _ in range(_CANDIDATES):
        start = text.rfind("\n{", 0, end) + 1
        if start == 0 and text[:1] != "{":
            return None
        closed = _object_end(text, start, end)
        # A bracket or comma behind it shows that it is part of a larger document.
        found = None if _CONTINUES.match(text, closed) else _read(text[start:closed])
        if found is not None or start == 0:
            return found
        end = start
    return None


def _object_end(text: str, start: int, end: int) -> int:
    """Return where the object that begins at `start` ends: behind its last brace, at most at the end of the text."""
    depth = 0
    for token in _TOKENS.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    return end


def _read(text: str) -> dict[str, Any] | None:
    try:
        return _envelope(read_json(text))
    except Unreadable:
        return None


def _envelope(value: Any) -> dict[str, Any] | None:
    if isinstance(value, dict) and (isinstance(value.get("ok"), bool) or _only_error(value)):
        return value
    return None


def _only_error(value: dict[str, Any]) -> bool:
    """Whether an object is an envelope without `ok`: it holds an error with the members of the spec."""
    return "ok" not in value and isinstance(value.get("error"), dict) and envelope.error_of(value) is not None


def _is_own(printed: dict[str, Any]) -> bool:
    """Whether a printed error is in the form of the spec. A command that prints what a service answered says nothing itself."""
    error = printed.get("error")
    return "ok" in printed or (isinstance(error, dict) and "retryable" in error)


@rests_on(Claim.NOT_HAPPENED, Proof.PROCESS, Proof.STATUS)
def _of_another(reading: Reading, exit: Exit | None) -> Reading:
    """Return a reading whose error is not the command's own: only the exit code, under a named profile, says that nothing happened."""
    fault = reading.fault
    if (
        fault is None
        or fault.executed is not Executed.NO
        or (exit is not None and exit.executed is Executed.NO)
    ):
        return reading
    return replace(reading, fault=replace(fault, executed=Executed.MAYBE))


def _exit(profile: Mapping[int, Exit] | None, number: int | None) -> Exit | None:
    return None if profile is None or number is None else profile.get(number)


def _with_envelope(printed: dict[str, Any], number: int | None, exit: Exit | None) -> Reading:
    error = envelope.error_of(printed)
    if error is None or printed.get("error") is None:
        return _bare(number, exit)
    fault = envelope.fault_of(error, printed.get("meta"), exit, _ENVELOPE)
    return Reading(True, fault, "envelope", error, True)


@rests_on(Claim.NOT_HAPPENED, Proof.PROCESS, Proof.STATUS)
def _bare(number: int | None, exit: Exit | None) -> Reading:
    """Read an exit code alone: its row if a table applies, else an internal error of unknown effect."""
    if exit is None:
        executed = Executed.NO if number in _NOT_STARTED else Executed.MAYBE
        fault = _fault("INTERNAL_ERROR", executed, "exit", number)
    else:
        fault = _fault(exit.code, exit.executed, "exit", number)
    return Reading(failed=True, fatal=True, path="exit", fault=fault)


def _fault(code: str, executed: Executed, path: str, number: int | None) -> Fault:
    row = VOCABULARY.rows[code]
    return Fault(
        code=code,
        message=row.message,
        recovery=row.recovery,
        vocabulary="cli",
        details=None if number is None else {"exit": number},
        actor=row.actor,
        executed=executed,
        origin=Origin("envelope", path),
    )
