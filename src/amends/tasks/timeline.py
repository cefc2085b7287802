"""A readable timeline of a task's log: one line per record, with attempts and waits. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

import amends.tasks.entries as log_entries
from amends.core.decision import REASONS
from amends.core.enums import Action
from amends.core.text import strip, truncate
from amends.tasks.documents import stamp
from amends.tasks.entries import Record

__all__ = ["Line", "timeline"]

_BYTES = 160

LineText = tuple[str, dict[str, Any]]
"""The text of a line, and its further members."""
AttemptCounts = dict[tuple[str, bool], int]
"""The number of attempts so far, by step and by whether they undo it."""


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The line of one record."""

    at: str
    what: str
    text: str
    step: str | None = None
    code: str | None = None
    wait: float | None = None


def timeline(records: Iterable[Record]) -> list[Line]:
    """Return the lines of a log. Texts of agents and users are stripped and truncated; results and payloads are left out."""
    counts: AttemptCounts = {}
    lines = []
    for record in records:
        what = type(record).__name__.lower()
        step = getattr(record, "step", None)
        text, more = _TEXTS[type(record)](record, counts)
        lines.append(Line(at=stamp(record.at), what=what, text=text, step=step, **more))
    return lines


def _plain(text: str | None) -> str:
    return truncate(strip(text or ""), _BYTES)


def _submitted(record: log_entries.Submitted, counts: AttemptCounts) -> LineText:
    steps = "" if record.single else f": {len(record.steps)} steps"
    until = "" if record.until is None else f", deadline {stamp(record.until)}"
    return f"submitted {_plain(record.type)}{steps}{until}", {}


def _taken(record: log_entries.Taken, counts: AttemptCounts) -> LineText:
    how = "taken over after its worker was lost" if record.takeover else "taken"
    return f"{how} by {_plain(record.worker)}", {}


def _started(record: log_entries.Started, counts: AttemptCounts) -> LineText:
    return f"{_name(record)} started; it must not happen twice", {}


def _name(record: Any) -> str:
    name = _plain(record.step)
    return f"undoing {name}" if getattr(record, "undo", False) else name


def _attempt_text(record: Any, counts: AttemptCounts) -> str:
    key = (record.step, record.undo)
    counts[key] = number = counts.get(key, 0) + 1
    return f"{_name(record)}, attempt {number}, {_seconds(record.at - record.began)}"


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.3g} s"


def _failed(record: log_entries.Failed, counts: AttemptCounts) -> LineText:
    decision, fault = record.decision, record.fault
    text = f"{_attempt_text(record, counts)}: {_plain(fault.code)} {_plain(fault.message)}".rstrip()
    why = REASONS.get(decision.reason, _plain(decision.reason))
    if decision.action is Action.RETRY:
        wait = decision.delay or 0.0
        return f"{text}; retry in {_seconds(wait)} ({why})", {"code": fault.code, "wait": wait}
    return f"{text}; {decision.action} ({why})", {"code": fault.code}


def _finished(record: log_entries.Finished, counts: AttemptCounts) -> LineText:
    if record.degraded is not None:
        return f"{_name(record)}: done by a fallback after {_plain(record.degraded)}", {
            "code": record.degraded
        }
    return f"{_attempt_text(record, counts)}: done", {}


def _effect(record: log_entries.Effect, counts: AttemptCounts) -> LineText:
    return f"{_name(record)}: {_plain(record.name)} committed", {}


def _delegated(record: log_entries.Delegated, counts: AttemptCounts) -> LineText:
    return f"{_plain(record.type)} delegated to {_plain(record.agent)}: done", {}


def _parked(record: log_entries.Parked, counts: AttemptCounts) -> LineText:
    wait = record.until - record.at
    return f"{_name(record)}: the agent is busy; retry in {_seconds(wait)}", {"wait": wait}


def _asked(record: log_entries.Asked, counts: AttemptCounts) -> LineText:
    return f"{_name(record)} asks: {_plain(record.question)}", {}


def _answered(record: log_entries.Answered, counts: AttemptCounts) -> LineText:
    return f"{_name(record)} was answered", {}


def _doubted(record: log_entries.Doubted, counts: AttemptCounts) -> LineText:
    return f"{_name(record)} was interrupted; verify whether it happened", {}


def _verified(record: log_entries.Verified, counts: AttemptCounts) -> LineText:
    return f"{_name(record)} verified: it {'happened' if record.happened else 'did not happen'}", {}


def _released(record: log_entries.Released, counts: AttemptCounts) -> LineText:
    if record.until is None:
        return "waits for an answer, a verification or a cancellation", {}
    wait = max(0.0, record.until - record.at)
    return f"waits {_seconds(wait)}, until {stamp(record.until)}", {"wait": wait}


def _cancelled(record: log_entries.Cancelled, counts: AttemptCounts) -> LineText:
    return "cancelled by request", {}


def _retried(record: log_entries.Retried, counts: AttemptCounts) -> LineText:
    counts.clear()
    return "retried by request", {}


def _repaired(record: log_entries.Repaired, counts: AttemptCounts) -> LineText:
    return f"continued after entry {record.valid}; the entries after it do not fit the task", {}


def _undoing(record: log_entries.Undoing, counts: AttemptCounts) -> LineText:
    if record.fault is None:
        return "undoing the finished steps", {}
    return f"undoing the finished steps after {_plain(record.fault.code)}", {"code": record.fault.code}


def _ended(record: log_entries.Ended, counts: AttemptCounts) -> LineText:
    if record.fault is None:
        return record.status, {}
    return f"{record.status}: {_plain(record.fault.code)}", {"code": record.fault.code}


_TEXTS: dict[type[Record], Callable[[Any, AttemptCounts], LineText]] = {
    log_entries.Submitted: _submitted,
    log_entries.Taken: _taken,
    log_entries.Started: _started,
    log_entries.Failed: _failed,
    log_entries.Finished: _finished,
    log_entries.Effect: _effect,
    log_entries.Delegated: _delegated,
    log_entries.Parked: _parked,
    log_entries.Asked: _asked,
    log_entries.Answered: _answered,
    log_entries.Doubted: _doubted,
    log_entries.Verified: _verified,
    log_entries.Released: _released,
    log_entries.Cancelled: _cancelled,
    log_entries.Retried: _retried,
    log_entries.Repaired: _repaired,
    log_entries.Undoing: _undoing,
    log_entries.Ended: _ended,
}
