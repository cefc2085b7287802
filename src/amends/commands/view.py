"""Text output of reports: a few coloured lines that start with the decision."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

from amends.cli.colour import Painter, painter
from amends.core.decision import REASONS, Decision
from amends.core.enums import Action
from amends.core.text import strip
from amends.core.wrapping import UNLIMITED, wrapped

if TYPE_CHECKING:
    from amends.carriers.report import Report
    from amends.core.fault import Fault

__all__ = ["Painter", "columns", "counted", "painter", "report_lines", "sentence", "show_report"]

_COLOURS = {
    Action.RETRY: "yellow",
    Action.FIX: "cyan",
    Action.VERIFY: "magenta",
    Action.FALLBACK: "blue",
    Action.ESCALATE: "red",
    Action.NONE: "green",
    Action.GENERIC: "dim",
}


def columns() -> int:
    """Return the width of the terminal. Output that does not go to one is not wrapped."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else UNLIMITED


def counted(count: int, noun: str, plural: str = "") -> str:
    """
    Return a number with its noun in the singular or the plural.

    >>> counted(1, "task"), counted(2, "entry", "entries")
    ('1 task', '2 entries')
    """
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def sentence(decision: Decision) -> str:
    """Return a decision as text, for example "retry in 5 s: …"."""
    action = str(decision.action)
    if decision.delay is not None:
        action += f" in {decision.delay:g} s"
    return f"{action}: {REASONS[decision.reason]}"


def report_lines(report: Report, paint: Painter, width: int = UNLIMITED) -> list[str]:
    """
    Return the lines of a report, the decision first. Control characters are removed from received text.

    If the decision depends on whether a repeat is safe, that for an operation whose repeat is not comes first.
    """
    careful, usual = report.decision_unsafe, report.decision
    colour = _COLOURS[careful.action]
    decision = wrapped(sentence(careful), width, 2)
    lines = [paint(decision, "bold", colour) if colour != "dim" else paint(decision, "dim")]
    if usual != careful:
        other = wrapped(f"where a repeat is safe: {sentence(usual)}", width, 2)
        lines.append(paint(other, "bold", _COLOURS[usual.action]))
    fault = report.fault
    if fault is None:
        return [*lines, paint("failed, without a structured error" if report.failed else "no failure", "dim")]
    code = strip(fault.code)
    lines.append(wrapped(f"{code} {strip(fault.message)}", width, 2).replace(code, paint(code, "bold"), 1))
    lines += [f"  {paint('fix', 'cyan')} {wrapped(strip(step), width, 6)}" for step in fault.suggestions]
    lines += [
        paint(f"  {name:<9}", "dim") + wrapped(value, width, 11) for name, value in _facts(fault, report)
    ]
    return lines


def _facts(fault: Fault, report: Report) -> list[tuple[str, str]]:
    # An exception has no transport, and a status alone has no path.
    location = " · ".join(each for each in (report.via, report.path) if each)
    if report.vendor:
        location += f", in the format of {report.vendor}"
    known = [
        ("found in", location),
        ("recovery", f"{fault.recovery}, next to act: {fault.actor}"),
        ("executed", str(fault.executed)),
    ]
    if fault.field:
        known.append(("field", strip(fault.field)))
    if fault.errors:
        known.append(("parts", f"{len(fault.errors)}, first {strip(fault.errors[0].code)}"))
    if fault.trace_id:
        known.append(("trace", strip(fault.trace_id)))
    return known


def show_report(report: Report) -> None:
    """Print a report as text."""
    sys.stdout.write("\n".join(report_lines(report, painter(), columns())) + "\n")
