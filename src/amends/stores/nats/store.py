# ruff: noqa: D102  (what a method means is said once, in contract.py)
"""The NATS backend's store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from amends.stores.address import Address
from amends.stores.arguments import check_lease, check_name
from amends.stores.contract import Transaction
from amends.stores.errors import StoreError, UnsupportedError
from amends.stores.nats.api_errors import ApiError
from amends.stores.nats.connection import Link
from amends.stores.nats.grouped_log import SharedLog, shared_names
from amends.stores.nats.log import NatsLog
from amends.stores.nats.queue import NatsQueue
from amends.stores.nats.streams import SHARED, Streams
from amends.stores.nats.table import NatsTable

__all__ = ["NatsStore", "open_nats"]

T = TypeVar("T")

# Per-message time to live and batched direct gets came with it.
_OLDEST_SERVER = (2, 11)
_LOOKS = 5


async def open_nats(address: Address, options: Mapping[str, Any]) -> NatsStore:
    """
    The store of that name on that server or cluster.

    Raises:
        ImportError: nats-py is not installed.
        StoreUnavailableError: no server answers, or it has no JetStream.
        UnsupportedError: the server is too old.
    """
    settings = address.options
    replicas = int(settings.get("replicas", "1"))
    timeout = float(settings.get("timeout", "10"))
    window = float(settings.get("dedupe_window", "120"))
    storage = settings.get("storage", "file")
    if replicas not in range(1, 6) or timeout <= 0 or window <= 0 or storage not in {"file", "memory"}:
        raise ValueError(
            "replicas is 1 to 5, timeout and dedupe_window are seconds, storage is file or memory"
        )
    try:
        import nats  # noqa: F401
    except ImportError as error:
        raise ImportError("a nats: store needs nats-py: pip install 'amends[nats]'") from error
    link = await Link.to([f"nats://{host}" for host in address.hosts], address.shown, timeout, options)
    try:
        version = link.client.connected_server_version
        if (version.major, version.minor) < _OLDEST_SERVER:
            raise UnsupportedError(  # noqa: TRY301
                f"nats-server {version.major}.{version.minor} is too old: 2.11 or newer is needed"
            )
        await link.api("INFO")
    except BaseException:
        await link.close()
        raise
    return NatsStore(Streams(link, address.path, replicas=replicas, storage=storage, dedupe_window=window))


class NatsStore:
    """See `contract.Store`. Belongs to the event loop it was opened in."""

    # Atomic batches (2.12) span one stream; our three primitives do not share one.
    supports_transactions = False

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self.url = streams.link.shown

    def log(self, name: str) -> NatsLog | SharedLog:
        kind = SharedLog if "/" in check_name(name, "log") else NatsLog
        return kind(self._streams, name)

    def table(self, name: str) -> NatsTable:
        return NatsTable(self._streams, check_name(name, "table"))

    def queue(self, name: str, *, lease: float = 30.0, max_attempts: int | None = None) -> NatsQueue:
        check_lease(lease, max_attempts)
        return NatsQueue(self._streams, check_name(name, "queue"), lease, max_attempts)

    async def transaction(self, work: Callable[[Transaction], T], *, short: bool = False) -> T:
        raise UnsupportedError(
            "a NATS store has no transactions: use a sqlite: store, or make each step repeatable"
        )

    async def names(self) -> dict[str, list[str]]:
        found = await self._streams.names()
        for group in found.get(SHARED, []):
            found.setdefault("log", []).extend(await shared_names(self._streams, group))
        return {f"{kind}s": sorted(found.get(kind, [])) for kind in ("log", "table", "queue")}

    async def check(self) -> list[str]:
        problems = []
        for kind, names in (await self._streams.names()).items():
            for name in names:
                problems += await self._look(kind, name)
        return problems

    async def _look_at_shared(self, group: str) -> list[str]:
        """Logs that share a stream: each has as many messages as it has numbers."""
        found = []
        counts = await self._streams.subjects(SHARED, group)
        for name in await shared_names(self._streams, group):
            log = SharedLog(self._streams, name)
            kept, held = (await log.bounds()).kept, counts.get(log.subject, 0)
            if not _even(kept, held):
                # Written, trimmed or dropped between the two looks, most likely: what is wrong stands still.
                kept, held = await self._at_rest(log, group)
            if not _even(kept, held):
                found.append(f"log {name!r} should hold {kept} entries and holds {held}")
        return found

    async def _at_rest(self, log: SharedLog, group: str) -> tuple[int, int]:
        """How many entries a log should hold, and does, while nobody changes it; of one that always changes, nothing."""
        for _ in range(_LOOKS):
            newest, bounds = await log.newest(), await log.bounds()
            counts = await self._streams.subjects(SHARED, group, log.subject)
            # Dropped and begun again, it may have the same numbers; the stream's are never used twice.
            if await log.bounds() == bounds and await log.newest() == newest:
                return bounds.kept, counts.get(log.subject, 0)
        return 0, 0

    async def _look(self, kind: str, name: str) -> list[str]:
        try:
            info = await self._streams.info(kind, name)
        except (ApiError, StoreError) as error:
            return [f"{kind} {name!r} cannot be read: {error}"]
        if info is None:
            return []
        state, config, found = info["state"], info["config"], []
        kept = state["last_seq"] - state["first_seq"] + 1 if state["messages"] else 0
        if kind == "log" and state["messages"] != kept:
            found.append(f"log {name!r} should hold {kept} entries and holds {state['messages']}")
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
        if config["num_replicas"] < self._streams.replicas:
            found.append(
                f"{kind} {name!r} has {config['num_replicas']} replicas, fewer than the URL asks for"
            )
        if kind == SHARED:
            found += await self._look_at_shared(name)
        return found

    async def close(self) -> None:
        await self._streams.link.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _even(kept: int, held: int) -> bool:
    # A marker, where everything was trimmed, is no entry.
    return kept <= held <= kept + 1
