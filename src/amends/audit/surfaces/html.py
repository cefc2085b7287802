"""The report of a service as one self-contained HTML page: findings, questions and evidence."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from amends.audit.surfaces.evidence import Answer
from amends.audit.surfaces.score import Finding, SurfaceReport
from amends.audit.surfaces.text import distinct, headline
from amends.audit.views import STYLE

__all__ = ["html"]

_WRAPPED = (
    "h1,code,p,td{overflow-wrap:anywhere}h1{font-size:1.5em}pre{white-space:pre-wrap;overflow-wrap:anywhere}"
)
_MET = {True: "yes", False: "no", None: "?"}


def html(report: SurfaceReport) -> str:
    """Return the page."""
    questions = "".join(
        f"<tr class='{'unknown' if one.met is None else _MET[one.met]}'><td>{one.level}</td><td>{_MET[one.met]}</td>"
        f"<td>{escape(one.asks)}</td><td>{escape(one.because)}</td></tr>"
        for one in report.questions
    )
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
        f"<title>Audit: {escape(report.target)}</title><style>{STYLE}{_WRAPPED}</style></head><body>"
        f"<h1><code>{escape(report.target)}</code></h1><p>{escape(report.version)}</p>"
        f"<p class='score'>{escape(headline(report))}</p><p>{escape(report.because)}</p>"
        f"<h2>Findings</h2>{''.join(map(_finding, distinct(report.findings))) or '<p>None.</p>'}"
        "<h2>Questions</h2><table><tr><th>level</th><th>met</th><th>question</th><th>observed</th></tr>"
        f"{questions}</table><p>A model reads {report.bytes:,} bytes (about {report.tokens:,} tokens) for all failures, "
        f"{report.largest:,} for the largest.</p>{_list('Not probed', report.not_probed)}{_list('Accepted in the baseline', report.accepted)}"
        f"<h2>Evidence</h2>{''.join(map(_answer, report.evidence.answers))}</body></html>\n"
    )


def _list(title: str, items: Sequence[str]) -> str:
    if not items:
        return ""
    return f"<h2>{title}</h2><ul>{''.join(f'<li>{escape(each)}</li>' for each in items)}</ul>"


def _finding(one: Finding) -> str:
    return (
        f"<h3>{escape(one.asks)} no</h3><p>{escape(', '.join(one.probes))}</p>"
        f"<pre>{escape(one.evidence)}</pre><p><b>Fix:</b> {escape(one.fix)} <small>{escape(one.clause)}</small></p>"
    )


def _answer(one: Answer) -> str:
    return (
        f"<details><summary><b>{escape(one.probe)}</b> {escape(one.outcome)} {escape(one.because)}</summary>"
        f"<p><code>{escape(one.sent)}</code></p><pre>{escape(one.text)}</pre></details>"
    )
