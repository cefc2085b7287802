"""The report of a service for a terminal of 80 columns and 24 lines: the score, then the findings, the worst first."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence

from amends.audit.surfaces.score import ACCEPTED, Finding, SurfaceReport
from amends.audit.views import count
from amends.core.text import strip

__all__ = ["distinct", "headline", "lines"]

MOST = 4
"""Findings that are shown in full."""
WIDTH = 80


def headline(report: SurfaceReport) -> str:
    """Return the score as text, for example "2 of 3"."""
    if report.score is not None:
        return f"{report.score} of 3"
    return f"{report.at_least} to {report.at_most} of 3"


def lines(report: SurfaceReport, paint: Callable[..., str]) -> list[str]:
    """Return the lines of the report."""
    colour = {3: "green", 2: "green", 1: "yellow", 0: "red"}[report.at_least]
    score = headline(report)
    version = f" ({strip(report.version)})" if report.version else ""
    shown = [
        f"{paint(score, 'bold', colour)}  {_cut(strip(report.target) + version, WIDTH - len(score) - 2)}"
    ]
    findings = distinct(report.findings)
    for finding in findings[:MOST]:
        shown += _finding(finding, paint)
    if findings[MOST:]:
        rest = f"{len(findings) - MOST} more, with --html or --json: {_listed(one.id for one in findings[MOST:])}"
        shown.append(f"{paint('✗', 'red')} {_cut(rest)}")
    if not findings:
        shown.append(f"  {_cut(strip(report.because))}")
    met = [one.id for one in report.questions if one.met and one.came_up and one.because != ACCEPTED]
    if met:
        shown.append(f"{paint('✓', 'green')} {_cut(f'{len(met)} met: {_listed(met)}')}")
    for one in [each for each in report.questions if each.met is None]:
        shown.append(f"{paint('?', 'yellow')} {_cut(f'{one.asks} {strip(one.because)}')}")
    idle = [f"{one.id} ({one.because})" for one in report.questions if not one.came_up]
    if idle:
        shown.append(f"  {_cut(f'did not come up: {_listed(idle)}')}")
    if report.accepted:
        shown.append(paint(f"  accepted in the baseline: {count(len(report.accepted), 'finding')}", "dim"))
    if report.not_probed:
        names = dict.fromkeys(each.partition(":")[0] for each in report.not_probed)
        shown.append(f"  {_cut(f'not probed (--json has the reasons): {_listed(names)}')}")
    cost = f"a model reads {report.bytes:,} bytes (about {report.tokens:,} tokens), {report.largest:,} for the largest"
    return [*shown, f"  {_cut(cost)}"]


def _finding(one: Finding, paint: Callable[..., str]) -> list[str]:
    clause = one.clause.partition(";")[0]
    fix = textwrap.wrap(f"fix: {one.fix} [{clause}]", WIDTH - 4)
    return [
        f"{paint('✗', 'red')} {_cut(f'{one.asks} no: {_listed(one.probes)}')}",
        f"    {paint(_cut(strip(one.evidence), WIDTH - 4), 'dim')}",
        *(f"    {line}" for line in fix),
    ]


def distinct(findings: Sequence[Finding]) -> list[Finding]:
    """Leave out what another finding includes: if no failure has a verdict, not every failure has one."""
    ids = {one.id for one in findings}
    return [one for one in findings if not (one.id == "retry-all" and "retry-some" in ids)]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _cut(text: str, width: int = WIDTH - 2) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
