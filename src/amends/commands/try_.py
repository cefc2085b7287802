"""
`amends try`: a demo in which plain clients, tenacity and amends do the same job with five flaky services.

With `--samples`, or if the libraries of the demo are not installed, it shows one failure of each format instead: decoded,
decided and translated.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from textwrap import indent
from typing import TYPE_CHECKING

import msgspec

from amends.carriers.extraction import examine
from amends.carriers.report import report
from amends.commands.console import TEXT_HELP, Subparsers, emit, wants_json
from amends.commands.samples import SAMPLES
from amends.commands.view import columns, painter, report_lines
from amends.core.fault import Fault
from amends.dialects import dialect, encode
from amends.dialects.translation import translate

if TYPE_CHECKING:
    from amends.demo.comparison import Report, Score

__all__ = ["add", "run"]

_NEEDED = ("a2a", "arcp", "httpx2", "mcp", "rich", "starlette", "tenacity", "uvicorn", "websockets")
"""The import names of the libraries that the demo needs."""

_INSTALL = "pip install 'amends[try]'"


def add(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "try",
        help="run a demo with five flaky services",
        description="Start five small flaky services on this machine and run three agents with the same job: plain "
        "clients, tenacity, and amends. Nothing is sent to other machines, and all processes are stopped at the end.",
        output_help=TEXT_HELP,
    )
    parser.add_argument("--seed", type=int, default=7, help="the seed of the planned failures (7)")
    parser.add_argument("--samples", action="store_true", help="only show one failure of each format")
    parser.add_argument("--keep", action="store_true", help="keep the services running until Ctrl-C")
    parser.add_argument(
        "--page", action="store_true", help="show the failures live on a page, which stays until Ctrl-C"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the demo, or show the samples."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if args.samples or missing:
        _show_samples(as_json=wants_json(args))
        if not args.samples:
            sys.stderr.write(f"The full demo needs {', '.join(missing)}: {_INSTALL}\n")
        return 0
    if args.page:
        return asyncio.run(_run_with_page(args.seed, keep=args.keep, as_json=wants_json(args)))
    return asyncio.run(_run_demo(args.seed, keep=args.keep, as_json=wants_json(args)))


async def _run_with_page(seed: int, *, keep: bool, as_json: bool) -> int:
    """Run the demo with the page open. Its services record to the same store, so that a trace shows both sides."""
    from amends.demo.page import demo_page

    with demo_page() as url:
        sys.stderr.write(f"The page: {url}\n")
        sys.stderr.flush()
        await _run_demo(seed, keep=keep, as_json=as_json)
        sys.stderr.write(f"The page stays open at {url} until Ctrl-C.\n")
        sys.stderr.flush()
        await asyncio.Event().wait()
    return 0


async def _run_demo(seed: int, *, keep: bool, as_json: bool) -> int:
    from amends.demo.comparison import Observer, compare, running_services

    # The demo shows what recovery does; its log lines would be between the lines of the table.
    logging.getLogger("amends.recovery").setLevel(logging.CRITICAL)
    if as_json:
        emit(_report_data(await compare(seed)))
        return 0
    from rich.console import Console

    from amends.demo.view import Screen

    console = Console(highlight=False)
    screen = Screen(console)
    screen.show_scores(await compare(seed, screen))
    if keep:
        async with running_services(seed, Observer().call_received) as services:
            console.print(
                "\nThe services are running again, with all their planned failures. Ctrl-C stops them.\n"
            )
            for name, endpoint in msgspec.structs.asdict(await services.endpoints()).items():
                console.print(f"  {name:6} {endpoint}")
            await services.wait()
    return 0


def _report_data(report: Report) -> dict[str, object]:
    return {"seed": report.seed, "agents": [_score_data(score) for score in report.scores]}


def _score_data(score: Score) -> dict[str, object]:
    return {
        "agent": score.agent,
        "finished": score.finished,
        "of": len(score.steps),
        "calls": score.calls,
        "wasted": score.wasted,
        "duplicates": score.duplicates,
        "seconds": round(score.seconds, 3),
        "bytes_read": score.read,
        "steps": score.steps,
        "services": score.tallies,
    }


def _show_samples(*, as_json: bool) -> None:
    if as_json:
        emit([_sample_data(*sample) for sample in SAMPLES])
        return
    paint = painter()
    for title, via, target, response in SAMPLES:
        decoded = report(*examine(response, via))
        shown = "\n".join(report_lines(decoded, paint, columns() - 2))
        lines = [paint(f"── {title}", "bold"), indent(shown, "  ")]
        if decoded.fault is not None:
            document, lost = _translated(decoded.fault, target)
            lines.append(f"  {paint('as', 'dim')} {target}: {msgspec.json.encode(document).decode()}")
            if lost:
                lines.append(paint(f"  {dialect(target).NAME} cannot represent: {', '.join(lost)}", "dim"))
        sys.stdout.write("\n".join(lines) + "\n\n")
    sys.stdout.write(paint("Pipe a failure of your own into `amends decode`.", "dim") + "\n")


def _translated(fault: Fault, target: str) -> tuple[Mapping[str, object], list[str]]:
    """Return the document in the target dialect, and the members that were lost."""
    translated, lost = translate(fault, to=target)
    return encode(translated, target), sorted(lost)


def _sample_data(title: str, via: str, target: str, response: Mapping[str, object]) -> dict[str, object]:
    decoded = report(*examine(response, via))
    document, lost = _translated(decoded.fault, target) if decoded.fault is not None else (None, [])
    return {
        "title": title,
        "input": response,
        "report": decoded,
        "to": target,
        "translated": document,
        "losses": lost,
    }
