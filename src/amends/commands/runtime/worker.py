"""`amends runtime worker`: takes jobs from a shared store and runs them; no connections."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from typing import TYPE_CHECKING

from amends.commands.runtime.load_runtime import AGENT_WORDS, loaded, with_bounds

if TYPE_CHECKING:
    from amends.arcp import Runtime

__all__ = ["options", "work"]


def options(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    parser.usage = "%(prog)s [options] --agents AGENT …"
    parser.description = f"{parser.description} {AGENT_WORDS}"
    parser.add_argument("--agents", nargs="+", required=True, metavar="AGENT", help="those it runs")
    parser.add_argument("--store", metavar="URL", help="nats://host:port/name or sqlite:///file")
    with_bounds(parser)
    parser.set_defaults(token=None, stdio=False)


async def work(args: argparse.Namespace) -> int:
    """Work until told to stop; then take nothing more, let running jobs end, and hand back what can be repeated."""
    from amends.commands.store import store_failures
    from amends.errors.cli import ValidationError

    runtime, _ = loaded(args)
    if not runtime.shared:
        raise ValidationError("A worker shares a store with others", field="--store")
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
        told = {"working": runtime.node.id if runtime.node else "", "agents": agents}
        sys.stdout.write(json_bytes(told).decode() + "\n")
    else:
        paint = painter()
        sys.stdout.write(f"{paint('working', 'green')} for {paint(', '.join(agents), 'bold')}\n")
        sys.stdout.write(paint("Ctrl-C stops it, after its jobs have ended\n", "dim"))
    sys.stdout.flush()
