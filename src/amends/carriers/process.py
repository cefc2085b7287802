"""
Finished commands: {"exit", "stdout", "stderr", "timed_out", "profile"}, or the CLI agent spec's envelope alone (S2).

Order of evidence: the time-out, the envelope, the exit code. An exit table is used only for a tool that printed an
envelope or was declared conformant, because 7 and 9 mean opposite things in the two published tables. Where `ok` and
the exit code disagree, the one that reports failure wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amends.carriers.reading import FAILED, NOT_FAILED, Reading
from amends.core.enums import Executed
from amends.core.exits import DEFAULT_PROFILE, PROFILES, Exit
from amends.core.fault import Fault, Origin
from amends.core.vocabularies.cli import VOCABULARY
from amends.core.wire import Unreadable
from amends.core.wire import read as read_json
from amends.dialects import envelope, members

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
    printed = _printed_envelope(process.get("stdout"))
    if printed is None:
        return NOT_FAILED if number == 0 else _bare(number, _exit(profile, number))
    if printed.get("ok") is not False and number in _FINE and not _only_error(printed):
        return NOT_FAILED
    return _with_envelope(printed, number, _exit(profile or _DEFAULT, number))


def read_envelope(data: Any) -> Reading:
    """Read an envelope without its process."""
    if not isinstance(data, dict) or (data.get("ok") is not False and not _only_error(data)):
        return NOT_FAILED
    error = envelope.error_of(data)
    if error is None:
        return FAILED
    return Reading(True, envelope.fault_of(error, data.get("meta"), None, _ENVELOPE), "envelope", error, True)


def _printed_envelope(stdout: Any) -> dict[str, Any] | None:
    """Return the envelope on stdout: all of it, or from the last line that begins with a brace."""
    if isinstance(stdout, dict):
        return _envelope(stdout)
    if isinstance(stdout, (bytes, bytearray)):
        stdout = stdout.decode("utf-8", "replace")
    if not isinstance(stdout, str):
        return None
    text = stdout.removeprefix("\ufeff").strip()
    candidates = [text] if text.startswith("{") else []
    last = text.rfind("\n{") + 1
    if last:
        candidates.append(text[last:])
    for candidate in candidates:
        try:
            return _envelope(read_json(candidate))
        except Unreadable:
            continue
    return None


def _envelope(value: Any) -> dict[str, Any] | None:
    if isinstance(value, dict) and (isinstance(value.get("ok"), bool) or _only_error(value)):
        return value
    return None


def _only_error(value: dict[str, Any]) -> bool:
    """Whether an object is an envelope without `ok`: it holds an error with the members of the spec."""
    return "ok" not in value and isinstance(value.get("error"), dict) and envelope.error_of(value) is not None


def _exit(profile: Mapping[int, Exit] | None, number: int | None) -> Exit | None:
    return None if profile is None or number is None else profile.get(number)


def _with_envelope(printed: dict[str, Any], number: int | None, exit: Exit | None) -> Reading:
    error = envelope.error_of(printed)
    if error is None or printed.get("error") is None:
        return _bare(number, exit)
    fault = envelope.fault_of(error, printed.get("meta"), exit, _ENVELOPE)
    return Reading(True, fault, "envelope", error, True)


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
