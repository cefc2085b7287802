"""The report of a service for a terminal: the score, then the findings, the worst first."""

from __future__ import annotations

from collections.abc import Callable

from amends.audit.surfaces.score import SurfaceReport
from amends.audit.views import count
from amends.core.text import strip

__all__ = ["headline", "lines"]

MOST = 10
"""Findings that are shown."""


def headline(report: SurfaceReport) -> str:
    """Return the score as text, for example "2 of 3"."""
    if report.score is not None:
        return f"{report.score} of 3"
    return f"{report.at_least} to {report.at_most} of 3"


def lines(report: SurfaceReport, paint: Callable[..., str]) -> list[str]:
    """Return the lines of the report."""
    colour = {3: "green", 2: "green", 1: "yellow", 0: "red"}[report.at_least]
    version = f" ({strip(report.version)})" if report.version else ""
    shown = [f"{paint(headline(report), 'bold', colour)}  {strip(report.target)}{version}"]
    shown += [f"  {strip(report.because)}", ""]
    for finding in report.findings[:MOST]:
        shown += [
            f"  {paint('✗', 'red')} {finding.asks} {paint('no', 'red')}: {', '.join(finding.probes)}",
            f"      {paint(strip(finding.evidence)[:200], 'dim')}",
            f"      {paint('fix', 'cyan')} {finding.fix} {paint(f'[{finding.clause}]', 'dim')}",
        ]
    met = [one for one in report.questions if one.met is True]
    shown += [f"  {paint('✓', 'green')} {one.asks} {paint(strip(one.because), 'dim')}" for one in met]
    unknown = [one for one in report.questions if one.met is None]
    shown += [f"  {paint('?', 'yellow')} {one.asks} {paint(strip(one.because), 'dim')}" for one in unknown]
    if report.accepted:
        shown.append(paint(f"  accepted in the baseline: {count(len(report.accepted), 'finding')}", "dim"))
    if report.not_probed:
        shown += ["", "  not probed:", *(f"    {strip(each)}" for each in report.not_probed)]
    cost = f"{report.bytes:,} bytes (about {report.tokens:,} tokens) for all failures"
    return [*shown, "", f"  a model reads {cost}, {report.largest:,} for the largest"]
