"""
Finished commands (S2): {"exit", "stdout", "stderr", "timed_out", "profile"}, or the envelope alone.

Order of evidence: the time-out, the envelope, the exit code. An exit table is used only for a tool that spoke the
envelope or was named conformant: 7 and 9 mean opposite things in the two published ones. Where `ok` and the exit
code disagree, the side that reports failure wins.
"""

from __future__ import annotations

from typing import Any

from amends.carriers.reading import FAILED, NOT_FAILED, Reading
from amends.core.enums import Executed, Recovery
from amends.core.exits import DEFAULT_PROFILE, PROFILES, Exit
from amends.core.fault import Fault, Origin
from amends.core.vocabularies.cli import VOCABULARY
from amends.core.wire import Unreadable
from amends.core.wire import read as read_json
from amends.dialects import envelope

__all__ = ["read", "read_envelope"]

_ENVELOPE = Origin("envelope", "envelope")
_DEFAULT = PROFILES[DEFAULT_PROFILE]
_FINE = frozenset({0, None})
_NOT_STARTED = frozenset({126, 127})
"""The shell's own: the command could not be started at all."""


def read(process: Any) -> Reading:
    """The reading of a finished (or timed-out) command."""
    if process.__class__ is not dict:
        return NOT_FAILED
    spoken = _spoken(process.get("stdout"))
    code = process.get("exit")
    number = code if code.__class__ is int else None
    if process.get("timed_out") is True:
        return _timed_out()
    if spoken is not None:
        failed = spoken.get("ok") is False or number not in _FINE or _only_error(spoken)
        if not failed:
            return NOT_FAILED
        return _with_envelope(spoken, number, _profile(process) or _DEFAULT)
    return NOT_FAILED if number == 0 else _bare(number, (_profile(process) or {}).get(number or 0))


def read_envelope(data: Any) -> Reading:
    """The reading of an envelope without its process."""
    if data.__class__ is not dict or (data.get("ok") is not False and not _only_error(data)):
        return NOT_FAILED
    error = envelope.error_of(data)
    if error is None:
        return FAILED
    return Reading(True, envelope.fault_of(error, data.get("meta"), None, _ENVELOPE), "envelope", error, True)


def _spoken(stdout: Any) -> dict[str, Any] | None:
    """The envelope on stdout: the whole of it, or what begins the last line with a brace after other output."""
    if stdout.__class__ is dict:
        return _envelope(stdout)
    if isinstance(stdout, bytes):
        stdout = stdout.decode("utf-8", "replace")
    if stdout.__class__ is not str:
        return None
    text = stdout
    if not (stdout[:1] == "{" and stdout[-1] == "}"):
        text = stdout.removeprefix("\ufeff").strip()
    if text[:1] == "{":
        try:
            return _envelope(read_json(text))
        except Unreadable:
            pass
    last = text.rfind("\n{") + 1
    if not last:
        return None
    try:
        return _envelope(read_json(text[last:]))
    except Unreadable:
        return None


def _envelope(value: Any) -> dict[str, Any] | None:
    if value.__class__ is dict and (value.get("ok").__class__ is bool or _only_error(value)):
        return value
    return None


def _only_error(value: dict[str, Any]) -> bool:
    """An envelope whose author forgot `ok`: an error object that is S2's by its members."""
    return "ok" not in value and value.get("error").__class__ is dict and envelope.error_of(value) is not None


def _profile(process: dict[str, Any]) -> Any:
    name = process.get("profile")
    return PROFILES.get(name) if name.__class__ is str else None


def _with_envelope(spoken: dict[str, Any], number: int | None, profile: Any) -> Reading:
    said = profile.get(number)
    error = envelope.error_of(spoken)
    if error is None or spoken.get("error") is None:
        return _bare(number, said)
    return Reading(
        True, envelope.fault_of(error, spoken.get("meta"), said, _ENVELOPE), "envelope", error, True
    )


def _timed_out() -> Reading:
    row = VOCABULARY.rows["TIMEOUT"]
    return Reading(
        failed=True, fatal=True, path="timeout", fault=_fault(row.code, Executed.MAYBE, "timeout", None)
    )


def _bare(number: int | None, said: Exit | None) -> Reading:
    """What an exit code alone says: its row where a table applies, else that nobody knows."""
    if said is None:
        executed = Executed.NO if number in _NOT_STARTED else Executed.MAYBE
        fault = _fault("INTERNAL_ERROR", executed, "exit", number)
    else:
        fault = _fault(said.code, said.executed, "exit", number)
    return Reading(failed=True, fatal=True, path="exit", fault=fault)


def _fault(code: str, executed: Executed, path: str, number: int | None) -> Fault:
    row = VOCABULARY.rows[code]
    recovery: Recovery = row.recovery
    return Fault(
        code=code,
        message=row.message,
        recovery=recovery,
        vocabulary="cli",
        details=None if number is None else {"exit": number},
        actor=row.actor,
        executed=executed,
        origin=Origin("envelope", path),
    )
