"""A command line that agents can drive. Run: python examples/command.py --output json 7"""

import argparse
import sys

from amends.bindings.argparse import main
from amends.errors import NotFoundError

parser = argparse.ArgumentParser(prog="orders")
parser.add_argument("order", type=int)


def show(args: argparse.Namespace) -> dict[str, int]:
    if args.order != 5:
        raise NotFoundError(f"There is no order {args.order}", suggestions=["The only order is 5"])
    return {"order": args.order}


if len(sys.argv) > 1:
    main(parser, show)

# Without arguments this file runs itself as an agent would, and prints what to do next.
from amends import FaultError
from amends.process import run

for order in ("5", "7", "seven"):
    try:
        print(run([sys.executable, __file__, order, "--output", "json"]).exit)
    except FaultError as error:
        print(error.fault.code, error.decision.action, error.fault.suggestions, error.history[-1].result.exit)
# > 0
# > NOT_FOUND fix ('The only order is 5',) 4
# > VALIDATION_ERROR fix ('Give a whole number for order',) 2
