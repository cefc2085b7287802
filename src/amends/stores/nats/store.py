# ruff: noqa: D102  (contract.py documents the methods)
"""The NATS backend's store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from amends.stores.address import Address
from amends.stores.arguments import check_lease, check_name
from amends.stores.clock import Clock, SystemClock
from amends.stores.closing import ClosedAtExit
from amends.stores.contract import Transaction
from amends.stores.errors import StoreError, UnsupportedError
from amends.stores.nats.api_errors import ApiError
from amends.stores.nats.connection import NatsConnection
from amends.stores.nats.grouped_log import GroupedLog, grouped_log_names
from amends.stores.nats.log import NatsLog
from amends.stores.nats.opening import open_streams, requested_settings
from amends.stores.nats.queue import NatsQueue
from amends.stores.nats.stream_settings import GROUPED
from amends.stores.nats.streams import Streams
from amends.stores.nats.table import NatsTable
from amends.stores.traits import Traits

__all__ = ["NatsStore", "open_nats"]

T = TypeVar("T")

# The first version with per-message time to live and batched direct gets.
_OLDEST_SERVER = (2, 11)
_CHECKS = 5


async def open_nats(address: Address, options: Mapping[str, Any]) -> NatsStore:
    """
    Open the store with that name on a server or cluster.

    Raises:
        ImportError: nats-py is not installed.
        StoreUnavailableError: no server answers, or it has no JetStream.
        UnsupportedError: the server is too old.
        DamagedStoreError: another version of amends wrote the store.
        StoreMismatchError: the store has other settings than the URL.
    """
    wanted = requested_settings(address)
    timeout = address.seconds("timeout", 10.0)
    try:
        import nats  # noqa: F401
    except ImportError as error:
        raise ImportError("a nats: store needs nats-py: pip install 'amends[nats]'") from error
    servers = [f"nats://{host}" for host in address.hosts]
    connection = await NatsConnection.open(servers, address.display_url, timeout, options)
    try:
        version = connection.client.connected_server_version
        if (version.major, version.minor) < _OLDEST_SERVER:
            raise UnsupportedError(  # noqa: TRY301
                f"nats-server {version.major}.{version.minor} is too old: use 2.11 or newer"
            )
        streams = await open_streams(connection, address.path, wanted)
    except BaseException:
        await connection.close()
        raise
    return NatsStore(streams)


class NatsStore(ClosedAtExit):
    """See `contract.Store`. It belongs to the event loop in which it was opened."""

    # Atomic batches (2.12) cover one stream; logs, tables and queues are in several.
    traits = Traits(
        scope="network", durable=True, transactions=False, sql=False, immediate=False, notifies=True
    )

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self.url = streams.connection.display_url
        self.clock: Clock = SystemClock()

    def log(self, name: str) -> NatsLog | GroupedLog:
        kind = GroupedLog if "/" in check_name(name, "log") else NatsLog
        return kind(self._streams, name)

    def table(self, name: str) -> NatsTable:
        return NatsTable(self._streams, check_name(name, "table"))

    def queue(self, name: str, *, lease: float = 30.0, max_attempts: int | None = None) -> NatsQueue:
        check_lease(lease, max_attempts)
        return NatsQueue(self._streams, check_name(name, "queue"), lease, max_attempts, self.clock)

    async def transaction(self, work: Callable[[Transaction], T]) -> T:
        raise UnsupportedError(
            "a NATS store has no transactions: use a sqlite: store, or make each step repeatable"
        )

    async def names(self) -> dict[str, list[str]]:
        found = await self._streams.names()
        for group in found.get(GROUPED, []):
            found.setdefault("log", []).extend(await grouped_log_names(self._streams, group))
        return {f"{kind}s": sorted(found.get(kind, [])) for kind in ("log", "table", "queue")}

    async def check(self) -> list[str]:
        problems = []
        for kind, names in (await self._streams.names()).items():
            for name in names:
                problems += await self._check_stream(kind, name)
        return problems

    async def _check_group(self, group: str) -> list[str]:
        """Compare, for each grouped log, the number of messages with its bounds."""
        found = []
        counts = await self._streams.subjects(GROUPED, group)
        for name in await grouped_log_names(self._streams, group):
            log = GroupedLog(self._streams, name)
            kept, stored = (await log.bounds()).kept, counts.get(log.subject, 0)
            if not _matches(kept, stored):
                # Probably written, trimmed or dropped between the two reads; a real fault does not change.
                kept, stored = await self._stable_counts(log, group)
            if not _matches(kept, stored):
                found.append(f"log {name!r} should contain {kept} entries, but contains {stored}")
        return found

    async def _stable_counts(self, log: GroupedLog, group: str) -> tuple[int, int]:
        """How many entries a log should contain and does, read while it does not change; zeros if it always changes."""
        for _ in range(_CHECKS):
            newest, bounds = await log.newest(), await log.bounds()
            counts = await self._streams.subjects(GROUPED, group, log.subject)
            # A log that was dropped and recreated may have the same bounds, but never the same stream numbers.
            if await log.bounds() == bounds and await log.newest() == newest:
                return bounds.kept, counts.get(log.subject, 0)
        return 0, 0

    async def _check_stream(self, kind: str, name: str) -> list[str]:
        try:
            info = await self._streams.info(kind, name)
        except (ApiError, StoreError) as error:
            return [f"{kind} {name!r} cannot be read: {error}"]
        if info is None:
            return []
        state, config, found = info["state"], info["config"], []
        kept = state["last_seq"] - state["first_seq"] + 1 if state["messages"] else 0
        if kind == "log" and state["messages"] != kept:
            found.append(f"log {name!r} should contain {kept} entries, but contains {state['messages']}")
        if state.get("lost"):
            found.append(
                f"{kind} {name!r} lost messages {state['lost'].get('msgs')}: restore it from a backup"
            )
        lagging = [
            peer["name"]
            for peer in (info.get("cluster") or {}).get("replicas") or []
            if not peer.get("current")
        ]
        if lagging:
            found.append(f"{kind} {name!r} has replicas that lag behind or are down: {', '.join(lagging)}")
        if config["num_replicas"] < self._streams.settings.replicas:
            found.append(
                f"{kind} {name!r} has {config['num_replicas']} replicas, and the store {self._streams.settings.replicas}"
            )
        if kind == GROUPED:
            found += await self._check_group(name)
        return found

    async def close(self) -> None:
        await self._streams.connection.close()


def _matches(kept: int, stored: int) -> bool:
    # One more is allowed: the marker that remains when all entries were trimmed.
    return kept <= stored <= kept + 1
