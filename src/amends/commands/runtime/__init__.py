"""`amends runtime serve | worker | submit | tail | cancel | jobs | status`: run agents, and talk to those who do."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Coroutine
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amends.core.fault import Fault

__all__ = ["add", "run"]

TOKEN = "AMENDS_RUNTIME_TOKEN"  # noqa: S105 - its name, not a token
"""The bearer token's place in the environment: other users of the machine see a command line, not that."""

# action → (its module, what it does)
ACTIONS = {
    "serve": ("serve", "run agents for clients, on a WebSocket or on stdin and stdout"),
    "worker": ("worker", "run agents for the nodes that share a store; no connections"),
    "submit": ("submit", "submit a job and watch it to its end; Ctrl-C cancels it"),
    "tail": ("tail", "watch a job of another session, from its first event"),
    "cancel": ("cancel", "cancel a job that `submit --detach` left"),
    "jobs": ("jobs", "the jobs you may see"),
    "status": ("status", "nodes, agents, queues and errors of the runtimes that share a store"),
}


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `runtime` subcommand."""
    from amends.commands.console import as_sentence

    words = "run agents (ARCP), submit jobs to them, watch them"
    runtime = subparsers.add_parser("runtime", help=words, description=as_sentence(words))
    actions = runtime.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (module, words) in ACTIONS.items():
        action = actions.add_parser(name, help=words, description=as_sentence(words))
        action.set_defaults(run=run)
        import_module(f"amends.commands.runtime.{module}").options(action)
    runtime.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Do it; failures are raised, and told by the command line."""
    import asyncio

    from amends.errors.arcp import CancelledError
    from amends.errors.cli import ValidationError

    module = import_module(f"amends.commands.runtime.{ACTIONS[args.action][0]}")
    work: Coroutine[Any, Any, int] = module.work(args)
    try:
        return asyncio.run(work)
    except CancelledError as error:
        return _cancelled(args, error.fault)
    except ImportError as error:
        if error.name != "websockets":
            raise
        raise ValidationError(str(error)) from None


def _cancelled(args: argparse.Namespace, fault: Fault) -> int:
    """A job that was cancelled. To the command line an interrupted command says no more; here it is the answer."""
    from amends.cli.documents import failure, failure_text
    from amends.commands.console import wants_json

    if wants_json(args):
        sys.stdout.write(failure(fault, {"trace_id": fault.trace_id}, "json").decode())
    else:
        failure_text(fault)
    return 130


def with_runtime(parser: argparse.ArgumentParser) -> None:
    """The arguments of whoever talks to a runtime."""
    parser.add_argument("url", metavar="URL", help="wss://host/arcp, or ws: on this machine")
    parser.add_argument("--token", metavar="T", help=f"the bearer token; better in {TOKEN}")
    parser.add_argument("--insecure", action="store_true", help="send the token over ws: to another machine")


def token_of(args: argparse.Namespace) -> str | None:
    """The token: given, or from the environment."""
    token: str | None = args.token or os.environ.get(TOKEN)
    return token


def connecting(args: argparse.Namespace, **options: Any) -> Any:
    """A session with the runtime the arguments name."""
    from amends.arcp import connect
    from amends.arcp.transports.websocket import check_url
    from amends.errors.cli import ValidationError

    try:
        check_url(args.url, insecure=args.insecure)
    except ValueError as error:
        raise ValidationError(str(error), field="URL") from None
    return connect(args.url, token=token_of(args), transport={"insecure": args.insecure}, **options)
