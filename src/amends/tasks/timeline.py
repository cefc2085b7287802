"""A readable timeline of a task's log: one line per record, with attempts and waits. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

import msgspec

import amends.tasks.entries as log_entries
from amends.core.decision import REASONS
from amends.core.enums import Action
from amends.core.redaction import redact
from amends.core.text import strip, truncate
from amends.effects.steps import step_text
from amends.tasks.documents import stamp
from amends.tasks.entries import Record

__all__ = ["Line", "timeline"]

_BYTES = 160

_STEPPED = {"begin": "began", "end": "ended", "freed": "did not happen", "waiting": "waits"}

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
    """Return the lines of a log. Texts of agents and users are stripped, redacted and truncated; results and payloads are left out."""
    counts: AttemptCounts = {}
    return [_line(record, counts) for record in records]


def _line(record: Record, counts: AttemptCounts) -> Line:
    code: str | None = None
    wait: float | None = None
    step: str | None = getattr(record, "step", None)
    name = f"undoing {_plain(step)}" if getattr(record, "undo", False) else _plain(step)
    match record:
        case log_entries.Submitted():
            steps = "" if record.single else f": {len(record.steps)} steps"
            deadline = "" if record.until is None else f", deadline {stamp(record.until)}"
            text = f"submitted {_plain(record.type)}{steps}{deadline}"
        case log_entries.Taken():
            how = "taken over after its worker was lost" if record.takeover else "taken"
            text = f"{how} by {_plain(record.worker)}"
        case log_entries.Started():
            text = f"{name} started; it must not happen twice"
        case log_entries.Failed():
            decision, code = record.decision, record.fault.code
            what = f"{_plain(code)} {_plain(record.fault.message)}".rstrip()
            why = REASONS.get(decision.reason, _plain(decision.reason))
            wait = (decision.delay or 0.0) if decision.action is Action.RETRY else None
            next = decision.action if wait is None else f"retry in {_seconds(wait)}"
            text = f"{name}, {_attempt(record, counts)}: {what}; {next} ({why})"
        case log_entries.Finished() if record.degraded is not None:
            code = record.degraded
            text = f"{name}: done by a fallback after {_plain(code)}"
        case log_entries.Finished():
            text = f"{name}, {_attempt(record, counts)}: done"
        case log_entries.Effect():
            text = f"{name}: {_plain(record.name)} committed"
        case log_entries.Stepped():
            text = f"{name}: {_plain(step_text(record.record.step))} {_STEPPED[record.kind]}"
        case log_entries.Delegated():
            text = f"{_plain(record.type)} delegated to {_plain(record.agent)}: done"
        case log_entries.Parked():
            wait = record.until - record.at
            text = f"{name}: the agent is busy; retry in {_seconds(wait)}"
        case log_entries.Asked():
            text = f"{name} asks: {_plain(record.question)}"
        case log_entries.Answered():
            text = f"{name} was answered"
        case log_entries.Doubted():
            inner = "" if record.inner is None else " in a step of its own"
            text = f"{name} was interrupted{inner}; verify whether it happened"
        case log_entries.Verified():
            text = f"{name} verified: it {'happened' if record.happened else 'did not happen'}"
        case log_entries.Released():
            text = "waits for an answer, a verification or a cancellation"
            if record.until is not None:
                wait = max(0.0, record.until - record.at)
                text = f"waits {_seconds(wait)}, until {stamp(record.until)}"
        case log_entries.Cancelled():
            text = "cancelled by request"
        case log_entries.Retried():
            counts.clear()
            text = "retried by request"
        case log_entries.Repaired():
            text = f"continued after entry {record.valid}; the entries after it do not fit the task"
        case log_entries.Undoing():
            code = None if record.fault is None else record.fault.code
            text = "undoing the finished steps" + ("" if code is None else f" after {_plain(code)}")
        case log_entries.Ended():
            code = None if record.fault is None else record.fault.code
            text = record.status if code is None else f"{record.status}: {_plain(code)}"
        case _:
            assert_never(record)
    return Line(
        at=stamp(record.at), what=type(record).__name__.lower(), text=text, step=step, code=code, wait=wait
    )


def _plain(text: str | None) -> str:
    return truncate(redact(strip(text or "")), _BYTES)


def _attempt(record: log_entries.Failed | log_entries.Finished, counts: AttemptCounts) -> str:
    key = (record.step, record.undo)
    counts[key] = counts.get(key, 0) + 1
    return f"attempt {counts[key]}, {_seconds(record.at - record.began)}"


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.3g} s"
