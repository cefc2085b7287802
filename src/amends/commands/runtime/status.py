"""`amends runtime status`: show the status of the runtimes that share a store, or of one runtime as its client sees it."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import msgspec

from amends.commands.console import wants_json
from amends.commands.runtime import add_token_options, open_client
from amends.commands.runtime.job_view import print_json_line
from amends.commands.view import counted, painter
from amends.core.text import strip

if TYPE_CHECKING:
    from amends.arcp.runtime.status import NodeStatus, QueueStatus, Status

__all__ = ["options", "work"]

_LISTED = 1_000
"""The most jobs that are counted."""


def options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "url",
        metavar="URL",
        nargs="?",
        help="wss://host/arcp, or ws: on this machine: what this token may see",
    )
    parser.add_argument(
        "--store", metavar="URL", help="nats://host:port/name or sqlite:///file: all nodes and jobs"
    )
    add_token_options(parser)


async def work(args: argparse.Namespace) -> int:
    """Print the current status."""
    from amends import stores
    from amends.arcp.runtime.status import read_status
    from amends.commands.store import store_failures
    from amends.errors.cli import ValidationError

    if (args.url is None) == (args.store is None):
        raise ValidationError(
            "Name the URL of a runtime, or its store with --store",
            suggestions=[
                "amends runtime status wss://host/arcp",
                "amends runtime status --store sqlite:///jobs.db",
            ],
        )
    if args.url is not None:
        return await _show_runtime(args)
    with store_failures("--store"):
        async with await stores.open(args.store) as store:
            status = await read_status(store)
    if wants_json(args):
        print_json_line(msgspec.to_builtins(status))
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _lines(status)))
    return 0


async def _show_runtime(args: argparse.Namespace) -> int:
    """Print what a client sees of a runtime: its name, its agents, and its jobs by status."""
    async with open_client(args) as client:
        jobs = await client.jobs(limit=_LISTED)
        agents = {name: agent.versions or [] for name, agent in sorted(client.agents.items())}
    counts: dict[str, int] = {}
    for job in jobs:
        counts[job.status] = counts.get(job.status, 0) + 1
    if wants_json(args):
        print_json_line({"url": args.url, "agents": agents, "jobs": counts, "complete": len(jobs) < _LISTED})
        return 0
    shown = ", ".join(f"{count} {strip(status)}" for status, count in sorted(counts.items()))
    more = "" if len(jobs) < _LISTED else f" (the newest {_LISTED})"
    lines = [f"{counted(len(agents), 'agent')}, jobs: {shown or 'none'}{more}"]
    lines += [f"  {strip(name):<28} {strip(', '.join(versions))}" for name, versions in agents.items()]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
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
