"""`amends runtime status`: how the runtimes that share a store stand."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import msgspec

from amends.commands.runtime.job_view import tell_line, told_as_json
from amends.core.text import strip

if TYPE_CHECKING:
    from amends.arcp.runtime.status import NodeStatus, QueueStatus, Status

__all__ = ["options", "work"]


def options(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    parser.add_argument(
        "--store", metavar="URL", required=True, help="nats://host:port/name or sqlite:///file"
    )


async def work(args: argparse.Namespace) -> int:
    """Look once, and say."""
    from amends import stores
    from amends.arcp.runtime.status import read_status
    from amends.commands.store import store_failures

    with store_failures("--store"):
        async with await stores.open(args.store) as store:
            found = await read_status(store)
    if told_as_json(args):
        tell_line(msgspec.to_builtins(found))
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _lines(found)))
    return 0


def _lines(found: Status) -> list[str]:
    from amends.commands.view import painter

    paint = painter()
    counts = {
        "nodes": len(found.nodes),
        "running": found.running,
        "waiting": found.waiting,
        "succeeded": found.succeeded,
        "failed": sum(found.errors.values()),
    }
    lines = [", ".join(f"{count} {what}" for what, count in counts.items())]
    lines += [paint("nodes", "bold"), *map(_node, found.nodes)] if found.nodes else []
    lines += [paint("queues", "bold"), *map(_queue, found.queues)] if found.queues else []
    if found.errors:
        lines += [paint("errors", "bold"), *(f"  {strip(code):<28} {n}" for code, n in found.errors.items())]
    return lines


def _node(node: NodeStatus) -> str:
    if node.name is None:
        return f"  {strip(node.id)}  dead, its jobs wait to be taken over: {node.holds}"
    state = "draining" if node.draining else f"lease {node.lease_left:.0f} s"
    return (
        f"  {strip(node.id)}  {strip(node.name)}  {node.running}/{node.room} running  {node.sessions} sessions  "
        f"{state}  {strip(', '.join(node.agents)) or 'no agents'}"
    )


def _queue(queue: QueueStatus) -> str:
    return (
        f"  {strip(queue.agent):<28} {queue.waiting} waiting  lag {queue.lag:.1f} s  {queue.leased} leased  "
        f"{queue.dead} dead  on {queue.nodes} nodes"
    )
