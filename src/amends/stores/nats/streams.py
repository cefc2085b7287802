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

from amends.stores.errors import StoreUnavailableError
from amends.stores.nats.api_errors import ApiError
from amends.stores.nats.connection import NatsConnection
from amends.stores.nats.log_positions import LogPositions
from amends.stores.nats.notifications import Notifications
from amends.stores.nats.subjects import token

__all__ = ["GROUPED", "NOTIFICATION", "STATE", "Streams"]

STATE = "state"
GROUPED = "logs"
NOTIFICATION = "bell"
"""The part of a subject that notifications of grouped logs use."""

_PAUSE = 0.05

_SETTINGS: dict[str, dict[str, Any]] = {
    "log": {"retention": "limits"},
    GROUPED: {"retention": "limits"},
    "table": {"retention": "limits", "max_msgs_per_subject": 1, "allow_msg_ttl": True},
    # One message per subject, and a second one is rejected: this makes a key unique.
    "queue": {
        "retention": "workqueue",
        "max_msgs_per_subject": 1,
        "discard": "new",
        "discard_new_per_subject": True,
    },
    STATE: {"retention": "limits", "max_msgs_per_subject": 1, "allow_msg_ttl": True},
}


class Streams:
    """Creates streams when they are first written to, and remembers which exist."""

    def __init__(
        self, connection: NatsConnection, store: str, *, replicas: int, storage: str, dedupe_window: float
    ) -> None:
        self.connection = connection
        self.replicas = replicas
        self._store = store
        self._storage = storage
        self._window = dedupe_window
        self._ensured: set[str] = set()
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
        """Create the stream if it does not exist; an existing one keeps its settings. Does nothing the second time."""
        stream = self.stream(kind, name)
        if stream in self._ensured:
            return
        subject = self.subject(kind, name)
        config: dict[str, Any] = {
            "name": stream,
            "subjects": [subject if kind == "log" else f"{subject}.>"],
            "storage": self._storage,
            "num_replicas": self.replicas,
            "duplicate_window": int(self._window * 1e9),
            "allow_direct": True,
            "metadata": {"amends.kind": kind, "amends.name": name, "amends.store": self._store},
            **_SETTINGS[kind],
        }
        if first > 1:
            config["first_seq"] = first
        republish = (
            {"src": f"{subject}.>", "dest": f"{self.subject(NOTIFICATION, name)}.>"}
            if kind == GROUPED
            else None
        )
        if republish is not None:
            config["republish"] = republish
        try:
            await self.connection.api(f"STREAM.CREATE.{stream}", config)
        except ApiError as error:
            if (
                error.number != 10058
            ):  # it exists with another configuration: ours, created with other options
                raise
            if republish is not None:
                await self._enable_republish(stream, republish)
        self._ensured.add(stream)

    async def _enable_republish(self, stream: str, republish: dict[str, str]) -> None:
        """Enable notifications on a stream of an older version, without changing its other settings."""
        config = (await self.connection.api(f"STREAM.INFO.{stream}"))["config"]
        if "republish" not in config:
            await self.connection.api(f"STREAM.UPDATE.{stream}", {**config, "republish": republish})

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

    async def info(self, kind: str, name: str) -> dict[str, Any] | None:
        """JetStream's description of the stream, or None if there is none."""
        try:
            return await self.connection.api(f"STREAM.INFO.{self.stream(kind, name)}")
        except ApiError as error:
            if error.missing:
                return None
            raise

    def forget(self, kind: str, name: str) -> None:
        """Forget that the stream exists, so that the next write creates it again."""
        self._ensured.discard(self.stream(kind, name))

    async def drop(self, kind: str, name: str) -> None:
        """Delete the stream, if it exists."""
        stream = self.stream(kind, name)
        self._ensured.discard(stream)
        try:
            await self.connection.api(f"STREAM.DELETE.{stream}")
        except ApiError as error:
            if not error.missing:
                raise

    async def purge(self, kind: str, name: str, subject: str, before: int | None = None) -> None:
        """Delete the messages of a subject: all, or those before a sequence number."""
        body = {"filter": subject} if before is None else {"filter": subject, "seq": before}
        try:
            await self.connection.api(f"STREAM.PURGE.{self.stream(kind, name)}", body)
        except ApiError as error:
            if not error.missing:
                raise

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
