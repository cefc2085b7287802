"""An audit report for people: a table for the terminal, and a self-contained HTML page."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from html import escape

from amends.audit.evidence import Observation
from amends.audit.rubric import Report
from amends.core.text import strip
from amends.core.wrapping import UNLIMITED, wrapped

__all__ = ["STYLE", "count", "html", "lines"]

_INDENT = 10
_MET = {True: "yes", False: "no", None: "?"}


def headline(report: Report) -> str:
    """Return the score as text, for example "2 of 3"."""
    if report.score is not None:
        return f"{report.score} of 3"
    return f"? ({report.at_least} to {report.at_most} of 3)"


def lines(report: Report, paint: Callable[..., str], width: int = UNLIMITED) -> list[str]:
    """Return the lines of the report as a table; what was observed is below a condition if it does not fit beside it."""
    colour = {3: "green", 2: "green", 1: "yellow", 0: "red"}[report.at_least]
    table = [f"{paint(headline(report), 'bold', colour)}  {strip(shlex.join(report.command))}"]
    table += [f"  {wrapped(strip(report.because), width, 2)}"]
    table += [f"  {paint(wrapped(strip(each), width, 2), 'yellow')}" for each in report.warnings]
    table.append("")
    for one in report.criteria:
        met = paint(f"{_MET[one.met]:>3}", {True: "green", False: "red", None: "yellow"}[one.met])
        table.append(f"  {one.level}  {met}  {_beside(one.text, one.because, paint, width)}")
    table.append("")
    for extra in report.extra_scores:
        shown = "?" if extra.score is None else str(extra.score)
        table.append(f"     {shown:>3}  {_beside(extra.name, extra.because, paint, width)}")
    table += ["", f"  {wrapped(f'a model reads: {_costs(report)}', width, 2)}"]
    table.append(paint(f"  network: {report.evidence.network}", "dim"))
    return table


def _beside(text: str, because: str, paint: Callable[..., str], width: int) -> str:
    observed = strip(because)
    if len(text) + len(observed) + 2 <= width - _INDENT:
        return f"{text}  {paint(observed, 'dim')}"
    below = wrapped(observed, width, _INDENT + 2)
    return f"{wrapped(text, width, _INDENT)}\n{' ' * (_INDENT + 2)}{paint(below, 'dim')}"


def _costs(report: Report) -> str:
    """Return what a model reads: the help, the largest output of the other runs, and everything together."""
    shown = {one.probe: one for one in report.reading_costs}
    others = [one for one in report.reading_costs if one.probe not in {"help", "total"}]
    chosen = [shown.get("help"), max(others, key=lambda one: one.bytes, default=None), shown.get("total")]
    return " · ".join(
        f"{one.probe} {one.bytes:,} bytes (about {one.tokens:,} tokens)" for one in chosen if one is not None
    )


def html(report: Report) -> str:
    """
    Return the report with all its evidence as one HTML page.

    >>> from amends.audit import Evidence, score
    >>> evidence = Evidence(command=["tool"], observations=[], network="not enforced", retry_after=2.0)
    >>> html(score(evidence)).startswith("<!doctype html>")
    True
    """
    name = escape(shlex.join(report.command))
    criteria = "".join(
        f"<tr class='{_MET[one.met] if one.met is not None else 'unknown'}'><td>{one.level}</td>"
        f"<td>{_MET[one.met]}</td><td>{escape(one.text)}</td><td>{escape(one.because)}</td></tr>"
        for one in report.criteria
    )
    extra_scores = "".join(
        f"<tr><td>{'?' if extra.score is None else extra.score}</td><td>{escape(extra.name)}</td>"
        f"<td>{escape(extra.because)}</td></tr>"
        for extra in report.extra_scores
    )
    observations = "".join(_observation(one) for one in report.evidence.observations)
    flags = escape(" ".join(report.evidence.json_flags))
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
        f"<title>Audit: {name}</title>"
        f"<style>{STYLE}</style></head><body><h1><code>{name}</code></h1>"
        f"<p class='score'>{escape(headline(report))}</p><p>{escape(report.because)}</p>"
        f"{''.join(f'<p><b>{escape(each)}</b></p>' for each in report.warnings)}"
        "<h2>Retry hints (challenge 19)</h2>"
        f"<table><tr><th>level</th><th>met</th><th>condition</th><th>observed</th></tr>{criteria}</table>"
        "<h2>Additional scores</h2>"
        f"<table><tr><th>score</th><th>name</th><th>observed</th></tr>{extra_scores}</table>"
        f"<p>A model reads: {escape(_costs(report))}.</p>"
        f"<p>Network: {escape(report.evidence.network)}. "
        f"Flags for JSON output: {f'<code>{flags}</code>' if flags else 'none found'}.</p>"
        f"<h2>Evidence</h2>{observations}</body></html>\n"
    )


def _observation(one: Observation) -> str:
    ended = "terminated by the audit" if one.timed_out else (one.signal or f"exit {one.exit}")
    if not one.triggered:
        ended += ", no request reached the fixture"
    elif one.fixture:
        ended += f", {count(len(one.requests), 'request')}"
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


def count(number: int, noun: str) -> str:
    """Return a number with its noun in the right form, for example "2 requests"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def strip_lines(text: str) -> str:
    """Remove control characters from each line of a text."""
    return "\n".join(strip(line) for line in text.splitlines())


STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}"
    "table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #ddd;padding:.3rem .6rem;text-align:left;"
    "vertical-align:top}pre{background:#f6f6f6;padding:.6rem;overflow:auto;max-height:24rem}"
    ".score{font-size:2rem;font-weight:700}tr.yes td:nth-child(2){color:#0a7a2f}tr.no td:nth-child(2){color:#b00020}"
    "tr.unknown td:nth-child(2){color:#8a6d00}h3{font-size:.9rem;margin:.4rem 0}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}pre{background:#1c1c1c}"
    "td,th{border-color:#333}tr.yes td:nth-child(2){color:#5fd38d}tr.no td:nth-child(2){color:#ff8a80}"
    "tr.unknown td:nth-child(2){color:#e6c65c}}"
)
