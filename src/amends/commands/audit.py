"""`amends audit cli -- command …`: score a command line from 0 to 3, with evidence."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

__all__ = ["add", "run"]


def add(subparsers: Any) -> None:
    """Add the subcommand."""
    words = "score a command line from 0 to 3"
    parser = subparsers.add_parser(
        "audit",
        help=words,
        description=f"{words.capitalize()}, by how well a program can act on its failures.",
    )
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    cli = kinds.add_parser(
        "cli",
        help="a program on this machine",
        usage="amends audit cli [options] -- command …",
        description="Ask a command line for help, its version, a command and a flag that there are none of; with "
        "--fixture, also have it call a loopback service that fails. Then score what came back.",
    )
    cli.add_argument("--fixture", action="store_true", help="start the failing service and make the --call")
    cli.add_argument(
        "--call",
        metavar="WORDS",
        help="one harmless call that asks the service; {url} stands for its address",
    )
    cli.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        type=_variable,
        help="for the command; {url} stands for the service's address",
    )
    cli.add_argument("--json-flag", metavar="WORDS", help="what makes it speak JSON; looked for without it")
    cli.add_argument("--timeout", type=float, default=30.0, metavar="S", help="seconds for one run (30)")
    cli.add_argument("--keep-network", action="store_true", help="do not cut the network off")
    cli.add_argument(
        "--html", metavar="FILE", type=Path, help="write the report with its evidence as one page"
    )
    cli.add_argument("--min", type=int, choices=range(4), metavar="N", help="exit 1 when it scores less")
    cli.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    cli.set_defaults(run=run)
    parser.set_defaults(run=run)


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError("it is NAME=VALUE")
    return name, value


def run(args: argparse.Namespace) -> int:
    """Probe, score and tell; 1 when less than --min is certain."""
    import shlex

    from amends.audit import html, observe, score
    from amends.audit.sandbox import cut_network
    from amends.audit.views import lines
    from amends.commands.console import emit, wants_json, words_after
    from amends.commands.view import painter
    from amends.errors.cli import NotFoundError, UsageError

    words = words_after(args.words, "amends audit cli")
    if args.fixture != (args.call is not None):
        raise UsageError(
            "--fixture and --call belong together",
            field="--fixture",
            suggestions=["Name a harmless call: --fixture --call 'get 42'"],
        )
    command = _found(words)
    if command is None:
        raise NotFoundError(
            f"there is no command {words[0]}",
            field=words[0],
            suggestions=[f"Install {words[0]}, or give its whole path"],
        )
    network = "not enforced: --keep-network" if args.keep_network else cut_network()
    report = score(
        observe(
            command,
            call=args.call,
            env=dict(args.env),
            json_way=None if args.json_flag is None else shlex.split(args.json_flag),
            timeout=args.timeout,
            network=network,
        )
    )
    if args.html is not None:
        args.html.write_text(html(report), encoding="utf-8")
    if wants_json(args):
        emit(report)
    else:
        sys.stdout.write("\n".join(lines(report, painter())) + "\n")
    return 1 if args.min is not None and report.at_least < args.min else 0


def _found(words: list[str]) -> list[str] | None:
    """The command with its first word as a path: probes run in a directory of their own."""
    import shutil

    path = shutil.which(words[0])
    if path is None:
        return None
    return [str(Path(path).absolute()), *words[1:]]
