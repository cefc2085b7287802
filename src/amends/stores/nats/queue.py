# ruff: noqa: D102  (what a method means is said once, in contract.py)
"""
The queue on NATS: a work-queue stream that hands out hints, and claims that decide (see `claims`).

A task's id is its sequence number in the stream. It is removed by acknowledging its delivery, after its claim is marked
done. Delays are kept in headers and counted from the server's time stamp; a task delivered too early is
handed back with the time that is left.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from amends.stores.arguments import check_key, check_limit, check_seconds, check_value
from amends.stores.contract import DeadMessage, Message, QueueSize
from amends.stores.errors import StoreError
from amends.stores.nats.api_errors import ApiError, NobodyThereError
from amends.stores.nats.claims import Claim, Claims, parsed
from amends.stores.nats.dead import DeadLetters
from amends.stores.nats.lease import KEY, NatsLease
from amends.stores.nats.scan import sweep
from amends.stores.nats.stored_messages import Stored, delivery, latest, page, pull_one
from amends.stores.nats.streams import STATE, Streams
from amends.stores.nats.subjects import as_header, from_header, token

if TYPE_CHECKING:
    from amends.stores.nats.wire import RawMessage

__all__ = ["NatsQueue"]

_ID, _DELAY, _ATTEMPTS = "Nats-Msg-Id", "Amends-Delay-Ms", "Amends-Attempts"
_WORKERS = "workers"
_LONGEST_WAIT = 30.0
_PAUSE = 0.02
_PAGE = 256


class NatsQueue:
    """See `contract.Queue`."""

    def __init__(self, streams: Streams, name: str, lease: float, max_attempts: int | None) -> None:
        self.streams = streams
        self.link = streams.link
        self.name = name
        self.lease = lease
        self.claims = Claims(streams, name, lease)
        self._max_attempts = max_attempts
        self._letters = DeadLetters(streams, name)
        self._ready = False

    async def put(self, value: bytes, *, key: str | None = None, delay: float = 0.0) -> bool:
        return await self.restore(value, key=key, delay=delay, attempts=0)

    async def restore(
        self, value: bytes, *, key: str | None, delay: float, attempts: int, token: str | None = None
    ) -> bool:
        """A put that may bring attempts along, and a token that makes repeating it harmless; for copies."""
        value = check_value(value)
        headers = {_ID: self.link.new_id()}
        if check_seconds(delay, "delay") > 0:
            headers[_DELAY] = str(int(delay * 1000))
        if attempts:
            headers[_ATTEMPTS] = str(attempts)
        if key is not None:
            headers[KEY] = as_header(check_key(key))
        below = f".{_key_token(key)}" if key is not None else f".n.{token or headers[_ID]}"
        tries: list[int] = []
        try:
            await self.streams.publish("queue", self.name, below, value, headers, tries)
        except ApiError as error:
            if not error.held:
                raise
            # Held, perhaps by an earlier sending of this very put.
            holder = await latest(self.streams, "queue", self.name, below) if len(tries) > 1 else None
            return holder is not None and holder.headers.get(_ID) == headers[_ID]
        return True

    # -- taking

    async def take(self, *, wait: float | None = 0.0) -> NatsLease | None:
        end = None if wait is None else time.monotonic() + check_seconds(wait, "wait")
        stream = self.streams.stream("queue", self.name)
        while True:
            await self._prepare()
            left = _LONGEST_WAIT if end is None else min(end - time.monotonic(), _LONGEST_WAIT)
            try:
                message = await pull_one(self.streams, stream, _WORKERS, expires=left if left > 0 else None)
            except NobodyThereError:
                # Dropped by somebody, or lost with its server: make it again, and look again.
                self._ready = False
                self.streams.forget("queue", self.name)
                await asyncio.sleep(_PAUSE)
                continue
            if message is not None:
                lease = await self._claimed(message)
                if lease is not None:
                    return lease
            else:
                if end is not None and time.monotonic() >= end:
                    return None
                if left > 1:
                    # Before its time: the consumer may be gone, or the server new. Look before asking again.
                    self._ready = False
                    await asyncio.sleep(0.01)

    async def _prepare(self) -> None:
        """Make the streams and the consumer all workers share, once, and again when they seem to be gone."""
        self.link.client  # noqa: B018  (raises when closed)
        if self._ready:
            return
        await self.streams.make(STATE, STATE)
        await self.streams.make("queue", self.name)
        stream = self.streams.stream("queue", self.name)
        try:
            await self.link.api(
                f"CONSUMER.CREATE.{stream}.{_WORKERS}",
                {
                    "stream_name": stream,
                    "config": {
                        "name": _WORKERS,
                        "durable_name": _WORKERS,
                        "ack_policy": "explicit",
                        "deliver_policy": "all",
                        "ack_wait": int(self.lease * 1e9),
                        "max_deliver": -1,
                        # Delayed tasks count as pending too; they must not keep the others back.
                        "max_ack_pending": -1,
                        "max_waiting": 4096,
                    },
                },
            )
        except ApiError as error:
            if not error.missing:
                raise
            self.streams.forget("queue", self.name)
            return
        self._ready = True

    async def _claimed(self, message: RawMessage) -> NatsLease | None:
        """Claim the task a delivery is a hint of; or see that it gets where it belongs."""
        claiming = asyncio.ensure_future(self._claim(message))
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            await asyncio.shield(self._abandon(claiming, message))
            raise

    async def _claim(self, message: RawMessage) -> NatsLease | None:
        task, stored_at, deliveries = delivery(message.reply)
        headers = message.headers
        early = await self._early(headers, stored_at)
        if early > 0:
            self._hand_back(message, early)
            return None
        # The first delivery of a task nobody has claimed needs no look; if that is wrong, the condition fails.
        known = await self.claims.read(task) if deliveries > 1 else None
        while True:
            claim = known or Claim("free", int(headers.get(_ATTEMPTS, "0")))
            if claim.state == "done":
                await self.acknowledge(message.reply)
                return None
            wait = claim.wait(await self._now()) if claim.revision else 0.0
            if wait > 0:
                self._hand_back(message, wait)
                return None
            if claim.state == "dying" or (
                self._max_attempts is not None and claim.attempts >= self._max_attempts
            ):
                reason = claim.reason or f"taken {claim.attempts} times without being finished"
                await self._bury(task, claim, message, reason)
                return None
            asked = time.monotonic()
            revision = await self.claims.change(
                task, claim.revision, "held", claim.attempts + 1, seconds=self.lease
            )
            if revision is not None:
                return NatsLease(self, message, task, claim.attempts + 1, revision, asked + self.lease)
            known = await self.claims.read(task)

    async def _early(self, headers: dict[str, str], stored_at: float) -> float:
        if _DELAY not in headers:
            return 0.0
        return stored_at + int(headers[_DELAY]) / 1000 - await self._now()

    async def _now(self) -> float:
        return await self.link.server_time(self.streams.stream("queue", self.name))

    def _hand_back(self, message: RawMessage, delay: float) -> None:
        # A little late rather than a little early: too early costs another round.
        body = json.dumps({"delay": int(delay * 1e9) + 2_000_000}).encode()
        self.link.tell(message.reply, b"-NAK " + body)

    async def _abandon(self, claiming: asyncio.Future[NatsLease | None], message: RawMessage) -> None:
        """
        Undo the claim of a worker that was cancelled while it was made, and let the next one have the task at once.

        The claim is waited for: a look at the record could come before the server has written it.
        """
        try:
            lease = await claiming
        except StoreError:
            return  # nobody knows what became of it: should it stand, it runs out
        if lease is not None:
            await self.claims.change(int(lease.id), lease.epoch, "free", lease.attempt - 1)
            self.link.tell(message.reply, b"-NAK")

    async def _bury(self, task: int, claim: Claim, message: RawMessage, reason: str) -> None:
        revision: int | None = claim.revision
        if claim.state != "dying":
            revision = await self.claims.change(task, claim.revision, "dying", claim.attempts, reason=reason)
        if revision is None:
            self._hand_back(message, 0.0)
            return
        await self.finish_burying(task, revision, claim.attempts, message, reason)

    async def finish_burying(
        self, task: int, revision: int, attempts: int, message: RawMessage, reason: str
    ) -> None:
        """From "dying" on it is only carried through, by whoever gets the hint next if need be."""
        key = message.headers.get(KEY)
        await self._letters.add(str(task), message.data, key, attempts, reason)
        await self.claims.change(task, revision, "done", attempts)
        await self.acknowledge(message.reply)

    async def acknowledge(self, reply: str) -> None:
        """Have the server remove the task, and wait until it has."""
        try:
            await self.link.ask(reply, b"+ACK")
        except NobodyThereError:
            pass  # the consumer or the stream is gone, and the task with it

    # -- looking on

    async def _all(self) -> AsyncIterator[tuple[Stored, Claim | None]]:
        claims = {}
        async for record in sweep(self.streams, STATE, STATE, [f"{self.claims.below[1:]}.>"]):
            claims[int(record.subject.rpartition(".")[2])] = parsed(record)
        start = 1
        while found := await page(self.streams, "queue", self.name, start, _PAGE):
            for stored in found:
                claim = claims.get(stored.seq)
                if claim is None or claim.state in {"held", "free"}:
                    yield stored, claim
            start = found[-1].seq + 1

    async def messages(self) -> AsyncIterator[Message]:
        async for stored, claim in self._all():
            key = stored.headers.get(KEY)
            now = await self._now()
            early = max(0.0, await self._early(dict(stored.headers), stored.time))
            leased = claim is not None and claim.state == "held" and claim.wait(now) > 0
            if claim is not None and claim.state == "free":
                early = claim.wait(now)
            yield Message(
                str(stored.seq),
                None if key is None else from_header(key),
                stored.data,
                claim.attempts if claim else int(stored.headers.get(_ATTEMPTS, "0")),
                0.0 if leased or (claim is not None and claim.state == "held") else early,
                leased,
            )

    async def size(self) -> QueueSize:
        ready = delayed = leased = 0
        async for task in self.messages():
            if task.leased:
                leased += 1
            elif task.due_in > 0:
                delayed += 1
            else:
                ready += 1
        return QueueSize(ready, delayed, leased, await self._letters.count())

    async def dead(self, *, limit: int = 100) -> list[DeadMessage]:
        return await self._letters.some(check_limit(limit))

    async def revive(self, id: str) -> bool:
        letter = await self._letters.get(id)
        if letter is None or not await self.put(letter.value, key=letter.key):
            return False
        await self._letters.remove(id)
        return True

    async def restore_dead(self, letter: DeadMessage) -> None:
        key = None if letter.key is None else as_header(letter.key)
        await self._letters.add(f"copied-{letter.id}", letter.value, key, letter.attempts, letter.reason)

    async def discard(self, id: str) -> bool:
        if await self._letters.get(id) is None:
            return False
        await self._letters.remove(id)
        return True

    async def drop(self) -> None:
        self._ready = False
        await self.streams.drop("queue", self.name)
        await self._letters.clear()
        try:
            subject = self.streams.subject(STATE, STATE) + f"{self.claims.below}.>"
            await self.link.api(f"STREAM.PURGE.{self.streams.stream(STATE, STATE)}", {"filter": subject})
        except ApiError as error:
            if not error.missing:
                raise


def _key_token(key: str) -> str:
    return f"k.{token(key)}"
