"""`amends runtime status`: show the status of the runtimes that share a store, or of one runtime as its client sees it."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from amends.commands.console import wants_json
from amends.commands.runtime import add_token_options, open_client
from amends.commands.runtime.job_view import print_json_line
from amends.commands.view import counted, painter
from amends.core.redaction import redact
from amends.core.text import strip

if TYPE_CHECKING:
    from amends.arcp.runtime.status import NodeStatus, QueueStatus, Status
    from amends.stores import Store

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
    parser.add_argument("job_id", metavar="JOB", nargs="?", help="a job: its steps, and what is in doubt")
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

    if args.store is not None and args.url is not None and args.job_id is None and "://" not in args.url:
        # The only argument beside --store is a job, unless it is an address.
        args.url, args.job_id = None, args.url
    if (args.url is None) == (args.store is None):
        raise ValidationError(
            "Name the URL of a runtime, or its store with --store",
            suggestions=[
                "amends runtime status wss://host/arcp",
                "amends runtime status --store sqlite:///jobs.db",
            ],
        )
    if args.url is not None:
        return await (_show_runtime(args) if args.job_id is None else _show_job(args))
    with store_failures("--store"):
        async with await stores.open(args.store) as store:
            if args.job_id is not None:
                return await _show_stored_job(args, store)
            status = await read_status(store)
    if wants_json(args):
        print_json_line(msgspec.to_builtins(status))
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _lines(status)))
    return 0


async def _show_job(args: argparse.Namespace) -> int:
    """Print the steps of a job as its runtime tells them."""
    async with open_client(args) as client:
        steps = await client.steps(args.job_id)
        listed = [job for job in await client.jobs(limit=_LISTED) if job.job_id == args.job_id]
    return _print_steps(args, listed[0].status if listed else None, steps)


async def _show_stored_job(args: argparse.Namespace, store: Store) -> int:
    """Print the steps of a job from its log."""
    from amends.arcp.runtime.jobs.answers import read_steps
    from amends.arcp.runtime.jobs.outcome import status_of
    from amends.arcp.runtime.ledger import Ledger
    from amends.arcp.runtime.limits import Limits
    from amends.errors.arcp import JobNotFoundError

    ledger = Ledger(store, "", Limits())
    tail = await ledger.tail(args.job_id)
    if tail is None:
        raise JobNotFoundError
    entry = tail[1]
    status = status_of(entry) if entry.ended else "running" if entry.node else "pending"
    steps = [msgspec.to_builtins(step) for step in await read_steps(ledger, args.job_id)]
    return _print_steps(args, status, steps)


def _print_steps(args: argparse.Namespace, status: str | None, steps: list[dict[str, Any]]) -> int:
    from amends.effects.records import instant

    if wants_json(args):
        print_json_line({"job_id": args.job_id, "status": status, "steps": steps})
        return 0
    lines = [f"{strip(args.job_id)} {strip(status or '')}: {counted(len(steps), 'step')}"]
    for step in steps:
        state = strip(str(step.get("state")))
        if step.get("until") is not None:
            state += f" until {instant(float(step['until']))}"
        tries = step.get("attempts") or 0
        begun = f"  begun {tries} times" if tries > 1 else ""
        author = f"  answered by {_plain(step['author'])}" if step.get("author") else ""
        lines.append(f"  {_plain(step.get('step')):<40} {state}{begun}{author}")
        if step.get("question"):
            lines.append(f"    {_plain(step['question'])}")
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def _plain(text: object) -> str:
    """Return a text of an agent without control characters, and without what looks like a secret."""
    return redact(strip(str(text)))


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
