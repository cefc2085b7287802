"""A task's log for people: one line for each thing that happened, with its attempts and waits. Pure."""

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

Told = tuple[str, dict[str, Any]]
"""The words of a line, and the members it has beside them."""
Tries = dict[tuple[str, bool], int]
"""How often each step, and the undoing of each, was tried so far."""


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened."""

    at: str
    what: str
    text: str
    step: str | None = None
    code: str | None = None
    wait: float | None = None


def timeline(records: Iterable[Record]) -> list[Line]:
    """The lines of a log. What agents and people wrote is stripped and cut short; results and payloads are not shown."""
    tries: Tries = {}
    lines = []
    for record in records:
        what = type(record).__name__.lower()
        step = getattr(record, "step", None)
        text, more = _TEXTS[type(record)](record, tries)
        lines.append(Line(at=stamp(record.at), what=what, text=text, step=step, **more))
    return lines


def _plain(text: str | None) -> str:
    return truncate(strip(text or ""), _BYTES)


def _submitted(record: entries.Submitted, tries: Tries) -> Told:
    steps = "" if record.single else f": {len(record.steps)} steps"
    until = "" if record.until is None else f", wanted until {stamp(record.until)}"
    return f"submitted {_plain(record.type)}{steps}{until}", {}


def _taken(record: entries.Taken, tries: Tries) -> Told:
    how = "taken over from a worker that was lost" if record.takeover else "taken"
    return f"{how} by {_plain(record.worker)}", {}


def _started(record: entries.Started, tries: Tries) -> Told:
    return f"{_name(record)} begun, which must not happen twice", {}


def _name(record: Any) -> str:
    name = _plain(record.step)
    return f"undoing {name}" if getattr(record, "undo", False) else name


def _try(record: Any, tries: Tries) -> str:
    key = (record.step, record.undo)
    tries[key] = number = tries.get(key, 0) + 1
    return f"{_name(record)}, try {number}, {_seconds(record.at - record.began)}"


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.3g} s"


def _failed(record: entries.Failed, tries: Tries) -> Told:
    decision, fault = record.decision, record.fault
    text = f"{_try(record, tries)}: {_plain(fault.code)} {_plain(fault.message)}".rstrip()
    why = REASONS.get(decision.reason, _plain(decision.reason))
    if decision.action is Action.RETRY:
        wait = decision.delay or 0.0
        return f"{text}; again in {_seconds(wait)} ({why})", {"code": fault.code, "wait": wait}
    return f"{text}; {decision.action} ({why})", {"code": fault.code}


def _finished(record: entries.Finished, tries: Tries) -> Told:
    if record.degraded is not None:
        return f"{_name(record)}: a fallback stood in for {_plain(record.degraded)}", {
            "code": record.degraded
        }
    return f"{_try(record, tries)}: done", {}


def _effect(record: entries.Effect, tries: Tries) -> Told:
    return f"{_name(record)}: {_plain(record.name)} committed", {}


def _delegated(record: entries.Delegated, tries: Tries) -> Told:
    return f"{_plain(record.type)} delegated to {_plain(record.agent)}: done", {}


def _parked(record: entries.Parked, tries: Tries) -> Told:
    wait = record.until - record.at
    return f"{_name(record)}: the agent is busy; again in {_seconds(wait)}", {"wait": wait}


def _asked(record: entries.Asked, tries: Tries) -> Told:
    return f"{_name(record)} asks: {_plain(record.question)}", {}


def _answered(record: entries.Answered, tries: Tries) -> Told:
    return f"{_name(record)} was answered", {}


def _doubted(record: entries.Doubted, tries: Tries) -> Told:
    return f"{_name(record)} was interrupted; somebody has to look whether it happened", {}


def _verified(record: entries.Verified, tries: Tries) -> Told:
    return f"{_name(record)}: {'it had happened' if record.happened else 'it had not happened'}", {}


def _released(record: entries.Released, tries: Tries) -> Told:
    if record.until is None:
        return "waits until somebody says something", {}
    wait = max(0.0, record.until - record.at)
    return f"waits {_seconds(wait)}, until {stamp(record.until)}", {"wait": wait}


def _cancelled(record: entries.Cancelled, tries: Tries) -> Told:
    return "cancelled by request", {}


def _retried(record: entries.Retried, tries: Tries) -> Told:
    tries.clear()
    return "tried again by request", {}


def _undoing(record: entries.Undoing, tries: Tries) -> Told:
    if record.fault is None:
        return "what was done is being undone", {}
    return f"what was done is being undone, because of {_plain(record.fault.code)}", {
        "code": record.fault.code
    }


def _ended(record: entries.Ended, tries: Tries) -> Told:
    if record.fault is None:
        return record.status, {}
    return f"{record.status}: {_plain(record.fault.code)}", {"code": record.fault.code}


_TEXTS: dict[type[Record], Callable[[Any, Tries], Told]] = {
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
    entries.Undoing: _undoing,
    entries.Ended: _ended,
}
