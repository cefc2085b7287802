"""The first page and a trace's page: what is read for them, and their fragments, which the live view swaps."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from amends.page.charts import BARS, activity
from amends.page.models import UpstreamFigures, failure_rows, saved, timeline, upstream_rows
from amends.page.render import render
from amends.recorder import OUTCOMES, Event, Filter, Reader, group_traces, summarise
from amends.recorder.traces import seconds, stamp, subject

__all__ = ["EVENTS", "Query", "overview", "overview_fragments", "trace_fragments", "upstream_fragment"]

EVENTS = 1000
"""The newest events that the first page is made from."""
_ROWS = 100
_TEXT = 200


class Query(NamedTuple):
    """The filters of a request's query."""

    upstream: str = ""
    code: str = ""
    outcome: str = ""
    trace: str = ""
    before: float | None = None

    @classmethod
    def of(cls, query: QueryParams) -> Query:
        """Return the filters of a query; what cannot be read is ignored."""
        texts = {
            name: query.get(name, "").strip()[:_TEXT] for name in ("upstream", "code", "outcome", "trace")
        }
        try:
            before = float(query.get("before", ""))
        except ValueError:
            before = None
        if before is not None and before - before != 0:
            before = None
        return cls(before=before, **texts)

    @property
    def filter(self) -> Filter:
        """The filter of the recorder's reader."""
        return Filter(
            upstream=self.upstream, code=self.code, outcome=self.outcome, trace=self.trace, until=self.before
        )

    def text(self, **changes: object) -> str:
        """Return the query as text, with changes."""
        members = {**self._asdict(), **changes}
        return urlencode({name: value for name, value in members.items() if value not in {None, ""}})


async def overview(
    reader: Reader,
    query: Query,
    statuses: Callable[[], Sequence[UpstreamFigures]],
    root: str,
    on_thread: Callable[[Callable[[], dict[str, str]]], Awaitable[dict[str, str]]],
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return the fragments of the first page, rendered by `on_thread`, and the values of its frame."""
    events = await reader.events(query.filter, limit=EVENTS)
    known = statuses()
    fragments = await on_thread(lambda: overview_fragments(events, query, known, root))
    choices = {
        "upstreams": sorted(
            {event.upstream for event in events if event.upstream} | ({query.upstream} - {""})
        ),
        "codes": sorted({event.fault.code for event in events} | ({query.code} - {""})),
        "outcomes": list(OUTCOMES),
    }
    return fragments, choices


def upstream_fragment(events: Sequence[Event], known: Sequence[UpstreamFigures], root: str) -> dict[str, str]:
    """Return the part of the first page that changes without a new event: the figures of the upstreams."""
    rows = upstream_rows(known, events, time.time())
    return {"upstreams": render("upstreams.html", rows=rows, root=root, gateway=bool(known))}


def overview_fragments(
    events: Sequence[Event], query: Query, known: Sequence[UpstreamFigures], root: str
) -> dict[str, str]:
    """Return the parts of the first page by their ids; `known` are the figures of a gateway's upstreams."""
    now = time.time()
    traces = group_traces(events)
    chart, step = activity(traces, now)
    older = query.text(before=f"{events[-1].at:.3f}") if len(events) >= EVENTS else ""
    return {
        "saved": render("saved.html", figures=summarise(events), saved=saved(traces), seconds=seconds),
        "activity": render(
            "activity.html",
            chart=chart,
            step=seconds(step),
            whole=seconds(BARS * step),
            doubt=any(trace.outcome == "doubt" for trace in traces),
            events=len(events),
        ),
        **upstream_fragment(events, known, root),
        "failures": render(
            "failures.html",
            rows=failure_rows(traces[:_ROWS]),
            root=root,
            older=older,
            filtered=bool(query.text()),
        ),
    }


def trace_fragments(events: Sequence[Event], root: str) -> dict[str, str]:
    """Return the parts of a trace's page by their ids."""
    traces = []
    for trace in group_traces(events):
        chart, steps = timeline(trace)
        first = trace.events[0]
        traces.append(
            {
                "trace": trace,
                "chart": chart,
                "steps": steps,
                "subject": first.name or subject(first) or trace.code,
                "start": stamp(trace.began)[11:23],
                "whole": f"+{seconds(trace.ended - trace.began)}",
            }
        )
    return {"timeline": render("timeline.html", traces=traces, root=root)}
