"""`amends runtime tail`: print a job's events as they arrive, and exit as the job ends."""

from __future__ import annotations

import argparse

from amends.commands.runtime import add_client_options, open_client
from amends.commands.runtime.job_view import show_job

__all__ = ["options", "work"]


def options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_client_options(parser)
    parser.add_argument("job_id", metavar="JOB", help="the job's id")
    parser.add_argument("--new", action="store_true", help="print only new events")


async def work(args: argparse.Namespace) -> int:
    """Print the job's events until it ends."""
    async with open_client(args) as client:
        await show_job(args, await client.subscribe(args.job_id, history=not args.new))
    return 0
