"""Charts as SVG, rendered on the server. Colours are classes of the style sheet, so they follow light and dark mode."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from amends.recorder import Event, Trace
from amends.recorder.event import ENDS

__all__ = ["BARS", "SENT", "SUCCEEDED", "activity", "share_bar", "tone", "waterfall"]

SUCCEEDED = frozenset({"recovered", "fallback"})
SENT = frozenset({"sent", "refused"})
"""The outcomes of failures that were sent to a caller, of which it is not known whether the caller recovered."""
_STACK = {"sent": "sent to callers", "doubt": "in doubt", "bad": "not recovered", "good": "recovered"}
BARS = 60
_STEPS = (1, 2, 5, 10, 30, 60, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600)
"""Seconds that one bar covers."""


def tone(outcome: str) -> str:
    """Return the colour class of an outcome."""
    if outcome in SUCCEEDED:
        return "good"
    if outcome in SENT:
        return "sent"
    if outcome in {"doubt", "lost"}:
        return "doubt"
    return "bad" if outcome in ENDS else "wait"


def activity(traces: Iterable[Trace], now: float) -> tuple[Markup, int]:
    """Return a chart of ended failures over time, by what became of them, and the seconds of one bar."""
    ends = [(trace.ended, tone(trace.outcome)) for trace in traces if trace.outcome in ENDS]
    oldest = min((at for at, _ in ends), default=now)
    step = next((each for each in _STEPS if (now - oldest) / each < BARS - 1), _STEPS[-1])
    last = int(now // step)
    bars = [dict.fromkeys(_STACK, 0) for _ in range(BARS)]
    for at, kind in ends:
        index = BARS - 1 - (last - int(at // step))
        if 0 <= index < BARS:
            bars[index][kind] += 1
    top = max(sum(bar.values()) for bar in bars) or 1
    parts = []
    for index, bar in enumerate(bars):
        y = 64.0
        for kind, count in bar.items():
            height = 60 * count / top
            y -= height
            if count:
                parts.append(
                    f'<rect class="{kind}" x="{index * 10 + 1}" y="{y:.1f}" width="8" height="{height:.1f}" rx="1"/>'
                )
    totals = ", ".join(f"{sum(bar[kind] for bar in bars)} {name}" for kind, name in _STACK.items())
    label = f"{totals}; {BARS} bars of {step} s"
    return _svg(
        f'<svg class="activity" viewBox="0 0 600 66" preserveAspectRatio="none" role="img" aria-label="{label}">'
        f'<line class="axis" x1="0" y1="65" x2="600" y2="65"/>{"".join(parts)}</svg>'
    ), step


def share_bar(parts: Sequence[tuple[int, str]], total: int) -> Markup:
    """Return a bar with one segment per (count, class); what is left of the total stays empty."""
    x, drawn = 0.0, []
    for count, tone in parts:
        width = 100 * count / max(total, 1)
        drawn.append(f'<rect class="{tone}" x="{x:.2f}" y="0" width="{max(width, 0.5):.2f}" height="8"/>')
        x += width
    return _svg(
        '<svg class="share" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        f'<rect class="rest" x="0" y="0" width="100" height="8"/>{"".join(drawn)}</svg>'
    )


def waterfall(events: Sequence[Event]) -> Markup:
    """Return the tries and waits of a trace on one axis of time, one lane per event."""
    spans: list[list[float]] = []
    lanes: dict[tuple[str, str], list[float]] = {}
    for event in events:
        before = lanes.get((event.where, event.process))
        began = event.at - (event.elapsed or 0.0)
        if before is not None:
            before[2] = max(0.0, min(before[2], event.at - before[1]))
            began = before[1] + before[2]
        span = [min(began, event.at), event.at, (event.wait or 0.0) if event.outcome == "retry" else 0.0]
        spans.append(span)
        lanes[event.where, event.process] = span
    if not spans:
        return Markup("")
    start = min(span[0] for span in spans)
    whole = max(max(span[1] + span[2] for span in spans) - start, 0.001)
    height = 14 * len(spans)
    parts = []
    for index, ((began, ended, wait), event) in enumerate(zip(spans, events, strict=True)):
        x, width = 600 * (began - start) / whole, max(600 * (ended - began) / whole, 3)
        x = min(x, 597)
        tone = "good" if event.succeeded else "bad"
        y = index * 14 + 2
        parts.append(f'<rect class="{tone}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="10" rx="2"/>')
        if wait:
            parts.append(
                f'<rect class="wait" x="{x + width:.1f}" y="{y + 3}" width="{600 * wait / whole:.1f}" height="4"/>'
            )
    label = f"{len(spans)} tries and their waits in {whole:.2f} s"
    return _svg(
        f'<svg class="waterfall" viewBox="0 0 600 {height}" preserveAspectRatio="none" role="img" '
        f'aria-label="{label}">{"".join(parts)}</svg>'
    )


def _svg(text: str) -> Markup:
    """Return markup that holds only numbers and the words of this module."""
    return Markup(text)  # noqa: S704
