"""`amends runtime signal`: send a value to a job, whose agent waits for it with `ctx.signal`."""

from __future__ import annotations

import argparse
import sys

from amends.commands.console import wants_json
from amends.commands.runtime import add_client_options, open_client
from amends.commands.runtime.job_view import print_json_line
from amends.commands.tasks_work import json_or_text

__all__ = ["options", "work"]


def options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_client_options(parser)
    parser.add_argument("job_id", metavar="JOB", help="the job's id; its owner may send it signals")
    parser.add_argument("name", metavar="NAME", help="the signal's name")
    parser.add_argument("value", metavar="VALUE", nargs="?", help="its value as JSON, or a text (null)")
    parser.add_argument("--id", metavar="ID", help="a signal that is sent again under its id counts once")


async def work(args: argparse.Namespace) -> int:
    """Send the signal."""
    async with open_client(args) as client:
        counted = await client.signal(
            args.job_id, args.name, None if args.value is None else json_or_text(args.value), id=args.id
        )
    if wants_json(args):
        print_json_line({"job_id": args.job_id, "signal": args.name, "counted": counted})
    else:
        sys.stdout.write(f"{args.job_id} {'got the signal' if counted else 'had this signal before'}\n")
    return 0
