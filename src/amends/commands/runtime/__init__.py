"""`amends runtime serve | worker | submit | tail | cancel | jobs | status | signal | answer`: run ARCP agents, or use a runtime as a client."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import TYPE_CHECKING

from amends.arcp.tokens import VARIABLE as TOKEN
from amends.dialects.outgoing import outgoing

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from amends.arcp import Client, Ticket
    from amends.commands.console import Subparsers
    from amends.core.fault import Fault

__all__ = ["TOKEN", "add", "add_client_options", "add_token_options", "open_client", "run", "token_of"]

# action → (its module, its summary)
ACTIONS = {
    "serve": ("serve", "run agents for clients, on a WebSocket or on stdin and stdout"),
    "worker": ("worker", "run agents for nodes that share a store, without clients"),
    "submit": ("submit", "submit a job and print its events until it ends; Ctrl-C cancels it"),
    "tail": ("tail", "print the events of a job, from the first one"),
    "cancel": ("cancel", "cancel a job that was started with `submit --detach`"),
    "jobs": ("jobs", "list the jobs that you may see"),
    "status": ("status", "show nodes, queues and errors, or the steps of a job"),
    "signal": ("signal", "send a value to a job that waits for it"),
    "answer": ("answer", "say whether a step in doubt happened; the job continues"),
}


def add(subparsers: Subparsers) -> None:
    """Add the `runtime` subcommand."""
    from amends.commands.console import as_sentence

    summary = "run agents (ARCP), submit jobs and watch them"
    runtime = subparsers.add_parser("runtime", help=summary, description=as_sentence(summary))
    actions = runtime.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (module, summary) in ACTIONS.items():
        completes = ["jobs"] if name in {"tail", "cancel", "signal", "answer"} else []
        action = actions.add_parser(name, help=summary, description=as_sentence(summary), completes=completes)
        action.set_defaults(run=run)
        import_module(f"amends.commands.runtime.{module}").options(action)
    runtime.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the action and return the exit code."""
    import asyncio

    from msgspec.structs import replace

    from amends.errors.arcp import CancelledError
    from amends.errors.base import FaultError

    module = import_module(f"amends.commands.runtime.{ACTIONS[args.action][0]}")
    work: Callable[[argparse.Namespace], Coroutine[None, None, int]] = module.work
    try:
        return asyncio.run(work(args))
    except CancelledError as error:
        return _cancelled(args, error.fault)
    except FaultError as error:
        if not _refused(error.fault):
            raise
        step = "Start it with amends runtime serve, or correct the address"
        raise FaultError.from_fault(replace(error.fault, suggestions=(step,))) from error


def _refused(fault: Fault) -> bool:
    """Return whether no server listens at the runtime's address."""
    details = fault.details
    return fault.code == "HEARTBEAT_LOST" and isinstance(details, dict) and details.get("reason") == "refused"


def _cancelled(args: argparse.Namespace, fault: Fault) -> int:
    """Report a cancelled job and return 130. An interrupted command usually writes nothing; here this is the result."""
    from amends.cli.documents import failure, write_stderr
    from amends.commands.console import wants_json

    json = wants_json(args)
    document = failure(outgoing(fault, "envelope"), {}, "json" if json else "text").decode()
    if json:
        sys.stdout.write(document)
    else:
        write_stderr(document)
    return 130


def add_client_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a client of a runtime."""
    parser.add_argument(
        "url",
        metavar="URL",
        help="wss://host/arcp, or ws: on this machine; several nodes of one runtime: URL,URL",
    )
    add_token_options(parser)


def add_token_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say how a client is authenticated."""
    parser.add_argument("--token", metavar="T", help=f"the bearer token; safer in {TOKEN}")
    parser.add_argument("--insecure", action="store_true", help="send the token to another machine over ws:")


def token_of(args: argparse.Namespace) -> str | None:
    """Return the token of --token or of the environment."""
    token: str | None = args.token or os.environ.get(TOKEN)
    return token


def open_client(
    args: argparse.Namespace, *, ticket: Ticket | None = None
) -> AbstractAsyncContextManager[Client]:
    """Return a context manager for a session with the runtime that the arguments name."""
    from amends.arcp import connect
    from amends.arcp.transports.websocket import check_url
    from amends.errors.cli import ValidationError

    urls = args.url.split(",")
    try:
        for url in urls:
            check_url(url, insecure=args.insecure)
    except ValueError as error:
        what, _, step = str(error).rpartition(": ")
        raise ValidationError(
            what or step, suggestions=[step[:1].upper() + step[1:]] if what else (), field="URL"
        ) from None
    # The user named this runtime, and reads what it says.
    insecure = {"insecure": args.insecure}
    return connect(urls, token=token_of(args), transport=insecure, ticket=ticket, own=True)
