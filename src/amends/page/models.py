"""What the page shows, made from events and the figures of upstreams. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Protocol
from urllib.parse import quote, urlencode

import msgspec
from markupsafe import Markup

from amends.core.decision import REASONS
from amends.core.fence import for_llm
from amends.page.charts import SENT, SUCCEEDED, share_bar, tone, waterfall
from amends.recorder import OUTCOMES, Event, Trace
from amends.recorder.event import ENDS
from amends.recorder.traces import describe, seconds, stamp, subject

__all__ = [
    "FailureRow",
    "Saved",
    "TimelineStep",
    "UpstreamRow",
    "failure_rows",
    "saved",
    "timeline",
    "upstream_rows",
]

_CODES = 5
_SENT = {
    "sent": "the failure, in the caller's format",
    "passed-on": "the upstream's answer, unchanged",
    "refused": "a refusal; the call was not sent on",
    "gave-up": "a typed error, raised to the caller",
    "recovered": "the result of a later try",
    "fallback": "the result of the alternative",
}


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """What recovery saved, by trace: a failure that two processes recorded counts once."""

    failures: int
    """Calls that failed at least once and ended."""
    recovered: int
    sent: int
    """Failures that were sent to callers; whether those recovered is not known here."""
    model_bytes: int
    """Bytes of failures that a model did not have to read, because the call was recovered before."""

    @property
    def share(self) -> str:
        """The share of failures that were recovered."""
        return f"{100 * self.recovered / self.failures:.0f} %" if self.failures else "–"


def saved(traces: Sequence[Trace]) -> Saved:
    """Return what recovery saved."""
    ended = [trace for trace in traces if trace.outcome in ENDS]
    recovered = [trace for trace in ended if trace.outcome in SUCCEEDED]
    unread = sum(
        _read_by_a_model(event) for trace in recovered for event in trace.events if event.outcome not in ENDS
    )
    sent = sum(trace.outcome in SENT for trace in ended)
    return Saved(failures=len(ended) - sent, recovered=len(recovered), sent=sent, model_bytes=unread)


_read_sizes: dict[tuple[str, float, str], int] = {}
_REMEMBERED = 4_000


def _read_by_a_model(event: Event) -> int:
    """Return the bytes that a model would have read of an event's failure. They are the same at every look."""
    key = (event.id, event.at, event.trace_id)
    size = _read_sizes.get(key)
    if size is None:
        size = len(for_llm(event.fault).encode())
        if len(_read_sizes) >= _REMEMBERED:
            _read_sizes.clear()
        _read_sizes[key] = size
    return size


class UpstreamRow(msgspec.Struct, frozen=True, kw_only=True):
    """A service and its figures; a figure that is not known is a dash."""

    name: str
    kind: str = ""
    state: str = ""
    tone: str = "good"
    rate: str = "–"
    calls: str = "–"
    failed: str = "–"
    recovered: str = "–"
    p50: str = "–"
    p99: str = "–"
    waiting: str = "–"
    bar: Markup = Markup("")
    codes: tuple[tuple[str, int, str], ...] = ()
    """(code, count, colour class)"""


