"""`amends runtime status`: show the status of the runtimes that share a store."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import msgspec

from amends.commands.console import wants_json
from amends.commands.runtime.job_view import print_json_line
from amends.commands.view import counted, painter
from amends.core.text import strip

if TYPE_CHECKING:
    from amends.arcp.runtime.status import NodeStatus, QueueStatus, Status

__all__ = ["options", "work"]


def options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--store", metavar="URL", required=True, help="nats://host:port/name or sqlite:///file"
    )


async def work(args: argparse.Namespace) -> int:
    """Print the current status."""
    from amends import stores
    from amends.arcp.runtime.status import read_status
    from amends.commands.store import store_failures

    with store_failures("--store"):
        async with await stores.open(args.store) as store:
            status = await read_status(store)
    if wants_json(args):
        print_json_line(msgspec.to_builtins(status))
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _lines(status)))
    return 0


def _lines(status: Status) -> list[str]:
    paint = painter()
    counts = {
        "running": status.running,
        "waiting": status.waiting,
        "succeeded": status.succeeded,
        "failed": sum(status.errors.values()),
    }
    jobs = ", ".join(f"{count} {name}" for name, count in counts.items())
    lines = [f"{counted(len(status.nodes), 'node')}, {jobs}"]
    lines += [paint("nodes", "bold"), *map(_node, status.nodes)] if status.nodes else []
    lines += [paint("queues", "bold"), *map(_queue, status.queues)] if status.queues else []
    if status.errors:
        lines += [paint("errors", "bold"), *(f"  {strip(code):<28} {n}" for code, n in status.errors.items())]
    return lines


def _node(node: NodeStatus) -> str:
    if node.name is None:
        return f"  {strip(node.id)}  dead, jobs waiting for take-over: {node.holds}"
    state = "draining" if node.draining else f"lease {node.lease_left:.0f} s"
    return (
        f"  {strip(node.id)}  {strip(node.name)}  {node.running}/{node.room} running  {counted(node.sessions, 'session')}  "
        f"{state}  {strip(', '.join(node.agents)) or 'no agents'}"
    )


def _queue(queue: QueueStatus) -> str:
    return (
        f"  {strip(queue.agent):<28} {queue.waiting} waiting  lag {queue.lag:.1f} s  {queue.leased} leased  "
        f"{queue.dead} dead  on {counted(queue.nodes, 'node')}"
    )
