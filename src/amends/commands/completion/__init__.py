"""`amends completion`: a script that completes commands, flags and their values; made from the parsers themselves."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import Any

from amends.commands.completion.places import places
from amends.commands.console import parser as whole

__all__ = ["add", "places", "run"]

# One module each, with script(places).
SHELLS = ("bash", "zsh", "fish")


def add(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "completion",
        help="print a completion script for your shell",
        description='Print a completion script. bash, zsh: eval "$(amends completion bash)"; '
        "fish: amends completion fish | source",
    )
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help="bash, zsh or fish")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print it: a script in a pipe too, because that is where it is read."""
    script = import_module(f"amends.commands.completion.{args.shell}").script
    sys.stdout.write(script(list(places(whole()))))
    return 0
