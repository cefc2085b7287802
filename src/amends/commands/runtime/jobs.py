"""`amends runtime jobs`: what there is."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import msgspec

from amends.commands.runtime import connecting, with_runtime
from amends.commands.runtime.job_view import tell_line, told_as_json
from amends.core.text import strip

if TYPE_CHECKING:
    from amends.arcp.wire.messages import JobEntry

__all__ = ["options", "work"]

STATES = ("pending", "running", "success", "error", "cancelled", "timed_out")
_COLOURS = {"running": "cyan", "pending": "yellow", "success": "green", "cancelled": "magenta"}


def options(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    with_runtime(parser)
    parser.add_argument(
        "--status",
        action="append",
        choices=STATES,
        metavar="S",
        help=f"only those: {', '.join(STATES)}; again for more",
    )
    parser.add_argument("--agent", metavar="NAME", help="only those of this agent")
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="at most so many (50)")


async def work(args: argparse.Namespace) -> int:
    """List them."""
    async with connecting(args) as client:
        found = await client.jobs(status=args.status, agent=args.agent, limit=args.limit)
    if told_as_json(args):
        for entry in found:
            tell_line(msgspec.to_builtins(entry))
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _lines(found)) or "no jobs\n")
    return 0


def _lines(found: list[JobEntry]) -> list[str]:
    from amends.commands.view import painter

    paint = painter()
    return [
        f"{entry.job_id}  {paint(f'{entry.status:<9}', _COLOURS.get(entry.status, 'red'))}  "
        f"{strip(entry.created_at or entry.submitted_at or ''):<24}  {strip(entry.agent)}"
        for entry in found
    ]
