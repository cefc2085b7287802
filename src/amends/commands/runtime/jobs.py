"""`amends runtime jobs`: list jobs, as lines or as trees of delegations with error codes and remaining budgets."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from amends.commands.console import wants_json
from amends.commands.runtime import add_client_options, open_client
from amends.commands.runtime.job_tree import JobEnd, read_ends, tree
from amends.commands.runtime.job_view import budget_text, print_json_line
from amends.core.text import strip

if TYPE_CHECKING:
    from amends.arcp.wire.messages import JobEntry

__all__ = ["options", "work"]

STATES = ("pending", "running", "success", "error", "cancelled", "timed_out")
_COLOURS = {"running": "cyan", "pending": "yellow", "success": "green", "cancelled": "magenta"}


def options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_client_options(parser)
    parser.add_argument(
        "--status",
        action="append",
        choices=STATES,
        metavar="S",
        help=f"only this status: {', '.join(STATES)}; may be repeated",
    )
    parser.add_argument("--agent", metavar="NAME", help="only jobs of this agent")
    parser.add_argument(
        "--tree",
        action="store_true",
        help="children below their parents, with error codes and remaining budgets",
    )
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="the most jobs to list (50)")


async def work(args: argparse.Namespace) -> int:
    """List the jobs."""
    async with open_client(args) as client:
        jobs = await client.jobs(status=args.status, agent=args.agent, limit=args.limit)
        known = await read_ends(client, jobs) if args.tree else {}
    if args.tree:
        _print_tree(args, jobs, known)
    elif wants_json(args):
        for entry in jobs:
            print_json_line(msgspec.to_builtins(entry))
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _lines(jobs)) or "no jobs\n")
    return 0


def _lines(jobs: list[JobEntry]) -> list[str]:
    from amends.commands.view import painter

    paint = painter()
    return [_line(entry, paint) for entry in jobs]


def _line(entry: JobEntry, paint: Callable[..., str]) -> str:
    return (
        f"{strip(entry.job_id)}  {paint(f'{strip(entry.status):<9}', _COLOURS.get(entry.status, 'red'))}  "
        f"{strip(entry.created_at or entry.submitted_at or ''):<24}  {strip(entry.agent)}"
    )


def _print_tree(args: argparse.Namespace, jobs: list[JobEntry], known: dict[str, JobEnd]) -> None:
    from amends.commands.view import painter

    paint = painter()
    if not jobs and not wants_json(args):
        sys.stdout.write("no jobs\n")
    for depth, entry in tree(jobs):
        end = known.get(entry.job_id, JobEnd())
        if wants_json(args):
            print_json_line(msgspec.to_builtins(entry) | {"depth": depth} | msgspec.to_builtins(end))
            continue
        code = f"  {paint(strip(end.error_code), 'red')}" if end.error_code else ""
        budget = f"  {paint(f'{text} left', 'dim')}" if (text := budget_text(end.budget)) else ""
        indent = "   " * (depth - 1) + "└─ " if depth else ""
        sys.stdout.write(f"{indent}{_line(entry, paint)}{code}{budget}\n")
