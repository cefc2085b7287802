"""Dead letters on NATS: one stored message each, in the stream that also holds the claims."""

from __future__ import annotations

import re

from amends.stores.contract import DeadMessage
from amends.stores.nats.scan import scan
from amends.stores.nats.stored_messages import StoredMessage, latest
from amends.stores.nats.stream_settings import STATE
from amends.stores.nats.streams import Streams
from amends.stores.nats.subjects import as_header, from_header, token

__all__ = ["DeadLetters"]

_ID, _KEY, _ATTEMPTS, _REASON = "Nats-Msg-Id", "Amends-Key", "Amends-Attempts", "Amends-Reason"

_ID_TEXT = re.compile(r"[A-Za-z0-9-]+")


class DeadLetters:
    """The dead letters of one queue, by the id that the message had in the queue."""

    def __init__(self, streams: Streams, queue: str) -> None:
        self._streams = streams
        self._suffix = f".dead.{token(queue)}"

    async def add(self, id: str, value: bytes, key: str | None, attempts: int, reason: str) -> None:
        """Store a dead letter; adding it again changes nothing."""
        headers = {
            _ID: self._streams.connection.new_id(),
            _ATTEMPTS: str(attempts),
            _REASON: as_header(reason),
        }
        if key is not None:
            headers[_KEY] = key
        await self._streams.publish(STATE, STATE, f"{self._suffix}.{id}", value, headers)

    async def get(self, id: str) -> DeadMessage | None:
        """The dead letter with this id, or None."""
        if not _ID_TEXT.fullmatch(id):
            return None
        stored = await latest(self._streams, STATE, STATE, f"{self._suffix}.{id}")
        return None if stored is None else _letter(stored)

    async def oldest(self, limit: int) -> list[DeadMessage]:
        """Up to `limit` dead letters, the oldest first."""
        letters: list[StoredMessage] = []
        async for stored in scan(self._streams, STATE, STATE, [f"{self._suffix[1:]}.>"]):
            letters.append(stored)
            if len(letters) == limit:
                break
        return [_letter(stored) for stored in sorted(letters, key=lambda stored: stored.seq)]

    async def count(self) -> int:
        """The number of dead letters."""
        if not await self._streams.exists(STATE, STATE):
            return 0
        subjects = f"{self._streams.subject(STATE, STATE)}{self._suffix}.>"
        return len(await self._streams.subjects(STATE, STATE, subjects))

    async def remove(self, id: str) -> None:
        """Delete the dead letter with this id."""
        await self._purge(f"{self._suffix}.{id}")

    async def clear(self) -> None:
        """Delete all dead letters."""
        await self._purge(f"{self._suffix}.>")

    async def _purge(self, suffix: str) -> None:
        await self._streams.purge(STATE, STATE, self._streams.subject(STATE, STATE) + suffix)


def _letter(stored: StoredMessage) -> DeadMessage:
    key = stored.headers.get(_KEY)
    return DeadMessage(
        stored.subject.rpartition(".")[2],
        None if key is None else from_header(key),
        stored.data,
        int(stored.headers[_ATTEMPTS]),
        from_header(stored.headers[_REASON]),
    )
