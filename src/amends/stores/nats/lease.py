# ruff: noqa: D102  (contract.py documents the methods)
"""A worker's lease on a message of a NATS queue: each step changes the message's claim first, then the stream."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING

from amends.stores.arguments import check_seconds
from amends.stores.errors import LeaseLostError
from amends.stores.nats.claims import State
from amends.stores.nats.replies import header
from amends.stores.nats.subjects import from_header

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from amends.stores.nats.queue import NatsQueue

__all__ = ["KEY", "NatsLease"]

KEY = "Amends-Key"


class NatsLease:
    """See `contract.Lease`."""

    def __init__(
        self, queue: NatsQueue, message: Msg, number: int, attempt: int, revision: int, until: float
    ) -> None:
        self._queue = queue
        self._message = message
        self._number = number
        self._revision = revision
        self._until = until
        self._changing = asyncio.Lock()
        """Each change is conditional on the one before it. Two at once would be taken for the loss of the lease."""
        key = header(message, KEY)
        self.id = str(number)
        self.key = None if key is None else from_header(key)
        self.value: bytes = message.data
        self.attempt = attempt
        self.epoch = revision

    @property
    def expires_in(self) -> float:
        return max(0.0, self._until - time.monotonic())

    async def extend(self) -> None:
        until = time.monotonic() + self._queue.lease
        await self._change("held", seconds=self._queue.lease)
        self._until = until
        # Delays the redelivery too. If this is lost, the next worker receives the message and finds the claim.
        await self._queue.connection.publish(self._message.reply, b"+WPI")

    async def done(self) -> None:
        await self._change("done")
        if self.key is None:
            # The claim is decisive: until the server removes the message in the background, no worker can claim it.
            await self._queue.connection.retried_sends.send(self._message.reply, b"+ACK")
        else:
            # The message holds the key, which must be free when this returns.
            await self._queue.acknowledge(self._message.reply)

    async def give_back(self, *, delay: float = 0.0) -> None:
        await self._change("free", seconds=check_seconds(delay, "delay"))
        body = json.dumps({"delay": int(delay * 1e9)}).encode() if delay else b""
        await self._queue.connection.publish(self._message.reply, b"-NAK " + body if body else b"-NAK")

    async def dead_letter(self, reason: str) -> None:
        revision = await self._change("dying", reason=reason)
        await self._queue.finish_dead_letter(self._number, revision, self.attempt, self._message, reason)

    async def _change(self, state: State, *, seconds: float = 0.0, reason: str = "") -> int:
        async with self._changing:
            revision = await self._queue.claims.change(
                self._number, self._revision, state, self.attempt, seconds=seconds, reason=reason
            )
            if revision is None:
                raise LeaseLostError(self._queue.name, self.id, self.epoch)
            if state == "held":
                self._revision = revision
        return revision
