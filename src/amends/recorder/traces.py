"""`group_traces`: the timeline of each failure, over all processes that recorded it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from amends.core.decision import REASONS
from amends.core.enums import Action
from amends.core.text import strip
from amends.recorder.event import ENDS, OUTCOMES, Event

__all__ = ["Trace", "TraceLine", "describe", "group_traces", "stamp", "subject"]


class TraceLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    One event as text.

    It is a member of `Trace.lines`.

    >>> from amends import Fault
    >>> event = Event(at=1.0, where="call", outcome="retry", fault=Fault(code="TIMEOUT"), wait=2.0)
    >>> [(line.code, line.wait) for line in group_traces([event])[0].lines]
    [('TIMEOUT', 2.0)]
    """

    at: str
    where: str
    outcome: str
    text: str
    code: str
    process: str = ""
    wait: float | None = None


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """
    The events of one trace in the order of time.

    `group_traces` makes it.

    >>> from amends import Fault
    >>> event = Event(at=1.0, where="call", outcome="retry", fault=Fault(code="TIMEOUT"), trace_id="4bf9")
    >>> [trace] = group_traces([event])
    >>> trace.id, trace.code, trace.outcome
    ('4bf9', 'TIMEOUT', 'retry')
    """

    id: str
    began: float
    ended: float
    outcome: str
    """The outcome of the last event that ended something; else of the last event."""
    code: str
    """The code of the failure that was passed on or raised; of a recovered one, the code of the first failure."""
    tries: int
    """The most tries that one operation made."""
    processes: tuple[str, ...]
    lines: tuple[TraceLine, ...]
    events: tuple[Event, ...]

    @property
    def sentence(self) -> str:
        """
        The outcome in a few words.

        For example "recovered after 2 tries, 1.4 s".
        """
        took = seconds(self.ended - self.began)
        if self.outcome in {"recovered", "fallback"}:
            return f"{self.outcome} after {self.tries} {'try' if self.tries == 1 else 'tries'}, {took}"
        return f"{self.outcome}: {OUTCOMES.get(self.outcome, self.outcome)}"


def group_traces(events: Iterable[Event]) -> list[Trace]:
    """
    Return the traces that events belong to, the newest first. Events without a trace id are one trace each.

    >>> from amends import Fault
    >>> fault = Fault(code="TIMEOUT", status=504)
    >>> first = Event(at=1.0, where="call", outcome="retry", fault=fault, trace_id="4bf9", name="search", wait=1.0)
    >>> then = Event(at=2.4, where="call", outcome="recovered", fault=fault, trace_id="4bf9", attempt=2)
    >>> group_traces([then, first])[0].sentence
    'recovered after 2 tries, 1.4 s'
    """
    grouped: dict[str, list[Event]] = {}
    for index, event in enumerate(sorted(events, key=lambda event: event.at)):
        grouped.setdefault(event.trace_id or f"\0{event.id or index}", []).append(event)
    traces = [_trace("" if id.startswith("\0") else id, of_it) for id, of_it in grouped.items()]
    return sorted(traces, key=lambda trace: -trace.ended)


def _trace(id: str, events: list[Event]) -> Trace:
    ends = [event for event in events if event.outcome in ENDS]
    return Trace(
        id=id,
        began=events[0].at - (events[0].elapsed or 0.0),
        ended=events[-1].at,
        outcome=(ends or events)[-1].outcome,
        code=_code(ends, events),
        tries=max(event.attempt for event in events),
        processes=tuple(dict.fromkeys(event.process for event in events if event.process)),
        lines=tuple(_line(event) for event in events),
        events=tuple(events),
    )


def _code(ends: list[Event], events: list[Event]) -> str:
    """Return the code that a failure ended with; of one that was recovered, the code it began with."""
    last = ends[-1] if ends else events[0]
    return events[0].fault.code if last.succeeded or last.outcome == "lost" else last.fault.code


def _line(event: Event) -> TraceLine:
    return TraceLine(
        at=stamp(event.at),
        where=event.where,
        outcome=event.outcome,
        text=describe(event),
        code=event.fault.code,
        process=event.process,
        wait=event.wait,
    )


def stamp(at: float) -> str:
    """Return a time as RFC 3339 text in UTC with milliseconds."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def subject(event: Event) -> str:
    """Return what was asked for, as one short text."""
    name = "" if event.url and event.method and event.name.startswith(f"{event.method} ") else event.name
    named = " ".join(dict.fromkeys(each for each in (name, event.method, event.url) if each))
    return f"{event.upstream}: {named}" if event.upstream and event.where == "gateway" else named


def describe(event: Event) -> str:
    """
    Return an event as one sentence.

    >>> from amends import Fault, decide
    >>> fault = Fault(code="RATE_LIMITED", status=429, retry_after=5)
    >>> event = Event(at=1.0, where="call", outcome="retry", fault=fault, name="search", decision=decide(fault), wait=5)
    >>> describe(event)
    'search: RATE_LIMITED 429, try 1; retry in 5 s (the failing service said how long to wait)'
    """
    if event.outcome == "lost":
        return f"{event.count} events could not be written"
    fault, decision = event.fault, event.decision
    code = strip(fault.code) + ("" if fault.status is None else f" {fault.status}")
    what = subject(event)
    text = f"{what}: {code}" if what else code
    if event.where not in {"http server", "mcp server", "a2a server", "command line"}:
        text += f", try {event.attempt}"
    why = "" if decision is None else REASONS.get(decision.reason, decision.reason)
    if event.outcome == "retry" and decision is not None and decision.action is Action.RETRY:
        return f"{text}; retry in {seconds(decision.delay or event.wait or 0.0)} ({why})"
    if event.outcome in {"recovered", "fallback"}:
        took = "" if event.elapsed is None else f" after {seconds(event.elapsed)}"
        return f"{text}; {event.outcome}{took}"
    if event.outcome == "sent":
        status = "" if event.status is None else f" with {event.status}"
        return f"{text}; sent to the caller{status}{f' as {event.sent}' if event.sent else ''}"
    reason = why or OUTCOMES.get(event.outcome, "")
    return f"{text}; {event.outcome}{f' ({reason})' if reason else ''}"


def seconds(value: float) -> str:
    """
    Return a duration as short text.

    >>> [seconds(value) for value in (0.0214, 1.4, 90, 300, 86400, 864000)]
    ['21 ms', '1.4 s', '90 s', '5 min', '24 h', '10 d']
    """
    if value < 1:
        return f"{value * 1000:.0f} ms"
    for size, name, most in ((1, "s", 120), (60, "min", 7200), (3600, "h", 172800)):
        if value < most:
            return f"{value / size:.3g} {name}"
    return f"{value / 86400:.3g} d"
