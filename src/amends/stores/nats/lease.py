# ruff: noqa: D102  (what a method means is said once, in contract.py)
"""A worker's hold on a task of a NATS queue: every step is a change of the task's claim first, and of the stream second."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from amends.stores.arguments import check_seconds
from amends.stores.errors import LeaseLostError
from amends.stores.nats.claims import State
from amends.stores.nats.subjects import from_header

if TYPE_CHECKING:
    from amends.stores.nats.queue import NatsQueue
    from amends.stores.nats.wire import RawMessage

__all__ = ["KEY", "NatsLease"]

KEY = "Amends-Key"


class NatsLease:
    """See `contract.Lease`."""

    def __init__(
        self, queue: NatsQueue, message: RawMessage, task: int, attempt: int, revision: int, until: float
    ) -> None:
        self._queue = queue
        self._message = message
        self._task = task
        self._revision = revision
        self._until = until
        key = message.headers.get(KEY)
        self.id = str(task)
        self.key = None if key is None else from_header(key)
        self.value: bytes = message.data
        self.attempt = attempt
        self.epoch = revision

    @property
    def expires_in(self) -> float:
        return max(0.0, self._until - time.monotonic())

    async def extend(self) -> None:
        until = time.monotonic() + self._queue.lease
        self._revision = await self._change("held", seconds=self._queue.lease)
        self._until = until
        # The hint is put off too; were this lost, the next worker would get it and find the claim.
        self._queue.link.tell(self._message.reply, b"+WPI")

    async def done(self) -> None:
        await self._change("done")
        if self.key is None:
            # The claim decided; the message is removed behind our back, and until then nobody is given the task.
            await self._queue.link.errands.run(self._message.reply, b"+ACK")
        else:
            # The message holds the key, which is to be free when this returns.
            await self._queue.acknowledge(self._message.reply)

    async def give_back(self, *, delay: float = 0.0) -> None:
        await self._change("free", seconds=check_seconds(delay, "delay"))
        body = json.dumps({"delay": int(delay * 1e9)}).encode() if delay else b""
        self._queue.link.tell(self._message.reply, b"-NAK " + body if body else b"-NAK")

    async def bury(self, reason: str) -> None:
        revision = await self._change("dying", reason=reason)
        await self._queue.finish_burying(self._task, revision, self.attempt, self._message, reason)

    async def _change(self, state: State, *, seconds: float = 0.0, reason: str = "") -> int:
        revision = await self._queue.claims.change(
            self._task, self._revision, state, self.attempt, seconds=seconds, reason=reason
        )
        if revision is None:
            raise LeaseLostError(self._queue.name, self.id, self.epoch)
        return revision
