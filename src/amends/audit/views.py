"""An audit for a person: a table for the terminal, and one page that needs nothing else."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from html import escape

from amends.audit.evidence import Observation
from amends.audit.rubric import Report
from amends.core.text import strip

__all__ = ["html", "lines"]

_MARKS = {True: "yes", False: "no", None: "?"}


def headline(report: Report) -> str:
    """The score in words."""
    if report.score is not None:
        return f"{report.score} of 3"
    return f"? ({report.at_least} to {report.at_most} of 3)"


def lines(report: Report, paint: Callable[..., str]) -> list[str]:
    """The report as a table of a few lines."""
    colour = {3: "green", 2: "green", 1: "yellow", 0: "red"}[report.at_least]
    found = [f"{paint(headline(report), 'bold', colour)}  {strip(shlex.join(report.command))}", ""]
    for one in report.criteria:
        mark = paint(f"{_MARKS[one.met]:>3}", {True: "green", False: "red", None: "yellow"}[one.met])
        found.append(f"  {one.level}  {mark}  {one.text}  {paint(strip(one.because), 'dim')}")
    found.append("")
    for side in report.sides:
        shown = "?" if side.score is None else str(side.score)
        found.append(f"     {shown:>3}  {side.name}  {paint(strip(side.because), 'dim')}")
    found += ["", paint(f"network: {report.evidence.network}", "dim")]
    return found


def html(report: Report) -> str:
    """The report with all its evidence as one page."""
    name = escape(shlex.join(report.command))
    criteria = "".join(
        f"<tr class='{_MARKS[one.met] if one.met is not None else 'unknown'}'><td>{one.level}</td>"
        f"<td>{_MARKS[one.met]}</td><td>{escape(one.text)}</td><td>{escape(one.because)}</td></tr>"
        for one in report.criteria
    )
    sides = "".join(
        f"<tr><td>{'?' if side.score is None else side.score}</td><td>{escape(side.name)}</td>"
        f"<td>{escape(side.because)}</td></tr>"
        for side in report.sides
    )
    seen = "".join(_observation(one) for one in report.evidence.observations)
    way = escape(" ".join(report.evidence.json_way))
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
        f"<title>Audit: {name}</title>"
        f"<style>{_STYLE}</style></head><body><h1><code>{name}</code></h1>"
        f"<p class='score'>{escape(headline(report))}</p>"
        "<h2>Retry hints (challenge 19)</h2>"
        f"<table><tr><th>level</th><th>met</th><th>condition</th><th>seen</th></tr>{criteria}</table>"
        "<h2>Beside the rubric</h2>"
        f"<table><tr><th>score</th><th>of</th><th>seen</th></tr>{sides}</table>"
        f"<p>Network: {escape(report.evidence.network)}. Words that make it speak JSON: {f'<code>{way}</code>' if way else 'none found'}.</p>"
        f"<h2>Evidence</h2>{seen}</body></html>\n"
    )


def _observation(one: Observation) -> str:
    ended = "ended by the audit" if one.timed_out else (one.signal or f"exit {one.exit}")
    if not one.triggered:
        ended += ", the fixture was never asked"
    elif one.fixture:
        ended += f", {counted(len(one.requests), 'request')}"
    requests = "".join(
        f"<li>{request.at:.2f} s {escape(request.method)} {escape(request.path)}</li>"
        for request in one.requests
    )
    return (
        f"<details><summary><b>{escape(one.probe)}</b> {escape(ended)}, {one.seconds:.1f} s</summary>"
        f"<p><code>{escape(shlex.join(one.argv))}</code></p>"
        f"{f'<ol>{requests}</ol>' if requests else ''}"
        f"<h3>stdout</h3><pre>{escape(strip_lines(one.stdout))}</pre>"
        f"<h3>stderr</h3><pre>{escape(strip_lines(one.stderr))}</pre></details>"
    )


def counted(number: int, what: str) -> str:
    """So many of them, in words."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def strip_lines(text: str) -> str:
    """Text without control characters, its lines kept."""
    return "\n".join(strip(line) for line in text.splitlines())


_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}"
    "table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #ddd;padding:.3rem .6rem;text-align:left;"
    "vertical-align:top}pre{background:#f6f6f6;padding:.6rem;overflow:auto;max-height:24rem}"
    ".score{font-size:2rem;font-weight:700}tr.yes td:nth-child(2){color:#0a7a2f}tr.no td:nth-child(2){color:#b00020}"
    "tr.unknown td:nth-child(2){color:#8a6d00}h3{font-size:.9rem;margin:.4rem 0}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}pre{background:#1c1c1c}"
    "td,th{border-color:#333}tr.yes td:nth-child(2){color:#5fd38d}tr.no td:nth-child(2){color:#ff8a80}"
    "tr.unknown td:nth-child(2){color:#e6c65c}}"
)
