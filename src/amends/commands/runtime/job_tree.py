"""The jobs of a listing as trees of delegations, and what a listing does not contain: error codes and remaining budgets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from amends.errors.base import FaultError

if TYPE_CHECKING:
    from amends.arcp import Client
    from amends.arcp.wire.messages import JobEntry

__all__ = ["JobEnd", "read_ends", "tree"]

_FAILED = frozenset({"error", "cancelled", "timed_out"})
_AT_ONCE = 8
_WITHIN = 10.0


class JobEnd(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a job failed, and what is left of its budget."""

    error_code: str | None = None
    budget: dict[str, object] | None = None


def tree(jobs: list[JobEntry]) -> Iterator[tuple[int, JobEntry]]:
    """The jobs with their depth: each job before its children, children by age, roots in the listing's order."""
    listed = {entry.job_id for entry in jobs}
    children: dict[str | None, list[JobEntry]] = {}
    for entry in jobs:
        parent = entry.parent_job_id if entry.parent_job_id in listed else None
        children.setdefault(parent, []).append(entry)
    # A stack instead of recursion, because a peer decides how deep the tree is. A cycle is not reached from a root.
    stack = [(0, entry) for entry in reversed(children.get(None, []))]
    while stack:
        depth, entry = stack.pop()
        yield depth, entry
        # Listings start with the newest job; the stack returns the oldest first.
        stack += [(depth + 1, child) for child in children.get(entry.job_id, [])]


async def read_ends(client: Client, jobs: list[JobEntry]) -> dict[str, JobEnd]:
    """Ask the runtime about the jobs that failed or have a budget."""
    if "subscribe" not in client.features:
        return {}
    slots = asyncio.Semaphore(_AT_ONCE)

    async def read(entry: JobEntry) -> tuple[str, JobEnd]:
        async with slots:
            return entry.job_id, await _read_end(client, entry)

    wanted = [entry for entry in jobs if entry.status in _FAILED or "cost.budget" in (entry.lease or {})]
    return dict(await asyncio.gather(*map(read, wanted)))


async def _read_end(client: Client, entry: JobEntry) -> JobEnd:
    ended = entry.status not in {"pending", "running"}
    code = budget = None
    try:
        async with asyncio.timeout(_WITHIN):
            # Of an ended job only its last message is requested.
            last = max(0, (entry.last_event_seq or 1) - 1)
            handle = await client.subscribe(
                entry.job_id, history=ended, from_event_seq=last if ended else None
            )
            budget = handle.accepted.budget
            if ended:
                await handle.done
            else:
                await client.unsubscribe(entry.job_id)
    except FaultError as error:
        code = error.code if ended else None
    except TimeoutError:
        pass
    return JobEnd(code, budget)
