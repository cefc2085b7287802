"""`amends try`: one failure of each dialect, decoded, decided and translated."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import msgspec

from amends.carriers.extraction import examine
from amends.commands.console import emit, wants_json
from amends.commands.decode import report
from amends.commands.samples import SAMPLES
from amends.commands.view import painter, report_lines
from amends.core.fault import Fault
from amends.dialects import dialect, encode
from amends.dialects.translation import translate

__all__ = ["add", "run"]


def add(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "try",
        help="see it work on built-in samples",
        description="Show one failure of each dialect: what it is, what to do about it, and how another dialect says it.",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Show the samples."""
    if wants_json(args):
        emit([_as_data(*sample) for sample in SAMPLES])
        return 0
    paint = painter()
    for title, via, target, response in SAMPLES:
        seen = report(*examine(response, via))
        lines = [paint(f"── {title}", "bold"), *(f"  {line}" for line in report_lines(seen, paint))]
        if seen.fault is not None:
            document, lost = _told(seen.fault, target)
            lines.append(f"  {paint('as', 'dim')} {target}: {msgspec.json.encode(document).decode()}")
            if lost:
                lines.append(paint(f"  {dialect(target).NAME} cannot carry: {', '.join(lost)}", "dim"))
        sys.stdout.write("\n".join(lines) + "\n\n")
    sys.stdout.write(paint("Pipe a failure of your own into `amends decode`.", "dim") + "\n")
    return 0


def _told(fault: Fault, target: str) -> tuple[dict[str, Any], list[str]]:
    told, lost = translate(fault, to=target)
    return encode(told, target), sorted(lost)


def _as_data(title: str, via: str, target: str, response: dict[str, Any]) -> dict[str, Any]:
    seen = report(*examine(response, via))
    document, lost = _told(seen.fault, target) if seen.fault is not None else (None, [])
    return {
        "title": title,
        "input": response,
        "report": seen,
        "to": target,
        "translated": document,
        "losses": lost,
    }
