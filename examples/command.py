"""A command line that agents can drive. Run: python examples/command.py --output json 7"""

import argparse
import sys

from amends.bindings.argparse import main
from amends.errors import NotFoundError

parser = argparse.ArgumentParser(prog="orders")
parser.add_argument("order", type=int)


def show(args: argparse.Namespace) -> dict[str, int]:
    if args.order != 5:
        raise NotFoundError(f"There is no order {args.order}", suggestions=["Only order 5 is there"])
    return {"order": args.order}


if len(sys.argv) > 1:
    main(parser, show)

# Without arguments the file shows itself: an agent runs the command, and reads what it may do next.
from amends import FaultError
from amends.process import run

for words in (["5"], ["7"], ["seven"]):
    try:
        print(run([sys.executable, __file__, *words, "--output", "json"]).exit)
    except FaultError as error:
        print(error.fault.code, error.decision.action, error.fault.suggestions, error.history[-1].result.exit)
# > 0
# > NOT_FOUND fix ('Only order 5 is there',) 4
# > VALIDATION_ERROR fix ('Give a whole number for order',) 2
