"""`amends audit`: score a command line or a service from 0 to 3, with evidence."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from amends.commands.audit_surfaces import add_surfaces
from amends.commands.numbers import positive_seconds

__all__ = ["add", "run"]


def add(subparsers: Any) -> None:
    """Add the subcommand."""
    summary = "score how well programs can act on failures"
    parser = subparsers.add_parser(
        "audit",
        help=summary,
        description=f"{summary.capitalize()}: of a command line, an API, an MCP server, an agent or a runtime.",
    )
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    cli = kinds.add_parser(
        "cli",
        help="a program on this machine",
        usage="amends audit cli [options] -- command …",
        description="Run a command with --help, --version, an unknown command and an unknown flag. With --fixture, "
        "also run the --call against a failing service on loopback. Then score the results.",
    )
    cli.add_argument("--fixture", action="store_true", help="start the failing service and run the --call")
    cli.add_argument(
        "--call",
        metavar="ARGS",
        help="one harmless call to the service; {url} is replaced by its address",
    )
    cli.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        type=_variable,
        help="a variable for the command; {url} is replaced as in --call",
    )
    cli.add_argument(
        "--json-flag", metavar="ARGS", help="the flag for JSON output (default: try the common ones)"
    )
    cli.add_argument(
        "--timeout", type=positive_seconds, default=30.0, metavar="S", help="seconds for one run (30)"
    )
    cli.add_argument("--keep-network", action="store_true", help="do not cut off the network")
    cli.add_argument("--html", metavar="FILE", type=Path, help="write the report with its evidence as HTML")
    cli.add_argument("--min", type=int, choices=range(4), metavar="N", help="exit with 1 if it scores less")
    cli.add_argument("argv", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    cli.set_defaults(run=run)
    add_surfaces(kinds)
    parser.set_defaults(run=run)


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError("must be NAME=VALUE")
    return name, value


def run(args: argparse.Namespace) -> int:
    """Run the probes, score them and print the report. Return 1 if the certain score is below --min."""
    import shlex

    from amends.audit import html, observe, score
    from amends.audit.sandbox import cut_network
    from amends.audit.views import lines
    from amends.commands.console import command_after_dashes, emit, wants_json
    from amends.commands.view import columns, painter
    from amends.errors.cli import NotFoundError, UsageError

    argv = command_after_dashes(args.argv, "amends audit cli")
    if args.fixture != (args.call is not None):
        raise UsageError(
            "--fixture and --call must be used together",
            field="--fixture",
            suggestions=["Name a harmless call: --fixture --call 'get 42'"],
        )
    command = _with_absolute_path(argv)
    if command is None:
        raise NotFoundError(
            f"there is no command {argv[0]}",
            field=argv[0],
            suggestions=[f"Install {argv[0]}, or give its full path"],
        )
    network = "not enforced: --keep-network" if args.keep_network else cut_network()
    report = score(
        observe(
            command,
            call=args.call,
            env=dict(args.env),
            json_flags=None if args.json_flag is None else shlex.split(args.json_flag),
            timeout=args.timeout,
            network=network,
        )
    )
    if args.html is not None:
        args.html.write_text(html(report), encoding="utf-8")
    if wants_json(args):
        emit(report)
    else:
        sys.stdout.write("\n".join(lines(report, painter(), columns())) + "\n")
    return 1 if args.min is not None and report.at_least < args.min else 0


def _with_absolute_path(argv: list[str]) -> list[str] | None:
    """Return the command with an absolute path, because probes run in another directory; None if it does not exist."""
    import shutil

    path = shutil.which(argv[0])
    if path is None:
        return None
    return [str(Path(path).absolute()), *argv[1:]]
