"""
Finished commands (S2): {"exit", "stdout", "stderr", "timed_out", "profile"}, or the envelope alone.

Order of evidence: the time-out, the envelope, the exit code. An exit table is used only for a tool that wrote an
envelope or was named conformant: 7 and 9 mean opposite things in the two published ones. Where `ok` and the exit
code disagree, the side that reports failure wins.

The envelope is all of stdout, or its end after other output. If the command did not exit with 0, it may also be followed
by other lines, or be on stderr: with exit 0 such an object is part of a log.
"""

from __future__ import annotations

import re
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
    code = process.get("exit")
    number = code if code.__class__ is int else None
    if process.get("timed_out") is True:
        return _timed_out()
    spoken = _spoken(process.get("stdout"), anywhere=number != 0)
    if spoken is None and number != 0:
        spoken = _spoken(process.get("stderr"), anywhere=True)
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


def _spoken(output: Any, *, anywhere: bool) -> dict[str, Any] | None:
    """Return the envelope in a stream: all of it, or its end; with `anywhere`, the last one that begins a line."""
    if output.__class__ is dict:
        return _envelope(output)
    if isinstance(output, bytes):
        output = output.decode("utf-8", "replace")
    if output.__class__ is not str:
        return None
    text = output
    if not (output[:1] == "{" and output[-1] == "}"):
        text = output.removeprefix("\ufeff").strip()
    found = _read(text) if text[:1] == "{" else None
    if found is None and (last := text.rfind("\n{") + 1):
        found = _read(text[last:])
    return _last_of(text[-_SEARCHED:]) if found is None and anywhere else found


_SEARCHED = 256 * 1024
"""Characters at the end of a stream in which an envelope that other lines follow is looked for."""
_CANDIDATES = 50
_CONTINUES = re.compile(r"\s*[\]},]")
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}]', re.DOTALL)


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
