"""`amends translate`: translate an error from one dialect to another, and report what is lost."""

from __future__ import annotations

import argparse
import sys

from amends.commands.console import Subparsers, emit, json_bytes
from amends.commands.input import open_input, read_document
from amends.dialects import ALIASES, NAMES, decode, encode
from amends.dialects.translation import translate
from amends.errors.cli import ValidationError

__all__ = ["add", "run"]

_CHOICES = (*NAMES, *(name for name in ALIASES if name == "cli"))

_VOCABULARIES = {dialect: name for name, dialect in ALIASES.items()}
"""The vocabulary of a dialect, if its name differs from the dialect's."""


def add(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "translate",
        help="translate an error to another dialect",
        description="Read an error of one dialect from stdin and print it in another. Members that the other dialect "
        "cannot represent are listed on stderr.",
    )
    parser.add_argument(
        "--from", dest="source", choices=_CHOICES, required=True, help="the dialect of the input"
    )
    parser.add_argument(
        "--to", dest="target", choices=_CHOICES, required=True, help="the dialect of the output"
    )
    parser.add_argument(
        "--report", action="store_true", help="print {document, losses} instead of the document"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Translate the input."""
    with open_input(None) as stream:
        fault = decode(read_document(stream), args.source)
    if fault is None:
        raise ValidationError(
            f"the input is not an error of the dialect {args.source}",
            suggestions=["Run amends decode to see what the input is", "Choose its dialect with --from"],
        )
    translated, lost = translate(fault, to=_VOCABULARIES.get(args.target, args.target))
    document = encode(translated, args.target)
    if args.report:
        emit({"document": document, "losses": sorted(lost)})
        return 0
    if sys.stdout.isatty():
        emit(document)
    else:
        sys.stdout.write(json_bytes(document).decode() + "\n")
    if lost:
        sys.stderr.write(f"{args.target} cannot represent: {', '.join(sorted(lost))}\n")
    return 0
