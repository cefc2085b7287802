# ruff: noqa: D102  (contract.py documents the methods)
"""
The queue on NATS: a work-queue stream whose deliveries are hints, and claims that are decisive (see `claims`).

A message's id is its sequence number in the stream. Acknowledging its delivery removes it, after its claim is set to done.
Delays are in headers and counted from the server's time stamp; a message delivered too early is returned to the server with
the remaining delay.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from amends.stores.arguments import check_key, check_limit, check_seconds, check_value
from amends.stores.clock import Clock
from amends.stores.contract import DeadMessage, Message, QueueSize
from amends.stores.errors import StoreError
from amends.stores.nats.api_errors import ApiError, NoResponderError
from amends.stores.nats.claims import Claim, Claims, parse_claim
from amends.stores.nats.dead import DeadLetters
from amends.stores.nats.lease import KEY, NatsLease
from amends.stores.nats.replies import header, headers_of
from amends.stores.nats.scan import scan
from amends.stores.nats.stored_messages import StoredMessage, latest, page, parse_ack_subject
from amends.stores.nats.stream_settings import STATE
from amends.stores.nats.streams import Streams
from amends.stores.nats.subjects import as_header, from_header, token

if TYPE_CHECKING:
    from nats.aio.msg import Msg

__all__ = ["NatsQueue"]

_ID, _DELAY, _ATTEMPTS = "Nats-Msg-Id", "Amends-Delay-Ms", "Amends-Attempts"
_WORKERS = "workers"
_LONGEST_WAIT = 30.0
_PAUSE = 0.02
_PAGE = 256
# Held and delayed messages; while there are this many, the server delivers no others. It uses about 100 bytes for each.
_MAX_PENDING = 250_000


class NatsQueue:
    """See `contract.Queue`."""

    def __init__(
        self, streams: Streams, name: str, lease: float, max_attempts: int | None, clock: Clock
    ) -> None:
        self.streams = streams
        self.connection = streams.connection
        self.name = name
        self.lease = lease
        self.claims = Claims(streams, name, lease, clock)
        self._max_attempts = max_attempts
        self._letters = DeadLetters(streams, name)
        self._ready = False

    async def put(self, value: bytes, *, key: str | None = None, delay: float = 0.0) -> bool:
        return await self.restore(value, key=key, delay=delay, attempts=0)

    async def restore(
        self, value: bytes, *, key: str | None, delay: float, attempts: int, token: str | None = None
    ) -> bool:
        """Put a message with its attempts, for copies; the same `token` is put at most once."""
        value = check_value(value)
        headers = {_ID: self.connection.new_id()}
        if check_seconds(delay, "delay") > 0:
            headers[_DELAY] = str(int(delay * 1000))
        if attempts:
            headers[_ATTEMPTS] = str(attempts)
        if key is not None:
            headers[KEY] = as_header(check_key(key))
        suffix = f".{_key_token(key)}" if key is not None else f".n.{token or headers[_ID]}"
        tries: list[int] = []
        try:
            await self.streams.publish("queue", self.name, suffix, value, headers, tries)
        except ApiError as error:
            if not error.subject_taken:
                raise
            # The subject has a message, possibly from an earlier attempt to send this put.
            holder = await latest(self.streams, "queue", self.name, suffix) if len(tries) > 1 else None
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
                message = await self.connection.deliveries.pull_one(
                    stream, _WORKERS, expires=left if left > 0 else None
                )
            except NoResponderError:
                # The consumer was dropped, or lost with its server: create it again, and pull again.
                self._ready = False
                self.streams.forget("queue", self.name)
                await asyncio.sleep(_PAUSE)
                continue
            if message is not None:
                lease = await self._claim_or_return(message)
                if lease is not None:
                    return lease
            else:
                if end is not None and time.monotonic() >= end:
                    return None
                if left > 1:
                    # Ended before its time: the consumer may be gone, or the server replaced. Check before the next pull.
                    self._ready = False
                    await asyncio.sleep(0.01)

    async def _prepare(self) -> None:
        """Create the streams and the shared consumer, once, and again when they seem to be gone."""
        self.connection.client  # noqa: B018  (raises when closed)
        if self._ready:
            return
        await self.streams.ensure(STATE, STATE)
        await self.streams.ensure("queue", self.name)
        stream = self.streams.stream("queue", self.name)
        try:
            await self.connection.api(
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
                        "max_ack_pending": _MAX_PENDING,
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

    async def _claim_or_return(self, message: Msg) -> NatsLease | None:
        """Claim a delivered message; if it cannot be taken now, return it to the server, dead-letter it or remove it."""
        claiming = asyncio.ensure_future(self._claim(message))
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            await asyncio.shield(self._undo_claim(claiming, message))
            raise

    async def _claim(self, message: Msg) -> NatsLease | None:
        number, stored_at, deliveries = parse_ack_subject(message.reply)
        headers = headers_of(message)
        early = await self._delay_left(headers, stored_at)
        if early > 0:
            await self._return(message, early)
            return None
        # A first delivery is assumed to have no claim yet; if it has one, the condition fails.
        known = await self.claims.read(number) if deliveries > 1 else None
        while True:
            claim = known or Claim("free", int(headers.get(_ATTEMPTS, "0")))
            if claim.state == "done":
                await self.acknowledge(message.reply)
                return None
            wait = await self._wait(claim)
            if wait > 0:
                await self._return(message, wait)
                return None
            if claim.state == "dying" or (
                self._max_attempts is not None and claim.attempts >= self._max_attempts
            ):
                reason = claim.reason or f"taken {claim.attempts} times without being finished"
                await self._dead_letter(number, claim, message, reason)
                return None
            now = time.monotonic()
            revision = await self.claims.change(
                number, claim.revision, "held", claim.attempts + 1, seconds=self.lease
            )
            if revision is not None:
                return NatsLease(self, message, number, claim.attempts + 1, revision, now + self.lease)
            known = await self.claims.read(number)

    async def _wait(self, claim: Claim) -> float:
        """Seconds until a message can be taken: its holder has lost it, or its delay is over."""
        held = self.claims.lease_left(claim)
        return held or (claim.delay(await self._now()) if claim.state == "free" and claim.revision else 0.0)

    async def _delay_left(self, headers: dict[str, str], stored_at: float) -> float:
        if _DELAY not in headers:
            return 0.0
        return stored_at + int(headers[_DELAY]) / 1000 - await self._now()

    async def _now(self) -> float:
        return await self.connection.server_time(self.streams.stream("queue", self.name))

    async def _return(self, message: Msg, delay: float) -> None:
        # Slightly late instead of slightly early: a delivery that is too early costs another round trip.
        body = json.dumps({"delay": int(delay * 1e9) + 2_000_000}).encode()
        await self.connection.publish(message.reply, b"-NAK " + body)

    async def _undo_claim(self, claiming: asyncio.Future[NatsLease | None], message: Msg) -> None:
        """
        Undo the claim of a worker that was cancelled while claiming, so that the next worker gets the message at once.

        It waits for the claim to finish: reading the record could happen before the server has written it.
        """
        try:
            lease = await claiming
        except StoreError:
            return  # the outcome is unknown; if the claim was written, it expires
        if lease is not None:
            await self.claims.change(int(lease.id), lease.epoch, "free", lease.attempt - 1)
            await self.connection.publish(message.reply, b"-NAK")

    async def _dead_letter(self, number: int, claim: Claim, message: Msg, reason: str) -> None:
        revision: int | None = claim.revision
        if claim.state != "dying":
            revision = await self.claims.change(
                number, claim.revision, "dying", claim.attempts, reason=reason
            )
        if revision is None:
            await self._return(message, 0.0)
            return
        await self.finish_dead_letter(number, revision, claim.attempts, message, reason)

    async def finish_dead_letter(
        self, number: int, revision: int, attempts: int, message: Msg, reason: str
    ) -> None:
        """Store the dead letter of a claim in state "dying" and remove the message; repeated on redelivery if interrupted."""
        key = header(message, KEY)
        await self._letters.add(str(number), message.data, key, attempts, reason)
        await self.claims.change(number, revision, "done", attempts)
        await self.acknowledge(message.reply)

    async def acknowledge(self, reply: str) -> None:
        """Acknowledge a delivery, and wait until the server has removed the message."""
        try:
            await self.connection.request(reply, b"+ACK")
        except NoResponderError:
            pass  # the consumer or the stream is gone, and the message with it

    # -- listing

    async def _stored(self) -> AsyncIterator[tuple[StoredMessage, Claim | None]]:
        claims = {}
        async for record in scan(self.streams, STATE, STATE, [f"{self.claims.suffix[1:]}.>"]):
            claims[int(record.subject.rpartition(".")[2])] = parse_claim(record)
        start = 1
        while found := await page(self.streams, "queue", self.name, start, _PAGE):
            for stored in found:
                claim = claims.get(stored.seq)
                if claim is None or claim.state in {"held", "free"}:
                    yield stored, claim
            start = found[-1].seq + 1

    async def messages(self) -> AsyncIterator[Message]:
        async for stored, claim in self._stored():
            key = stored.headers.get(KEY)
            now = await self._now()
            early = max(0.0, await self._delay_left(dict(stored.headers), stored.time))
            leased = claim is not None and self.claims.lease_left(claim) > 0
            if claim is not None and claim.state == "free":
                early = claim.delay(now)
            yield Message(
                str(stored.seq),
                None if key is None else from_header(key),
                stored.data,
                claim.attempts if claim else int(stored.headers.get(_ATTEMPTS, "0")),
                0.0 if leased or (claim is not None and claim.state == "held") else early,
                leased,
            )

    async def now(self) -> float:
        await self.streams.ensure("queue", self.name)
        return await self._now()

    async def size(self) -> QueueSize:
        ready = delayed = leased = 0
        async for message in self.messages():
            if message.leased:
                leased += 1
            elif message.due_in > 0:
                delayed += 1
            else:
                ready += 1
        return QueueSize(ready, delayed, leased, await self._letters.count())

    async def dead(self, *, limit: int = 100) -> list[DeadMessage]:
        return await self._letters.oldest(check_limit(limit))

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
        await self.streams.purge(STATE, STATE, f"{self.streams.subject(STATE, STATE)}{self.claims.suffix}.>")


def _key_token(key: str) -> str:
    return f"k.{token(key)}"