class UpstreamFigures(Protocol):
    """The figures of one of a gateway's upstreams; `UpstreamStatus` of the gateway has them."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def resumes_in(self) -> float: ...
    @property
    def waiting(self) -> int: ...
    @property
    def calls(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def recovered(self) -> int: ...
    @property
    def rate(self) -> float: ...
    @property
    def p50(self) -> float | None: ...
    @property
    def p99(self) -> float | None: ...
    @property
    def codes(self) -> dict[str, int]: ...


def upstream_rows(
    statuses: Sequence[UpstreamFigures], events: Sequence[Event], now: float
) -> list[UpstreamRow]:
    """Return the services: those of the gateway with its figures, others with what is recorded about them."""
    rows = [_gateway_row(each, now) for each in statuses]
    known = {row.name for row in rows}
    others: dict[str, list[Event]] = {}
    for event in events:
        if event.upstream and event.upstream not in known:
            others.setdefault(event.upstream, []).append(event)
    return rows + [_recorded_row(name, others[name]) for name in sorted(others)]


def _gateway_row(status: UpstreamFigures, now: float) -> UpstreamRow:
    state, colour = "healthy", "good"
    if status.state == "ramp":
        state, colour = "ramping up", "wait"
    elif status.state == "shut" or status.resumes_in > 0:
        until = datetime.fromtimestamp(now + status.resumes_in, UTC)
        state, colour = f"shut until {until:%H:%M:%S}", "bad"
    codes = _coloured(Counter(status.codes))
    share = f" ({100 * status.failed / status.calls:.1f} %)" if status.calls else ""
    return UpstreamRow(
        name=status.name,
        kind=status.kind,
        state=state,
        tone=colour,
        rate=f"{status.rate:.1f}/s",
        calls=f"{status.calls:,}",
        failed=f"{status.failed:,}{share}",
        recovered=f"{status.recovered:,}",
        p50=_duration(status.p50),
        p99=_duration(status.p99),
        waiting=str(status.waiting),
        bar=share_bar(
            [(count, colour) for _, count, colour in codes], max(status.calls, sum(status.codes.values()))
        ),
        codes=codes,
    )


def _recorded_row(name: str, events: list[Event]) -> UpstreamRow:
    ends = [event for event in events if event.outcome in ENDS]
    times = sorted(event.elapsed for event in ends if event.elapsed is not None)
    # A recovered call has an event for each failed try, too: calls are counted, as far as one has ended.
    counted = ends or events
    codes = _coloured(Counter(event.fault.code for event in counted))
    recovered = sum(event.succeeded for event in ends)
    return UpstreamRow(
        name=name,
        kind=events[0].where,
        failed=f"{len(ends) - recovered:,}",
        recovered=f"{recovered:,}",
        p50=_duration(times[len(times) // 2] if times else None),
        p99=_duration(times[min(len(times) - 1, int(0.99 * len(times)))] if times else None),
        bar=share_bar([(count, colour) for _, count, colour in codes], len(counted)),
        codes=codes,
    )


def _coloured(counts: Counter[str]) -> tuple[tuple[str, int, str], ...]:
    common = counts.most_common(_CODES)
    rest = counts.total() - sum(count for _, count in common)
    named = [(code, count, f"c{index}") for index, (code, count) in enumerate(common)]
    return (*named, ("others", rest, "c5")) if rest else tuple(named)


def _duration(value: float | None) -> str:
    return "–" if value is None else seconds(value)


class FailureRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list of failures: a trace."""

    link: str
    at: str
    time: str
    where: str
    upstream: str
    what: str
    code: str
    status: str
    vendor: str
    decision: str
    why: str
    tries: int
    outcome: str
    sentence: str
    tone: str


def failure_rows(traces: Sequence[Trace]) -> list[FailureRow]:
    """Return failures, each with what became of it."""
    return [_failure_row(trace) for trace in traces]


def _failure_row(trace: Trace) -> FailureRow:
    first = trace.events[0]
    last = next((event for event in reversed(trace.events) if event.outcome in ENDS), trace.events[-1])
    decided = next((event.decision for event in reversed(trace.events) if event.decision is not None), None)
    at = stamp(trace.ended)
    vendor = next((event.vendor for event in trace.events if event.vendor), "")
    return FailureRow(
        link=_link(trace.id) if trace.id else f"event/{first.id}",
        at=at,
        time=at[11:23],
        where=first.where,
        upstream=first.upstream,
        what="" if last.outcome == "lost" else (first.name or subject(first)),
        code=trace.code,
        status=_status(first if last.succeeded or last.outcome not in ENDS else last),
        vendor=vendor,
        decision="" if decided is None else str(decided.action.value),
        why="" if decided is None else REASONS.get(decided.reason, decided.reason),
        tries=trace.tries,
        outcome=trace.outcome,
        sentence=_sentence(trace, last),
        tone=tone(trace.outcome),
    )


