"""
The JetStream streams of a store: one for each log (or group of logs, see `grouped_log`), table and queue, and one for
claims and dead letters.

A stream's sequence numbers are the log's numbers and the table's revisions. Stream names are
`amends_<store>_<kind>_<name>`, subjects `amends.<store>.<kind>.<name>…`, and the original name is in the stream's metadata.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from amends.stores.errors import DamagedStoreError, StoreError, StoreFullError, StoreUnavailableError
from amends.stores.nats.api_errors import ApiError
from amends.stores.nats.connection import NatsConnection
from amends.stores.nats.log_positions import LogPositions
from amends.stores.nats.notifications import Notifications
from amends.stores.nats.stream_settings import NOTIFICATION, Settings, differing, stream_config
from amends.stores.nats.subjects import token

__all__ = ["Streams"]

_PAUSE = 0.05
_PROBE_TIMEOUT = 2.0
# After this many seconds the replicas of a stream are read again, because an operator can change them.
_REPLICAS_KEPT = 30.0


class Streams:
    """Creates streams when they are first written to, and remembers which exist."""

    def __init__(self, connection: NatsConnection, store: str, settings: Settings) -> None:
        self.connection = connection
        self.settings = settings
        """The settings of streams that are created."""
        self._store = store
        self._ensured: set[str] = set()
        self._replicas: dict[str, tuple[int, float]] = {}
        self.positions = LogPositions()
        self.notifications = Notifications(connection)
        connection.on_reconnect = self.notifications.notify_all

    def stream(self, kind: str, name: str) -> str:
        """The stream's name."""
        return f"amends_{self._store}_{kind}_{token(name)}"

    def subject(self, kind: str, name: str) -> str:
        """The stream's subject, or the prefix of its subjects."""
        return f"amends.{self._store}.{kind}.{token(name)}"

    async def ensure(self, kind: str, name: str, *, first: int = 1) -> None:
        """
        Create the stream if it does not exist. Does nothing the second time.

        Raises:
            DamagedStoreError: a stream of that name exists and lacks settings that the store depends on.
        """
        stream = self.stream(kind, name)
        if stream in self._ensured:
            return
        config = stream_config(
            self.settings,
            self._store,
            kind,
            name,
            stream,
            self.subject(kind, name),
            self.subject(NOTIFICATION, name),
        )
        if first > 1:
            config["first_seq"] = first
        try:
            found = (await self.connection.api(f"STREAM.CREATE.{stream}", config))["config"]
        except ApiError as error:
            if not error.exists_otherwise:
                raise
            # An operator may have changed its replicas or limits.
            found = (await self.connection.api(f"STREAM.INFO.{stream}"))["config"]
            if different := differing(config, found):
                raise DamagedStoreError(
                    f"stream {stream} has another {' and '.join(different)} than amends gives it: "
                    f"restore the setting with `nats stream edit {stream}`"
                ) from None
        self._remember_replicas(stream, found)
        self._ensured.add(stream)

    def _remember_replicas(self, stream: str, config: dict[str, Any]) -> int:
        replicas = int(config["num_replicas"])
        self._replicas[stream] = (replicas, time.monotonic() + _REPLICAS_KEPT)
        return replicas

    async def replicas(self, kind: str, name: str) -> int:
        """
        The number of the stream's replicas; 0 if there is no stream.

        It decides how the stream is read: with more than one, a direct get may be answered by a replica that lags.
        """
        stream = self.stream(kind, name)
        known = self._replicas.get(stream)
        if known is not None and known[1] > time.monotonic():
            return known[0]
        info = await self.info(kind, name)
        return 0 if info is None else self._remember_replicas(stream, info["config"])

    async def publish(
        self,
        kind: str,
        name: str,
        suffix: str,
        payload: bytes,
        headers: dict[str, str],
        tries: list[int] | None = None,
    ) -> int:
        """
        Store a message and return its sequence number; creates the stream if it does not exist.

        Raises:
            ApiError: a condition was not met.
        """
        return int((await self.store(kind, name, suffix, payload, headers, tries))["seq"])

    async def store(
        self,
        kind: str,
        name: str,
        suffix: str,
        payload: bytes,
        headers: dict[str, str],
        tries: list[int] | None = None,
    ) -> dict[str, Any]:
        """Store a message as `publish` does, and return the server's whole acknowledgement."""
        subject = self.subject(kind, name) + suffix
        end = time.monotonic() + self.connection.timeout
        while True:
            await self.ensure(kind, name)
            try:
                return await self.connection.publish_acked(subject, payload, headers, tries)
            except StoreFullError:
                raise
            except StoreUnavailableError:
                if await self._cannot_write(kind, name):
                    raise StoreFullError(
                        f"{self.connection.display_url} cannot write {kind} {name!r} to its disk: free space, then restart the server",
                        "maybe",
                    ) from None
                raise
            except ApiError as error:
                if error.number:
                    raise
            # No stream has the subject: it was dropped, or it has no leader just now. `ensure` finds out which.
            self.forget(kind, name)
            if time.monotonic() > end:
                raise StoreUnavailableError(
                    f"{kind} {name!r} of {self.connection.display_url} has no leader: try again", "maybe"
                )
            await asyncio.sleep(_PAUSE)

    async def _cannot_write(self, kind: str, name: str) -> bool:
        """
        Whether a write to the stream's disk has failed: the server then leaves all further messages unanswered.

        Found out with a purge that matches nothing, because the stream's description does not mention it.
        """
        nothing = {"filter": f"{self.subject(kind, name)}.amends-none"}
        try:
            async with asyncio.timeout(_PROBE_TIMEOUT):
                await self.connection.api(f"STREAM.PURGE.{self.stream(kind, name)}", nothing)
        except ApiError as error:
            return error.purge_failed
        except (StoreError, TimeoutError):
            pass
        return False

    async def info(self, kind: str, name: str) -> dict[str, Any] | None:
        """JetStream's description of the stream, or None if there is none."""
        return await self.connection.find(f"STREAM.INFO.{self.stream(kind, name)}")

    def forget(self, kind: str, name: str) -> None:
        """Forget that the stream exists, so that the next write creates it again."""
        self._ensured.discard(self.stream(kind, name))
        self._replicas.pop(self.stream(kind, name), None)

    async def drop(self, kind: str, name: str) -> None:
        """Delete the stream, if it exists."""
        self.forget(kind, name)
        await self.connection.find(f"STREAM.DELETE.{self.stream(kind, name)}")

    async def purge(self, kind: str, name: str, subject: str, before: int | None = None) -> None:
        """Delete the messages of a subject: all, or those before a sequence number."""
        body = {"filter": subject} if before is None else {"filter": subject, "seq": before}
        await self.connection.find(f"STREAM.PURGE.{self.stream(kind, name)}", body)

    async def subjects(self, kind: str, name: str, only: str | None = None) -> dict[str, int]:
        """The number of messages of each subject of a stream, or of the subject `only`."""
        stream, found = self.stream(kind, name), dict[str, int]()
        while True:
            body = {"subjects_filter": only or f"{self.subject(kind, name)}.>", "offset": len(found)}
            info = await self.connection.api(f"STREAM.INFO.{stream}", body)
            page = info["state"].get("subjects") or {}
            found |= page
            if not page or len(found) >= info.get("total", 0):
                return found

    async def exists(self, kind: str, name: str) -> bool:
        """Whether the stream exists; called only after an unexpected reply."""
        return await self.info(kind, name) is not None

    async def any(self) -> bool:
        """Whether the store has any stream."""
        page = await self.connection.api("STREAM.NAMES", {"subject": f"amends.{self._store}.>"})
        return bool(page.get("streams"))

    async def names(self) -> dict[str, list[str]]:
        """The names of this store's streams by kind."""
        found: dict[str, list[str]] = {}
        offset = 0
        while True:
            page = await self.connection.api(
                "STREAM.LIST", {"subject": f"amends.{self._store}.>", "offset": offset}
            )
            streams = page.get("streams") or []
            for stream in streams:
                metadata = stream["config"].get("metadata") or {}
                if metadata.get("amends.store") == self._store:
                    found.setdefault(metadata["amends.kind"], []).append(metadata["amends.name"])
            offset += len(streams)
            if not streams or offset >= page.get("total", 0):
                return {kind: sorted(names) for kind, names in found.items()}
