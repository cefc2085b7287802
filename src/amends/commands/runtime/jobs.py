"""`amends runtime jobs`: list jobs."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import msgspec

from amends.commands.console import wants_json
from amends.commands.runtime import add_client_options, open_client
from amends.commands.runtime.job_view import print_json_line
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
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="the most jobs to list (50)")


async def work(args: argparse.Namespace) -> int:
    """List the jobs."""
    async with open_client(args) as client:
        jobs = await client.jobs(status=args.status, agent=args.agent, limit=args.limit)
    if wants_json(args):
        for entry in jobs:
            print_json_line(msgspec.to_builtins(entry))
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _lines(jobs)) or "no jobs\n")
    return 0


def _lines(jobs: list[JobEntry]) -> list[str]:
    from amends.commands.view import painter

    paint = painter()
    return [
        f"{entry.job_id}  {paint(f'{entry.status:<9}', _COLOURS.get(entry.status, 'red'))}  "
        f"{strip(entry.created_at or entry.submitted_at or ''):<24}  {strip(entry.agent)}"
        for entry in jobs
    ]