def _status(event: Event) -> str:
    return "" if event.fault.status is None else str(event.fault.status)


def _link(trace: str) -> str:
    """Return the address of a trace's page. A caller may have chosen the id; one with a slash is found by the filter."""
    return (
        f"?{urlencode({'trace': trace})}" if "/" in trace or trace in {".", ".."} else f"trace/{quote(trace)}"
    )


def _sentence(trace: Trace, last: Event) -> str:
    if last.outcome == "lost":
        return describe(last)
    if last.succeeded:
        return trace.sentence
    tries = f" after {trace.tries} tries" if trace.tries > 1 else ""
    return f"{trace.outcome.replace('-', ' ')}{tries}"


class TimelineStep(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a trace."""

    at: str
    offset: str
    where: str
    process: str
    outcome: str
    meaning: str
    tone: str
    text: str
    request: str
    facts: tuple[tuple[str, str], ...]
    read: tuple[tuple[str, str], ...]
    details: str
    sent: str
    model: str
    model_bytes: int


def timeline(trace: Trace) -> tuple[Markup, list[TimelineStep]]:
    """Return the chart and the steps of a trace."""
    return waterfall(trace.events), [_step(event, trace.began) for event in trace.events]


def _step(event: Event, began: float) -> TimelineStep:
    model = for_llm(event.fault)
    return TimelineStep(
        at=stamp(event.at),
        offset=f"+{seconds(max(0.0, event.at - began))}",
        where=event.where,
        process=event.process,
        outcome=event.outcome,
        meaning=OUTCOMES.get(event.outcome, ""),
        tone=tone(event.outcome),
        text=describe(event),
        request=" ".join(dict.fromkeys(each for each in (event.upstream, event.name, event.url) if each)),
        facts=tuple(_facts(event)),
        read=tuple(_read(event)),
        details=_details(event),
        sent=_sent(event),
        model=model,
        model_bytes=len(model.encode()),
    )


def _facts(event: Event) -> list[tuple[str, str]]:
    decision = event.decision
    found = [("try", str(event.attempt))]
    if event.elapsed is not None:
        found.append(("since the first try", seconds(event.elapsed)))
    if decision is not None:
        found.append(
            ("decision", f"{decision.action.value}: {REASONS.get(decision.reason, decision.reason)}")
        )
    wait = event.wait if event.wait is not None else (decision.delay if decision else None)
    if wait is not None:
        found.append(("wait", seconds(wait)))
    return found


def _read(event: Event) -> list[tuple[str, str]]:
    fault = event.fault
    members: list[tuple[str, object]] = [
        ("code", fault.code),
        ("status", fault.status),
        ("vendor", event.vendor),
        ("message", fault.message),
        ("recovery", fault.recovery),
        ("executed", fault.executed),
        ("retry after", None if fault.retry_after is None else seconds(fault.retry_after)),
        ("field", fault.field),
        ("trace id of the service", fault.trace_id),
        *(("suggestion", each) for each in fault.suggestions),
    ]
    return [(name, str(getattr(value, "value", value))) for name, value in members if value not in {None, ""}]


def _details(event: Event) -> str:
    found = {
        name: value
        for name, value in (
            ("details", event.fault.details),
            ("extensions", event.fault.extensions),
            ("facts", event.facts),
        )
        if value
    }
    return msgspec.json.format(msgspec.json.encode(found), indent=2).decode() if found else ""


def _sent(event: Event) -> str:
    text = _SENT.get(event.outcome, "")
    if not text:
        return ""
    status = "" if event.status is None else f"; status {event.status}"
    return f"{text}{status}{f'; code {event.sent}' if event.sent else ''}"
