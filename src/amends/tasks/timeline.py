"""A readable timeline of a task's log: one line per record, with attempts and waits. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from amends.core.decision import REASONS
from amends.core.enums import Action
from amends.core.text import strip, truncate
from amends.tasks import entries
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


def _submitted(record: entries.Submitted, counts: AttemptCounts) -> LineText:
    steps = "" if record.single else f": {len(record.steps)} steps"
    until = "" if record.until is None else f", deadline {stamp(record.until)}"
    return f"submitted {_plain(record.type)}{steps}{until}", {}


def _taken(record: entries.Taken, counts: AttemptCounts) -> LineText:
    how = "taken over after its worker was lost" if record.takeover else "taken"
    return f"{how} by {_plain(record.worker)}", {}


def _started(record: entries.Started, counts: AttemptCounts) -> LineText:
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


def _failed(record: entries.Failed, counts: AttemptCounts) -> LineText:
    decision, fault = record.decision, record.fault
    text = f"{_attempt_text(record, counts)}: {_plain(fault.code)} {_plain(fault.message)}".rstrip()
    why = REASONS.get(decision.reason, _plain(decision.reason))
    if decision.action is Action.RETRY:
        wait = decision.delay or 0.0
        return f"{text}; retry in {_seconds(wait)} ({why})", {"code": fault.code, "wait": wait}
    return f"{text}; {decision.action} ({why})", {"code": fault.code}


def _finished(record: entries.Finished, counts: AttemptCounts) -> LineText:
    if record.degraded is not None:
        return f"{_name(record)}: done by a fallback after {_plain(record.degraded)}", {
            "code": record.degraded
        }
    return f"{_attempt_text(record, counts)}: done", {}


def _effect(record: entries.Effect, counts: AttemptCounts) -> LineText:
    return f"{_name(record)}: {_plain(record.name)} committed", {}


def _delegated(record: entries.Delegated, counts: AttemptCounts) -> LineText:
    return f"{_plain(record.type)} delegated to {_plain(record.agent)}: done", {}


def _parked(record: entries.Parked, counts: AttemptCounts) -> LineText:
    wait = record.until - record.at
    return f"{_name(record)}: the agent is busy; retry in {_seconds(wait)}", {"wait": wait}


def _asked(record: entries.Asked, counts: AttemptCounts) -> LineText:
    return f"{_name(record)} asks: {_plain(record.question)}", {}


def _answered(record: entries.Answered, counts: AttemptCounts) -> LineText:
    return f"{_name(record)} was answered", {}


def _doubted(record: entries.Doubted, counts: AttemptCounts) -> LineText:
    return f"{_name(record)} was interrupted; verify whether it happened", {}


def _verified(record: entries.Verified, counts: AttemptCounts) -> LineText:
    return f"{_name(record)} verified: it {'happened' if record.happened else 'did not happen'}", {}


def _released(record: entries.Released, counts: AttemptCounts) -> LineText:
    if record.until is None:
        return "waits for an answer, a verification or a cancellation", {}
    wait = max(0.0, record.until - record.at)
    return f"waits {_seconds(wait)}, until {stamp(record.until)}", {"wait": wait}


def _cancelled(record: entries.Cancelled, counts: AttemptCounts) -> LineText:
    return "cancelled by request", {}


def _retried(record: entries.Retried, counts: AttemptCounts) -> LineText:
    counts.clear()
    return "retried by request", {}


def _repaired(record: entries.Repaired, counts: AttemptCounts) -> LineText:
    return f"continued after entry {record.valid}; the entries after it do not fit the task", {}


def _undoing(record: entries.Undoing, counts: AttemptCounts) -> LineText:
    if record.fault is None:
        return "undoing the finished steps", {}
    return f"undoing the finished steps after {_plain(record.fault.code)}", {"code": record.fault.code}


def _ended(record: entries.Ended, counts: AttemptCounts) -> LineText:
    if record.fault is None:
        return record.status, {}
    return f"{record.status}: {_plain(record.fault.code)}", {"code": record.fault.code}


_TEXTS: dict[type[Record], Callable[[Any, AttemptCounts], LineText]] = {
    entries.Submitted: _submitted,
    entries.Taken: _taken,
    entries.Started: _started,
    entries.Failed: _failed,
    entries.Finished: _finished,
    entries.Effect: _effect,
    entries.Delegated: _delegated,
    entries.Parked: _parked,
    entries.Asked: _asked,
    entries.Answered: _answered,
    entries.Doubted: _doubted,
    entries.Verified: _verified,
    entries.Released: _released,
    entries.Cancelled: _cancelled,
    entries.Retried: _retried,
    entries.Repaired: _repaired,
    entries.Undoing: _undoing,
    entries.Ended: _ended,
}
