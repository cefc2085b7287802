"""The report as one self-contained HTML page, light and dark: rows, findings, and a timeline for each failure."""

from __future__ import annotations

from html import escape

from amends.core.text import strip
from amends.rehearse.judge import Row
from amends.rehearse.kinds import KINDS
from amends.rehearse.report import Report
from amends.rehearse.score import RULES
from amends.rehearse.stage import CallRecord
from amends.rehearse.views import summary

__all__ = ["page"]

_STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#5b6570;--line:#d8dee4;--paper:#fff;--box:#f6f8fa;
--s0:#c62828;--s1:#b26a00;--s2:#1565c0;--s3:#2e7d32;--none:#7a828c}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa5b1;--line:#363d46;--paper:#0f141a;--box:#171d25;
--s0:#ff6b6b;--s1:#e6a23c;--s2:#6db3f2;--s3:#67c26b;--none:#8b949e}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:62rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.4rem;overflow-wrap:anywhere}h2{font-size:1.1rem;margin:2rem 0 .5rem}
table{border-collapse:collapse;width:100%}td,th{padding:.25rem .6rem;text-align:left;border-bottom:1px solid var(--line)}
.scroll{overflow-x:auto}code,pre{font-family:ui-monospace,monospace;font-size:.85rem}
pre{background:var(--box);padding:.7rem;white-space:pre-wrap;overflow-wrap:anywhere;border-radius:.3rem}
.score{display:inline-block;min-width:1.6rem;text-align:center;border-radius:.3rem;color:var(--paper);font-weight:700}
.s0{background:var(--s0)}.s1{background:var(--s1)}.s2{background:var(--s2)}.s3{background:var(--s3)}.none{background:var(--none)}
.soft{color:var(--soft)}.void{border-left:.3rem solid var(--s0);padding-left:.7rem}
.chart{overflow-x:auto}svg{width:100%;min-width:40rem;height:auto;display:block}svg text{font:11px system-ui,sans-serif;fill:var(--soft)}
"""
_WIDTH, _LEFT, _ROW = 900, 130, 22
_MOST = 60
"""Calls that a timeline shows."""


def page(report: Report) -> str:
    """Return the page."""
    rows = "".join(_table_row(row) for row in report.rows)
    void = "".join(
        f"<p class='void'>Void: {_shown(each.by)} wanted to connect to {_shown(each.address)}, which was refused.</p>"
        for each in report.violations
    )
    judged = (
        "" if report.checked else "<p class='soft'>The end was not judged, so no row has more than 2.</p>"
    )
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
        f"<title>Rehearsal: {_shown(report.command)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>Rehearsal of <code>{_shown(report.command)}</code></h1>"
        f"<p>{_badge(report.score)} {_shown(summary(report))}</p><p class='soft'>{_shown(report.mode)}, "
        f"amends {_shown(report.version)}</p>{void}{judged}"
        "<div class='scroll'><table><thead><tr><th>score</th><th>service</th><th>failure</th><th>calls</th><th>stuck</th>"
        f"<th>findings</th></tr></thead><tbody>{rows}</tbody></table></div>"
        f"{''.join(_section(row) for row in report.rows if row.sent is not None)}</body></html>\n"
    )


def _shown(text: str) -> str:
    return escape("\n".join(map(strip, text.splitlines())))


def _badge(score: int | None) -> str:
    return f"<span class='score {'none' if score is None else f's{score}'}'>{'–' if score is None else score}</span>"


def _table_row(row: Row) -> str:
    found = ", ".join(each.rule for each in row.findings) if row.sent is not None else row.note
    name = _shown(row.kind)
    link = f"<a href='#{_anchor(row)}'>{name}</a>" if row.sent is not None else name
    numbers = (f"{row.calls}", f"{row.stuck:.1f} s") if row.sent is not None else ("", "")
    return (
        f"<tr><td>{_badge(row.score)}</td><td>{_shown(row.service)}</td><td>{link}</td><td>{numbers[0]}</td>"
        f"<td>{numbers[1]}</td><td>{_shown(found)}</td></tr>"
    )


def _anchor(row: Row) -> str:
    return escape(row.id.replace("/", "-"))


def _section(row: Row) -> str:
    sent = row.sent
    assert sent is not None
    findings = "".join(
        f"<li><b>{_shown(RULES[each.rule].asks)}</b> No: {_shown(each.seen)}"
        f"{_calls(each.calls)}.<br>{_shown(each.change)}</li>"
        for each in row.findings
    )
    what = f"status {sent.status}" if sent.status is not None else sent.ending
    wait = f", announced wait {sent.wait:g} s" if sent.wait is not None else ""
    head = "\n".join(f"{name}: {value}" for name, value in sent.headers)
    shown = f"<pre>{_shown(head)}\n\n{_shown(sent.body)}</pre>" if sent.headers or sent.body else ""
    source = f"<p class='soft'>{_shown(sent.example)} — {_shown(sent.source)}</p>" if sent.source else ""
    return (
        f"<h2 id='{_anchor(row)}'>{_badge(row.score)} {_shown(row.service)} {_shown(KINDS[row.kind].text)}</h2>"
        f"{_timeline(row)}<p>Call {sent.call}: {_shown(what)}{wait}. Expected: <b>{sent.reaction.value}</b> — "
        f"{_shown(sent.because)}.</p>{shown}{source}<ul>{findings or '<li>Nothing to change.</li>'}</ul>"
    )


def _calls(numbers: tuple[int, ...]) -> str:
    return f" (call {', '.join(map(str, numbers))})" if numbers else ""


def _timeline(row: Row) -> str:
    """Return the calls of a run as bars over time, with the failure and the announced wait."""
    calls = row.timeline[:_MOST]
    sent = row.sent
    assert sent is not None
    last = max([each.ended or each.at for each in calls] + [sent.at + (sent.wait or 0.0), 0.1])
    end = max(last, min(row.end.seconds if row.end is not None else 0.0, last * 1.5))
    scale = (_WIDTH - _LEFT - 20) / end
    digits = 1 if end >= 2 else 2
    names = list(dict.fromkeys(each.service for each in calls))
    height = _ROW * len(names) + 30
    parts = []
    if sent.wait:
        place = names.index(sent.service) * _ROW
        parts.append(
            f"<rect x='{_LEFT + sent.at * scale:.1f}' y='{place + 1}' width='{sent.wait * scale:.1f}' height='{_ROW - 4}' "
            "style='fill:var(--line)'><title>announced wait</title></rect>"
        )
    parts += [_bar(each, names.index(each.service) * _ROW, scale) for each in calls]
    parts += [
        f"<text x='0' y='{place * _ROW + 15}'>{_shown(name[:18])}</text>" for place, name in enumerate(names)
    ]
    parts += [
        f"<text x='{_LEFT + (_WIDTH - _LEFT - 20) * step / 4:.0f}' y='{height - 6}' text-anchor='middle'>{end * step / 4:.{digits}f} s</text>"
        for step in range(5)
    ]
    more = f"<p class='soft'>{len(row.timeline) - _MOST} more calls.</p>" if len(row.timeline) > _MOST else ""
    label = f"{len(row.timeline)} calls in {end:.{digits}f} s"
    return f"<div class='chart'><svg viewBox='0 0 {_WIDTH} {height}' role='img' aria-label='{label}'>{''.join(parts)}</svg></div>{more}"


def _bar(call: CallRecord, top: int, scale: float) -> str:
    color = "s0" if call.again else "s1" if call.failure else "s3" if call.effect else "s2"
    width = max(4.0, ((call.ended or call.at) - call.at) * scale)
    what = (
        "failed again"
        if call.again
        else "failed"
        if call.failure
        else "took effect"
        if call.effect
        else "answered"
    )
    title = f"call {call.number} {call.method} {call.path}: {what}, {call.at:.2f} s"
    return (
        f"<rect x='{_LEFT + call.at * scale:.1f}' y='{top + 3}' width='{width:.1f}' height='{_ROW - 8}' rx='2' "
        f"style='fill:var(--{color})'><title>{_shown(title)}</title></rect>"
    )
