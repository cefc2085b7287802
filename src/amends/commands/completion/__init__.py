"""`amends completion`: print a script that completes commands, flags and their values. It is generated from the parsers."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from amends.commands.completion.candidates import all_candidates
from amends.commands.completion.values import VALUES
from amends.commands.console import Subparsers
from amends.commands.console import parser as amends_parser
from amends.errors.cli import UsageError

__all__ = ["add", "all_candidates", "run"]

# One module each, with script(candidates).
SHELLS = ("bash", "zsh", "fish")


class _Choices(tuple[str, ...]):
    """The shells, which the help, the errors and the completion list. A kind of VALUES is accepted, too: scripts ask for them."""

    __slots__ = ()

    def __contains__(self, given: object) -> bool:
        return given in VALUES or super().__contains__(given)


def add(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "completion",
        help="print a completion script for your shell",
        description='Print a completion script. bash or zsh: eval "$(amends completion SHELL)"; '
        "fish: amends completion fish | source",
    )
    parser.add_argument(
        "shell", metavar="SHELL", nargs="?", choices=_Choices(SHELLS), help="bash, zsh or fish"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the script, or the values that a script asks for. It is never JSON: a shell reads it through a pipe."""
    if args.shell is None:
        raise UsageError(
            "amends completion needs SHELL", suggestions=["Give bash, zsh or fish"], field="SHELL"
        )
    if args.shell in VALUES:
        sys.stdout.write("".join(f"{value}\n" for value in VALUES[args.shell]()))
        return 0
    script = import_module(f"amends.commands.completion.{args.shell}").script
    sys.stdout.write(script(list(all_candidates(amends_parser()))))
    return 0
