"""
`amends try`: one job across five flaky services, done by plain clients, by tenacity, and by amends.

Where the libraries for that are not installed, or with `--samples`: one failure of each dialect, decoded, decided and translated.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import msgspec

from amends.carriers.extraction import examine
from amends.carriers.report import report
from amends.commands.console import emit, wants_json
from amends.commands.samples import SAMPLES
from amends.commands.view import painter, report_lines
from amends.core.fault import Fault
from amends.dialects import dialect, encode
from amends.dialects.translation import translate

if TYPE_CHECKING:
    from amends.demo.comparison import Report, Score

__all__ = ["add", "run"]

_NEEDED = ("a2a", "arcp", "httpx2", "mcp", "rich", "starlette", "tenacity", "uvicorn", "websockets")
"""What the show is made with, by the names they are imported by."""

_INSTALL = "pip install 'amends[try]'"


def add(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "try",
        help="see it work, on five flaky services",
        description="Start five small flaky services on this machine, and let three agents do the same job: with plain "
        "clients, with tenacity, with amends. Nothing leaves the machine, and nothing is left running.",
    )
    parser.add_argument("--seed", type=int, default=7, help="another number, another evening (default 7)")
    parser.add_argument("--samples", action="store_true", help="only show one failure of each dialect")
    parser.add_argument("--keep", action="store_true", help="leave the services up afterwards, until Ctrl-C")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Show it."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if args.samples or missing:
        _samples(as_json=wants_json(args))
        if not args.samples:
            sys.stderr.write(f"The whole show needs {', '.join(missing)}: {_INSTALL}\n")
        return 0
    return asyncio.run(_show(args.seed, keep=args.keep, as_json=wants_json(args)))


async def _show(seed: int, *, keep: bool, as_json: bool) -> int:
    from amends.demo.comparison import Audience, perform, services

    if as_json:
        emit(_document(await perform(seed)))
        return 0
    from rich.console import Console

    from amends.demo.view import Screen

    console = Console(highlight=False)
    screen = Screen(console)
    screen.end(await perform(seed, screen))
    if keep:
        async with services(seed, Audience().call) as found:
            console.print("\nThe services are up, fresh and flaky. Ctrl-C ends them.\n")
            for name, place in msgspec.structs.asdict(await found.places()).items():
                console.print(f"  {name:6} {place}")
            await found.ended()
    return 0


def _document(report: Report) -> dict[str, Any]:
    return {"seed": report.seed, "agents": [_row(score) for score in report.scores]}


def _row(score: Score) -> dict[str, Any]:
    return {
        "agent": score.agent,
        "finished": score.finished,
        "of": len(score.deeds),
        "calls": score.calls,
        "wasted": score.wasted,
        "duplicates": score.duplicates,
        "seconds": round(score.seconds, 3),
        "bytes_read": score.read,
        "steps": score.deeds,
        "services": score.tallies,
    }


def _samples(*, as_json: bool) -> None:
    if as_json:
        emit([_as_data(*sample) for sample in SAMPLES])
        return
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
