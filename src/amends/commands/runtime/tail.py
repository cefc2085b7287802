"""`amends runtime tail`: a job of another session, as it goes, and its end as this command's own."""

from __future__ import annotations

import argparse

from amends.commands.runtime import connecting, with_runtime
from amends.commands.runtime.job_view import show

__all__ = ["options", "work"]


def options(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    with_runtime(parser)
    parser.add_argument("job_id", metavar="JOB", help="its id")
    parser.add_argument("--new", action="store_true", help="leave out what has happened so far")


async def work(args: argparse.Namespace) -> int:
    """Watch it to its end."""
    async with connecting(args) as client:
        await show(args, await client.subscribe(args.job_id, history=not args.new))
    return 0
