"""
The JetStream streams of a store: one for each log (or group of logs, see `shared`), table and queue, and one for leases
and dead letters.

A stream's sequence numbers are the log's numbers and the table's revisions. Names are `amends_<store>_<kind>_<name>`,
subjects `amends.<store>.<kind>.<name>…`, and the original name stands in the stream's metadata.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from amends.stores.errors import StoreUnavailableError
from amends.stores.nats.api_errors import ApiError
from amends.stores.nats.connection import Link
from amends.stores.nats.log_positions import Places
from amends.stores.nats.notifications import Bells
from amends.stores.nats.subjects import token

__all__ = ["SHARED", "STATE", "Streams"]

STATE = "state"
SHARED = "logs"

_PAUSE = 0.05

_SETTINGS: dict[str, dict[str, Any]] = {
    "log": {"retention": "limits"},
    SHARED: {"retention": "limits"},
    "table": {"retention": "limits", "max_msgs_per_subject": 1, "allow_msg_ttl": True},
    # One message per subject, and the newcomer is refused: that is what makes a key held.
    "queue": {
        "retention": "workqueue",
        "max_msgs_per_subject": 1,
        "discard": "new",
        "discard_new_per_subject": True,
    },
    STATE: {"retention": "limits", "max_msgs_per_subject": 1, "allow_msg_ttl": True},
}


class Streams:
    """Makes streams when they are first written to, and knows which it has made."""

    def __init__(self, link: Link, store: str, *, replicas: int, storage: str, dedupe_window: float) -> None:
        self.link = link
        self.replicas = replicas
        self._store = store
        self._storage = storage
        self._window = dedupe_window
        self._made: set[str] = set()
        self.places = Places()
        self.bells = Bells(link)
        link.again = self.bells.ring_all

    def stream(self, kind: str, name: str) -> str:
        """The stream's name."""
        return f"amends_{self._store}_{kind}_{token(name)}"

    def subject(self, kind: str, name: str) -> str:
        """The subject it takes, or what stands before the tokens of its keys."""
        return f"amends.{self._store}.{kind}.{token(name)}"

    async def make(self, kind: str, name: str, *, first: int = 1) -> None:
        """Make the stream if this link has not done so yet; one made by others stays as it is."""
        stream = self.stream(kind, name)
        if stream in self._made:
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
        calls = {"src": f"{subject}.>", "dest": f"{self.subject('bell', name)}.>"} if kind == SHARED else None
        if calls is not None:
            config["republish"] = calls
        try:
            await self.link.api(f"STREAM.CREATE.{stream}", config)
        except ApiError as error:
            if error.number != 10058:  # in use with a different configuration: ours, made with other options
                raise
            if calls is not None:
                await self._have_call(stream, calls)
        self._made.add(stream)

    async def _have_call(self, stream: str, calls: dict[str, str]) -> None:
        """Have a stream that was made before servers were asked to call whoever listens do so, and change nothing else."""
        config = (await self.link.api(f"STREAM.INFO.{stream}"))["config"]
        if "republish" not in config:
            await self.link.api(f"STREAM.UPDATE.{stream}", {**config, "republish": calls})

    async def publish(
        self,
        kind: str,
        name: str,
        below: str,
        payload: bytes,
        headers: dict[str, str],
        tries: list[int] | None = None,
    ) -> int:
        """
        Store a message and return its sequence number, making the stream if it is not there.

        Raises:
            ApiError: a condition was not met.
        """
        return int((await self.store(kind, name, below, payload, headers, tries))["seq"])

    async def store(
        self,
        kind: str,
        name: str,
        below: str,
        payload: bytes,
        headers: dict[str, str],
        tries: list[int] | None = None,
    ) -> dict[str, Any]:
        """The same, with all the server answers."""
        subject = self.subject(kind, name) + below
        end = time.monotonic() + self.link.timeout
        while True:
            await self.make(kind, name)
            try:
                return await self.link.publish(subject, payload, headers, tries)
            except ApiError as error:
                if error.number:
                    raise
            # Nobody takes the subject: somebody dropped the stream, or it has no leader just now. Making it tells which.
            self.forget(kind, name)
            if time.monotonic() > end:
                raise StoreUnavailableError(
                    f"{kind} {name!r} of {self.link.shown} has no leader: try again", "maybe"
                )
            await asyncio.sleep(_PAUSE)

    async def info(self, kind: str, name: str) -> dict[str, Any] | None:
        """JetStream's description of the stream, or None if there is none."""
        try:
            return await self.link.api(f"STREAM.INFO.{self.stream(kind, name)}")
        except ApiError as error:
            if error.missing:
                return None
            raise

    def forget(self, kind: str, name: str) -> None:
        """Somebody dropped the stream: it has to be made again."""
        self._made.discard(self.stream(kind, name))

    async def drop(self, kind: str, name: str) -> None:
        """Remove the stream, if there is one."""
        stream = self.stream(kind, name)
        self._made.discard(stream)
        try:
            await self.link.api(f"STREAM.DELETE.{stream}")
        except ApiError as error:
            if not error.missing:
                raise

    async def purge(self, kind: str, name: str, subject: str, before: int | None = None) -> None:
        """Remove the messages of a subject, all or those before a sequence number."""
        body = {"filter": subject} if before is None else {"filter": subject, "seq": before}
        try:
            await self.link.api(f"STREAM.PURGE.{self.stream(kind, name)}", body)
        except ApiError as error:
            if not error.missing:
                raise

    async def subjects(self, kind: str, name: str, only: str | None = None) -> dict[str, int]:
        """How many messages each subject of a stream has; or one of them."""
        stream, found = self.stream(kind, name), dict[str, int]()
        while True:
            body = {"subjects_filter": only or f"{self.subject(kind, name)}.>", "offset": len(found)}
            info = await self.link.api(f"STREAM.INFO.{stream}", body)
            page = info["state"].get("subjects") or {}
            found |= page
            if not page or len(found) >= info.get("total", 0):
                return found

    async def exists(self, kind: str, name: str) -> bool:
        """Whether the stream is there; asked only when something about it is not as it should be."""
        return await self.info(kind, name) is not None

    async def names(self) -> dict[str, list[str]]:
        """The names of this store's streams by kind."""
        found: dict[str, list[str]] = {}
        offset = 0
        while True:
            page = await self.link.api(
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
