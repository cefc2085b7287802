"""`amends translate`: an error of one dialect, said in another, with what is lost on the way."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from amends.commands.console import emit, json_bytes
from amends.commands.input import document, opened
from amends.dialects import ALIASES, NAMES, decode, encode
from amends.dialects.translation import translate
from amends.errors.cli import ValidationError

__all__ = ["add", "run"]

_CHOICES = (*NAMES, *(name for name in ALIASES if name == "cli"))

_VOCABULARIES = {dialect: name for name, dialect in ALIASES.items()}
"""Whose words a dialect speaks, where that has another name."""


def add(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "translate",
        help="turn an error of one dialect into another",
        description="Read an error of one dialect from stdin and print it in another. What the other cannot carry "
        "is named on stderr.",
    )
    parser.add_argument(
        "--from", dest="source", choices=_CHOICES, required=True, help="the dialect that comes in"
    )
    parser.add_argument("--to", dest="target", choices=_CHOICES, required=True, help="the dialect to print")
    parser.add_argument(
        "--report", action="store_true", help="print {document, losses} instead of the document"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Translate what comes in."""
    with opened(None) as stream:
        fault = decode(document(stream), args.source)
    if fault is None:
        raise ValidationError(
            f"the input holds no error of the dialect {args.source}",
            suggestions=["amends decode tells what it is", "Choose the dialect with --from"],
        )
    told, lost = translate(fault, to=_VOCABULARIES.get(args.target, args.target))
    written = encode(told, args.target)
    if args.report:
        emit({"document": written, "losses": sorted(lost)})
        return 0
    if sys.stdout.isatty():
        emit(written)
    else:
        sys.stdout.write(json_bytes(written).decode() + "\n")
    if lost:
        sys.stderr.write(f"not carried by {args.target}: {', '.join(sorted(lost))}\n")
    return 0
