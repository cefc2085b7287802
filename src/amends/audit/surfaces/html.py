"""The report of a service as one self-contained HTML page: findings, questions and evidence."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from amends.audit.surfaces.evidence import Answer
from amends.audit.surfaces.score import Finding, SurfaceReport
from amends.audit.surfaces.text import distinct, headline
from amends.audit.views import STYLE
from amends.core.text import strip

__all__ = ["html"]

_WRAPPED = (
    "h1,code,p,td{overflow-wrap:anywhere}h1{font-size:1.5em}pre{white-space:pre-wrap;overflow-wrap:anywhere}"
)
_MET = {True: "yes", False: "no", None: "?"}


def html(report: SurfaceReport) -> str:
    """Return the page."""
    questions = "".join(
        f"<tr class='{'unknown' if one.met is None or not one.came_up else _MET[one.met]}'><td>{one.level}</td>"
        f"<td>{_MET[one.met] if one.came_up else '–'}</td>"
        f"<td>{_shown(one.asks)}</td><td>{_shown(one.because)}</td></tr>"
        for one in report.questions
    )
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
        f"<title>Audit: {_shown(report.target)}</title><style>{STYLE}{_WRAPPED}</style></head><body>"
        f"<h1><code>{_shown(report.target)}</code></h1><p>{_shown(report.version)}</p>"
        f"<p class='score'>{_shown(headline(report))}</p><p>{_shown(report.because)}</p>"
        f"<h2>Findings</h2>{''.join(map(_finding, distinct(report.findings))) or '<p>None.</p>'}"
        "<h2>Questions</h2><table><tr><th>level</th><th>met</th><th>question</th><th>observed</th></tr>"
        f"{questions}</table><p>A model reads {report.bytes:,} bytes (about {report.tokens:,} tokens) for all failures, "
        f"{report.largest:,} for the largest.</p>{_list('Not probed', report.not_probed)}{_list('Accepted in the baseline', report.accepted)}"
        f"<h2>Evidence</h2>{''.join(map(_answer, report.evidence.answers))}</body></html>\n"
    )


def _shown(text: str) -> str:
    """Return a text from outside as HTML, without characters that are invisible or reorder the others."""
    return escape(strip(text))


def _list(title: str, items: Sequence[str]) -> str:
    if not items:
        return ""
    return f"<h2>{title}</h2><ul>{''.join(f'<li>{_shown(each)}</li>' for each in items)}</ul>"


def _finding(one: Finding) -> str:
    return (
        f"<h3>{_shown(one.asks)} no</h3><p>{_shown(', '.join(one.probes))}</p>"
        f"<pre>{_shown(one.evidence)}</pre><p><b>Fix:</b> {_shown(one.fix)} <small>{_shown(one.clause)}</small></p>"
    )


def _answer(one: Answer) -> str:
    return (
        f"<details><summary><b>{_shown(one.probe)}</b> {_shown(one.outcome)} {_shown(one.because)}</summary>"
        f"<p><code>{_shown(one.sent)}</code></p><pre>{_shown(one.text)}</pre></details>"
    )
