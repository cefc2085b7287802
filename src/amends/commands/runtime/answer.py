"""`amends runtime answer`: say whether a step happened about which a job ended in doubt, so that the job continues."""

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
    parser.add_argument("job_id", metavar="JOB", help="the job's id; its owner may answer")
    parser.add_argument("step", metavar="STEP", help="the step, as `amends runtime status URL JOB` names it")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--happened", action="store_true", help="it happened, with the result of --result")
    which.add_argument("--not-happened", action="store_true", help="it did not happen: it is called again")
    parser.add_argument("--result", metavar="VALUE", help="what the step returned, as JSON or a text (null)")


async def work(args: argparse.Namespace) -> int:
    """Answer the question."""
    from amends.errors.cli import ValidationError

    if args.result is not None and not args.happened:
        raise ValidationError(
            "A step that did not happen has no result", suggestions=["Leave out --result"], field="--result"
        )
    value = None if args.result is None else json_or_text(args.result)
    async with open_client(args) as client:
        await client.answer(args.job_id, args.step, happened=args.happened, value=value)
    if wants_json(args):
        print_json_line({"job_id": args.job_id, "step": args.step, "happened": args.happened})
    else:
        sys.stdout.write(f"{args.job_id} continues\n")
    return 0
