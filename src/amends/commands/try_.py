"""
`amends try`: a rehearsal of two minutes, in which plain clients, tenacity and amends do the same job and meet the same failures.

With `--samples`, or if the libraries of the demo are not installed, it shows one failure of each format instead: decoded,
decided and translated.
"""

from __future__ import annotations

import argparse
import logging
import sys
import threading
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
    from rich.console import Console

    from amends.demo.comparison import Report, Result

__all__ = ["add", "run"]

_NEEDED = ("a2a", "httpx2", "mcp", "rich", "starlette", "tenacity", "uvicorn")
"""The import names of the libraries that the demo needs."""

_INSTALL = "pip install 'amends[try]'"


def add(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "try",
        help="rehearse three agents in two minutes",
        description="Run three agents with the same job, plain clients, tenacity and amends, against fakes of a model, a store, an "
        "MCP server and an A2A agent, which fail as real services do. Nothing is sent to other machines.",
        output_help=TEXT_HELP,
    )
    parser.add_argument("--seed", type=int, default=7, help="the seed of the planned failures (7)")
    parser.add_argument("--samples", action="store_true", help="only show one failure of each format")
    parser.add_argument("--keep", action="store_true", help="then keep failing services running until Ctrl-C")
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
        return _run_with_page(args.seed, keep=args.keep, as_json=wants_json(args))
    return _run_demo(args.seed, keep=args.keep, as_json=wants_json(args))


def _run_with_page(seed: int, *, keep: bool, as_json: bool) -> int:
    """Run the demo with the page open, where the failures that amends handles are shown."""
    from amends.demo.page import demo_page

    with demo_page() as url:
        sys.stderr.write(f"The page: {url}\n")
        sys.stderr.flush()
        _run_demo(seed, keep=keep, as_json=as_json)
        sys.stderr.write(f"The page stays open at {url} until Ctrl-C.\n")
        sys.stderr.flush()
        threading.Event().wait()
    return 0


def _run_demo(seed: int, *, keep: bool, as_json: bool) -> int:
    from amends.demo.comparison import compare

    # The demo shows what the agents do; the log lines of their clients would be between the lines of the table.
    for name in ("amends", "mcp", "a2a", "httpx", "httpx2"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if as_json:
        emit(_report_data(compare(seed)))
        return 0
    from rich.console import Console

    from amends.demo.view import Screen

    console = Console(highlight=False)
    screen = Screen(console)
    screen.show_results(compare(seed, screen))
    if keep:
        _keep_services(seed, console)
    return 0


def _keep_services(seed: int, console: Console) -> None:
    """Run the services again until Ctrl-C, each with all of its failures."""
    from amends.demo.comparison import FAILURES
    from amends.rehearse.plan import Plan, ServiceOptions, planned
    from amends.rehearse.server import StageServer
    from amends.rehearse.stage import Stage

    services = [ServiceOptions(name) for name in dict.fromkeys(each.service for each in FAILURES)]
    stage = Stage(Plan(seed=seed), services)
    stage.begin(planned(FAILURES, seed, {each.id: place + 1 for place, each in enumerate(FAILURES)}))
    server = StageServer(stage)
    try:
        console.print("\nThe services are running again, with all their failures. Ctrl-C stops them.\n")
        for name, service in stage.services.items():
            console.print(f"  {name:8} {server.address(name)}{service.base_path}")
        threading.Event().wait()
    finally:
        server.close()


def _report_data(report: Report) -> dict[str, object]:
    return {"seed": report.seed, "agents": [_result_data(result) for result in report.results]}


def _result_data(result: Result) -> dict[str, object]:
    return {
        "agent": result.agent,
        "handled": result.handled,
        "finished": result.finished,
        "of": len(result.rows),
        "score": result.score,
        "calls": result.calls,
        "duplicates": result.count("duplicate"),
        "exhausted_repeated": result.count("exhausted-repeated"),
        "waits_broken": result.count("wait-broken"),
        "gave_up": result.count("gave-up"),
        "leaked": result.count("leaked"),
        "rows": [
            {
                "service": row.service,
                "kind": row.kind,
                "score": row.score,
                "findings": [each.rule for each in row.findings],
            }
            for row in result.rows
        ],
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
