"""`amends schema`: print the JSON Schema of the Fault, of the output of `decode`, or of a dialect."""

from __future__ import annotations

import argparse
import sys

from amends.commands.console import Subparsers
from amends.schemas import NAMES, schema

__all__ = ["add", "run"]


def add(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "schema",
        help="print a JSON Schema",
        description="Print the JSON Schema of a document that amends reads or writes.",
    )
    parser.add_argument("name", metavar="NAME", choices=NAMES, help=", ".join(NAMES))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print a schema."""
    import msgspec

    sys.stdout.write(msgspec.json.format(msgspec.json.encode(schema(args.name)), indent=2).decode() + "\n")
    return 0
