"""`amends runtime tail`: print the events of a job and of its children as they arrive, and exit as the job ends."""

from __future__ import annotations

import argparse

from amends.commands.runtime import add_client_options, open_client
from amends.commands.runtime.follow import follow
from amends.commands.runtime.job_view import show_job, view_of

__all__ = ["options", "work"]


def options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_client_options(parser)
    parser.add_argument("job_id", metavar="JOB", help="the job's id")
    parser.add_argument("--new", action="store_true", help="print only new events")
    parser.add_argument("--alone", action="store_true", help="do not follow the jobs that it delegates to")


async def work(args: argparse.Namespace) -> int:
    """Print the job's events until it ends."""
    async with open_client(args) as client:
        handle = await client.subscribe(args.job_id, history=not args.new)
        if args.alone:
            await show_job(args, handle)
        else:
            await follow(client, handle, view_of(args))
    return 0
