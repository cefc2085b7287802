"""Dead letters on NATS: one message each, in the stream that keeps the claims too."""

from __future__ import annotations

import re

from amends.stores.contract import DeadMessage
from amends.stores.nats.api_errors import ApiError
from amends.stores.nats.scan import sweep
from amends.stores.nats.stored_messages import Stored, latest
from amends.stores.nats.streams import STATE, Streams
from amends.stores.nats.subjects import as_header, from_header, token

__all__ = ["DeadLetters"]

_ID, _KEY, _ATTEMPTS, _REASON = "Nats-Msg-Id", "Amends-Key", "Amends-Attempts", "Amends-Reason"

_ID_TEXT = re.compile(r"[A-Za-z0-9-]+")


class DeadLetters:
    """The dead letters of one queue, by the id their task had in it."""

    def __init__(self, streams: Streams, queue: str) -> None:
        self._streams = streams
        self._below = f".dead.{token(queue)}"

    async def add(self, id: str, value: bytes, key: str | None, attempts: int, reason: str) -> None:
        """Keep it; adding it again changes nothing."""
        headers = {_ID: self._streams.link.new_id(), _ATTEMPTS: str(attempts), _REASON: as_header(reason)}
        if key is not None:
            headers[_KEY] = key
        await self._streams.publish(STATE, STATE, f"{self._below}.{id}", value, headers)

    async def get(self, id: str) -> DeadMessage | None:
        """One of them, or None."""
        if not _ID_TEXT.fullmatch(id):
            return None
        stored = await latest(self._streams, STATE, STATE, f"{self._below}.{id}")
        return None if stored is None else _letter(stored)

    async def some(self, limit: int) -> list[DeadMessage]:
        """Up to `limit` of them, the oldest first."""
        letters: list[Stored] = []
        async for stored in sweep(self._streams, STATE, STATE, [f"{self._below[1:]}.>"]):
            letters.append(stored)
            if len(letters) == limit:
                break
        return [_letter(stored) for stored in sorted(letters, key=lambda stored: stored.seq)]

    async def count(self) -> int:
        """How many there are."""
        subjects = f"{self._streams.subject(STATE, STATE)}{self._below}.>"
        try:
            stream = self._streams.stream(STATE, STATE)
            info = await self._streams.link.api(f"STREAM.INFO.{stream}", {"subjects_filter": subjects})
        except ApiError as error:
            if error.missing:
                return 0
            raise
        return len(info["state"].get("subjects") or {})

    async def remove(self, id: str) -> None:
        """Forget one."""
        await self._purge(f"{self._below}.{id}")

    async def clear(self) -> None:
        """Forget them all."""
        await self._purge(f"{self._below}.>")

    async def _purge(self, below: str) -> None:
        subject = self._streams.subject(STATE, STATE) + below
        try:
            await self._streams.link.api(
                f"STREAM.PURGE.{self._streams.stream(STATE, STATE)}", {"filter": subject}
            )
        except ApiError as error:
            if not error.missing:
                raise


def _letter(stored: Stored) -> DeadMessage:
    key = stored.headers.get(_KEY)
    return DeadMessage(
        stored.subject.rpartition(".")[2],
        None if key is None else from_header(key),
        stored.data,
        int(stored.headers[_ATTEMPTS]),
        from_header(stored.headers[_REASON]),
    )
