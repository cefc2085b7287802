"""`amends runtime cancel`: cancel a job. Only the session that submitted it may do so (7.4), so that session is resumed."""

from __future__ import annotations

import argparse
import sys

from amends.commands.console import wants_json
from amends.commands.runtime import add_client_options, open_client
from amends.commands.runtime.job_view import print_json_line

__all__ = ["options", "work"]


def options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_client_options(parser)
    parser.add_argument("job_id", metavar="JOB", help="the job's id")
    parser.add_argument("--reason", metavar="TEXT", help="the reason, which the job's error contains")


async def work(args: argparse.Namespace) -> int:
    """Request the cancellation. Without the job's session the runtime usually refuses it."""
    from amends.commands.runtime.saved_sessions import find, forget, keep

    ticket = find(args.job_id, args.url)
    async with open_client(args, ticket=ticket) as client:
        try:
            await client.cancel(args.job_id, args.reason)
        except BaseException:
            # Resuming the session replaced its ticket, so the new one is saved.
            renewed = await client.detach()
            if ticket is not None and renewed is not None:
                keep(args.job_id, args.url, renewed)
            raise
    forget(args.job_id)
    if wants_json(args):
        print_json_line({"job_id": args.job_id, "status": "cancelling"})
    else:
        sys.stdout.write(f"{args.job_id} is being cancelled\n")
    return 0
