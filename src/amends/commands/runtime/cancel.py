"""`amends runtime cancel`: only the session that submitted a job may cancel it (7.4), so that session is resumed."""

from __future__ import annotations

import argparse
import sys

from amends.commands.runtime import connecting, with_runtime
from amends.commands.runtime.job_view import tell_line, told_as_json

__all__ = ["options", "work"]


def options(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    with_runtime(parser)
    parser.add_argument("job_id", metavar="JOB", help="its id")
    parser.add_argument("--reason", metavar="TEXT", help="why; the job's error says it")


async def work(args: argparse.Namespace) -> int:
    """Ask for it, and say that it is being done. Without its session the runtime decides, and usually refuses."""
    from amends.commands.runtime.saved_sessions import find, forget, keep

    ticket = find(args.job_id, args.url)
    async with connecting(args, ticket=ticket) as client:
        try:
            await client.cancel(args.job_id, args.reason)
        except BaseException:
            # The session goes on with another token now.
            renewed = await client.detach()
            if ticket is not None and renewed is not None:
                keep(args.job_id, args.url, renewed)
            raise
    forget(args.job_id)
    if told_as_json(args):
        tell_line({"job_id": args.job_id, "status": "cancelling"})
    else:
        sys.stdout.write(f"{args.job_id} is being cancelled\n")
    return 0
