"""The state of a cluster as its store shows it: nodes, agents, queues and outcomes of jobs."""

from __future__ import annotations

import time
from collections import Counter

import msgspec

from amends.arcp.runtime.agents import merge_offers
from amends.arcp.runtime.cluster.takeover import waiting
from amends.arcp.runtime.entries import NODES, NodeRow, Summary, job_log, queue_of
from amends.arcp.runtime.ledger import Ledger, read_entry
from amends.arcp.runtime.limits import Limits
from amends.core.wrong_calls import explains_wrong_calls
from amends.durable.workers import Workers
from amends.stores import Store

__all__ = ["NodeStatus", "QueueStatus", "Status", "read_status"]

_FAILED = 1_000
"""Failed jobs whose codes are read; the newest first."""


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """
    A node: live as of its last heartbeat, or dead with jobs that were not taken over yet (then without a name).

        status = await read_status(store)
        dead = [node.id for node in status.nodes if node.lease_left == 0]
    """

    id: str
    name: str | None
    started_at: float | None
    lease_left: float
    """Seconds until the node is considered dead unless it renews its row; 0 if it is dead."""
    agents: tuple[str, ...]
    running: int
    room: int
    sessions: int
    draining: bool
    holds: int
    """Unfinished jobs that belong to the node according to the store."""


class QueueStatus(msgspec.Struct, frozen=True, kw_only=True):
    """
    The queue of an agent.

        status = await read_status(store)
        late = [queue.agent for queue in status.queues if queue.lag > 60]
    """

    agent: str
    nodes: int
    """How many live nodes can run the agent."""
    waiting: int
    lag: float
    """Seconds since the oldest queued job was submitted."""
    leased: int
    """Jobs handed to a node that has not started them yet."""
    dead: int


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """
    A cluster's state, from `read_status`.

    Errors and successes are counted by the live nodes, each since its start, which write their counts several times per
    lease. Ended jobs that are still in the store are counted there too; the larger number is shown.

        status = await read_status(store)
        print(status.running, status.waiting, status.errors)
    """

    nodes: tuple[NodeStatus, ...]
    queues: tuple[QueueStatus, ...]
    running: int
    waiting: int
    succeeded: int
    errors: dict[str, int]


@explains_wrong_calls
async def read_status(store: Store) -> Status:
    """
    Return the state of the runtimes that share a store.

    >>> import asyncio
    >>> from amends import stores
    >>> async def example():
    ...     async with await stores.open("memory:") as store:
    ...         return await read_status(store)
    >>> status = asyncio.run(example())
    >>> status.nodes, status.running
    ((), 0)

    Raises:
        StoreError: the store failed.

    """
    alive = await Workers(store, NODES, NodeRow, expires_in=0.0).alive()
    holds: Counter[str] = Counter()
    queued: list[Summary] = []
    ledger = Ledger(store, "", Limits())
    async for owner, row in ledger.active():
        if owner:
            holds[owner] += 1
        else:
            queued.append(row)
    ended: Counter[str] = Counter()
    for node_row, _ in alive.values():
        ended.update(node_row.ended)
    ended |= await _stored_ends(ledger)
    succeeded = ended.pop("", 0)
    return Status(
        nodes=tuple(_node(id, alive.get(id), holds[id]) for id in sorted({*alive, *holds})),
        queues=await _queues(store, [node_row for node_row, _ in alive.values()], queued),
        running=holds.total(),
        waiting=len(queued),
        succeeded=succeeded,
        errors=dict(sorted(ended.items())),
    )


async def _stored_ends(ledger: Ledger) -> Counter[str]:
    """Count the ended jobs in the store by error code; a success has the code ""."""
    ends: Counter[str] = Counter()
    failed: list[Summary] = []
    async for summary in ledger.ended():
        if summary.status == "success":
            ends[""] += 1
        else:
            failed.append(summary)
    failed.sort(key=lambda one: one.ended, reverse=True)
    for one in failed[:_FAILED]:
        last = await ledger.store.log(job_log(one.job_id)).tail()
        code = None if last is None else _error_code(last.value)
        if code is not None:
            ends[code] += 1
    return ends


def _error_code(value: bytes) -> str | None:
    """The code in the last entry of a failed job, or None if it is not a readable error."""
    try:
        return _read_error(read_entry(value).payload).code
    except msgspec.MsgspecError:
        return None


class _Error(msgspec.Struct):
    code: str


_read_error = msgspec.json.Decoder(_Error).decode


def _node(id: str, alive: tuple[NodeRow, float] | None, holds: int) -> NodeStatus:
    row, left = alive or (NodeRow(name="", started=0.0), 0.0)
    return NodeStatus(
        id=id,
        name=row.name or None,
        started_at=row.started or None,
        lease_left=round(left, 3),
        agents=_references(row),
        running=row.running,
        room=row.room,
        sessions=row.sessions,
        draining=row.draining,
        holds=holds,
    )


def _references(row: NodeRow) -> tuple[str, ...]:
    return tuple(
        f"{name}@{version}" for name, versions in merge_offers([row.agents]).items() for version in versions
    )


async def _queues(store: Store, nodes: list[NodeRow], queued: list[Summary]) -> tuple[QueueStatus, ...]:
    having = Counter(reference for row in nodes for reference in _references(row))
    waits, now = waiting(queued), time.time()
    found = []
    for agent in sorted({*having, *waits}):
        count, oldest = waits.get(agent, (0, now))
        size = await store.queue(queue_of(agent)).size()
        found.append(
            QueueStatus(
                agent=agent,
                nodes=having[agent],
                waiting=count,
                lag=round(max(0.0, now - oldest), 3),
                leased=size.leased,
                dead=size.dead,
            )
        )
    return tuple(found)
