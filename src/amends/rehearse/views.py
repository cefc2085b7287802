"""Reports as text, JUnit and SARIF."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import fill
from xml.sax.saxutils import escape, quoteattr

from amends._version import __version__
from amends.core.text import strip
from amends.rehearse.judge import Row
from amends.rehearse.kinds import KINDS
from amends.rehearse.report import Change, Report
from amends.rehearse.score import RULES

__all__ = ["junit", "lines", "row_line", "sarif", "summary"]

Paint = Callable[[str, str], str]
_COLORS = {None: "dim", 0: "red", 1: "yellow", 2: "cyan", 3: "green"}


def row_line(row: Row, paint: Paint) -> str:
    """Return the line of a row."""
    score = "–" if row.score is None else str(row.score)
    rules = ", ".join(each.rule for each in row.findings) if row.sent is not None else row.note
    return f"  {paint(score, _COLORS[row.score])}  {row.service:<12} {row.kind:<17} {rules}".rstrip()


def summary(report: Report) -> str:
    """
    Return the figures of a report in one line.

    >>> summary(Report(command="x", seed=7))
    '0 failures sent (seed 7): 0 with duplicates, 0 exhausted accounts asked again, 0 waits broken, 0 leaks'
    """
    return (
        f"{len(report.sent)} failures sent (seed {report.seed}): {report.count('duplicate')} with duplicates, "
        f"{report.count('exhausted-repeated')} exhausted accounts asked again, {report.count('wait-broken')} waits broken, "
        f"{report.count('leaked')} leaks"
    )


def lines(report: Report, paint: Paint, width: int = 100, changes: Sequence[Change] = ()) -> list[str]:
    """Return the report for a terminal: the rows, then every finding with what was sent, what was done, and what to change."""
    shown = [strip(f"{report.command} — {report.mode}"), ""]
    shown += [row_line(row, paint) for row in report.rows]
    for row in report.rows:
        told = [each for each in row.findings if each.rule != "not-judged"]
        if not told or row.sent is None:
            continue
        shown += ["", paint(f"{row.service} {KINDS[row.kind].text}", "bold")]
        shown.append(_wrapped(f"sent: {_sent(row)}", width))
        for each in told:
            calls = f" (call {', '.join(map(str, each.calls))})" if each.calls else ""
            shown.append(_wrapped(f"{RULES[each.rule].asks} No: {each.seen}{calls}", width))
        for change in dict.fromkeys(each.change for each in told):
            shown.append(_wrapped(f"change: {change}", width))
        shown.append(_wrapped(f"expected: {row.sent.reaction.value} — {row.sent.because}", width))
    if changes:
        shown += ["", "Changed:"]
        shown += [f"  {each.row}: {_number(each.before)} → {_number(each.after)}" for each in changes]
    shown += ["", summary(report)]
    for violation in report.violations:
        shown.append(
            paint(
                strip(f"void: {violation.by} wanted to connect to {violation.address}, which was refused"),
                "red",
            )
        )
    if not report.checked and report.sent:
        shown.append(
            "The end was not judged, so no row has more than 2: give a test of the result with --check."
        )
    score = report.score
    shown.append("no score" if score is None else paint(f"score {score} of 3", _COLORS[score]))
    return shown


def _number(score: int | None) -> str:
    return "none" if score is None else str(score)


def _sent(row: Row) -> str:
    sent = row.sent
    assert sent is not None
    what = f"status {sent.status}" if sent.status is not None else sent.ending
    wait = f", wait {sent.wait:g} s" if sent.wait is not None else ""
    source = f" [{sent.example}, {sent.source}]" if sent.source else ""
    body = " ".join(strip(sent.body).split())
    return f"call {sent.call}: {what}{wait} {body[:160]}{source}".strip()


def _wrapped(text: str, width: int) -> str:
    return fill(strip(text), width, initial_indent="  ", subsequent_indent="    ", break_long_words=False)


def junit(report: Report, least: int | None = None) -> str:
    """Return the report as JUnit XML. A row fails if its score is below `least`, which is 3 if it is not given."""
    limit = 3 if least is None else least
    cases, failed, skipped = [], 0, 0
    for row in report.rows:
        inner = ""
        if row.score is None:
            skipped += 1
            inner = f"<skipped message={_attribute(row.note)}/>"
        elif row.score < limit:
            failed += 1
            text = "\n".join(f"{each.rule}: {each.seen}. {each.change}" for each in row.findings)
            inner = f"<failure message={_attribute(f'score {row.score}')}>{escape(strip(text))}</failure>"
        name = f"name={_attribute(row.kind)} classname={_attribute(f'rehearsal.{row.service}')}"
        seconds = row.end.seconds if row.end is not None else 0.0
        cases.append(f'  <testcase {name} time="{seconds:.3f}">{inner}</testcase>')
    errors = len(report.violations)
    if errors:
        text = ", ".join(f"{each.by}: {each.address}" for each in report.violations)
        cases.append(
            f'  <testcase name="loopback" classname="rehearsal"><error message={_attribute(f"void: {text}")}/></testcase>'
        )
    totals = f'tests="{len(cases)}" failures="{failed}" errors="{min(errors, 1)}" skipped="{skipped}"'
    body = "\n".join(cases)
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites {totals}>\n<testsuite name="amends rehearse" {totals}>\n'
        f"{body}\n</testsuite>\n</testsuites>\n"
    )


def _attribute(text: str) -> str:
    return quoteattr(strip(text))


def sarif(report: Report) -> dict[str, object]:
    """Return the findings as SARIF 2.1.0, which code-scanning services read."""
    levels = {0: "error", 1: "warning"}
    rules = [
        {
            "id": f"amends-rehearse/{one.id}",
            "shortDescription": {"text": one.asks},
            "defaultConfiguration": {"level": levels.get(one.most, "note")},
        }
        for one in RULES.values()
    ]
    results = [
        {
            "ruleId": f"amends-rehearse/{each.rule}",
            "level": levels.get(RULES[each.rule].most, "note"),
            "message": {"text": strip(f"{row.service} {KINDS[row.kind].text}: {each.seen}. {each.change}")},
            "locations": [
                {
                    "physicalLocation": {"artifactLocation": {"uri": _uri(report.command)}},
                    "logicalLocations": [{"fullyQualifiedName": row.id}],
                }
            ],
            "partialFingerprints": {"amends/v1": f"{row.id}/{each.rule}"},
        }
        for row in report.rows
        for each in row.findings
        if row.sent is not None
    ]
    driver = {"name": "amends rehearse", "semanticVersion": __version__, "rules": rules}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _uri(command: str) -> str:
    """Return the file that a command runs as a relative URI, or the command itself."""
    from urllib.parse import quote

    words = command.split()
    script = next(
        (word for word in words if word.endswith((".py", ".js", ".mjs", ".ts"))),
        words[0] if words else "program",
    )
    return quote(script.lstrip("/"), safe="/.-_")
