"""`amends runtime worker`: take jobs from a shared store and run them, without accepting connections."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from typing import TYPE_CHECKING

from amends.commands.runtime.load_runtime import AGENT_SYNTAX, add_limit_options, load_runtime

if TYPE_CHECKING:
    from amends.arcp import Runtime

__all__ = ["options", "work"]


def options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.usage = "%(prog)s [options] AGENT …"
    parser.description = f"{parser.description} {AGENT_SYNTAX}"
    parser.add_argument("agents", nargs="*", metavar="AGENT", help=argparse.SUPPRESS)
    parser.add_argument(
        "--agents", nargs="+", dest="more_agents", default=[], metavar="AGENT", help="the same, as an option"
    )
    parser.add_argument("--store", metavar="URL", help="nats://host:port/name or sqlite:///file")
    add_limit_options(parser)
    parser.set_defaults(token=None, stdio=False)


async def work(args: argparse.Namespace) -> int:
    """Run jobs until SIGINT or SIGTERM. Then take no new jobs, wait for running ones, and requeue repeatable ones."""
    from amends.commands.store import store_failures
    from amends.errors.cli import UsageError, ValidationError

    args.agents = [*args.agents, *args.more_agents]
    if not args.agents:
        raise UsageError("Name an agent", suggestions=["amends runtime worker agents:summarise --store URL"])
    runtime, _ = load_runtime(args)
    if not runtime.shared:
        raise ValidationError("A worker needs a store that other nodes share", field="--store")
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    with store_failures("--store"):
        await runtime.start()
    try:
        _announce(args, runtime)
        await stop.wait()
    finally:
        await runtime.stop()
    return 0


def _announce(args: argparse.Namespace, runtime: Runtime) -> None:
    from amends.commands.console import json_bytes, wants_json
    from amends.commands.view import painter

    agents = runtime.agents
    if wants_json(args):
        document = {"working": runtime.node.id if runtime.node else "", "agents": agents}
        sys.stdout.write(json_bytes(document).decode() + "\n")
    else:
        paint = painter()
        sys.stdout.write(f"{paint('working', 'green')} on jobs of {paint(', '.join(agents), 'bold')}\n")
        sys.stdout.write(paint("Ctrl-C stops it when its jobs have ended\n", "dim"))
    sys.stdout.flush()
