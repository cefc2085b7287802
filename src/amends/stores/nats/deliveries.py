"""Deliveries of consumers: requested by pull, and returned to the server if the requester is gone when they arrive."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from amends.stores.errors import StoreClosedError
from amends.stores.nats.api_errors import NoResponderError
from amends.stores.nats.replies import Replies, header

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

    from amends.stores.nats.connection import NatsConnection

__all__ = ["PAGE_BYTES", "Deliveries"]

PAGE_BYTES = 8_000_000
"""The largest page, well below the size at which nats-py drops messages."""
_HEARTBEAT = 2.0
_LATE_DELIVERY = 30.0
"""Seconds for which a delivery after its request was abandoned is returned at once; after that its ack wait expires."""


def _pull_request(batch: int, expires: float | None) -> tuple[bytes, float]:
    """The body of a pull request, and the silence after which the consumer is considered gone."""
    body: dict[str, Any] = {"batch": batch}
    max_silence = _HEARTBEAT * 2
    if expires is None:
        body["no_wait"] = True
    else:
        body["expires"] = max(int(expires * 1e9), 1_000_000)
        if expires > _HEARTBEAT * 2:
            body["idle_heartbeat"] = int(_HEARTBEAT * 1e9)
        else:
            max_silence = expires + 1.0
    if batch > 1:
        body["max_bytes"] = PAGE_BYTES
    return json.dumps(body).encode(), max_silence


class _Inbox:
    """
    A subscription for the deliveries of one pull request: deliveries keep their subject, so the subscription identifies them.

    Without a waiter it returns deliveries to the server, which passes them to the next worker at once.
    """

    __slots__ = ("connection", "replies", "subject", "subscription")

    def __init__(self, connection: NatsConnection, subject: str) -> None:
        self.connection = connection
        self.subject = subject
        self.replies: Replies | None = None
        self.subscription: Subscription | None = None

    async def receive(self, message: Msg) -> None:
        """Handle a delivery."""
        if self.replies is not None:
            self.replies.arrived.append(message)
            self.replies.wake()
        elif message.reply.startswith("$JS.ACK."):
            await self.connection.publish(message.reply, b"-NAK")


class Deliveries:
    """The pull requests over one connection, and a pool of inboxes for them."""

    def __init__(self, connection: NatsConnection) -> None:
        self._connection = connection
        self._idle: list[_Inbox] = []
        self._in_use: set[_Inbox] = set()
        """Inboxes to which the server may still deliver."""
        self._background: set[asyncio.Task[None]] = set()

    async def pull(
        self,
        stream: str,
        consumer: str,
        batch: int,
        *,
        expires: float | None,
        end_status: list[str] | None = None,
    ) -> AsyncGenerator[Msg, None]:
        """
        Yield up to `batch` deliveries of a consumer, for one pull request; heartbeats only restart the silence timer.

        It waits up to `expires` for them (None: not at all). Deliveries that arrive after the caller has stopped are
        returned to the server. `end_status` receives the status with which the server ended the request.
        """
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        payload, max_silence = _pull_request(batch, expires)
        await self._connection.wait_connected(time.monotonic() + self._connection.timeout, "no")
        inbox = await self._acquire_inbox()
        replies = inbox.replies = self._connection.pending[inbox.subject] = Replies()
        complete = False
        try:
            if not await self._connection.send(subject, payload, inbox.subject, None):
                return
            while not complete and (message := await replies.next(max_silence)) is not None:
                status = header(message, "Status")
                if status is None:
                    batch -= 1
                    complete = batch == 0
                    if self._connection.closed:
                        replies.arrived.append(message)
                        break
                    yield message
                elif status != "100":
                    complete = True
                    if end_status is not None:
                        end_status.append(status)
            if self._connection.closed:
                raise StoreClosedError(self._connection.display_url)
        finally:
            await self._release_inbox(inbox, replies, expires or 1.0, complete=complete)

    async def pull_one(self, stream: str, consumer: str, *, expires: float | None) -> Msg | None:
        """
        One delivery of a consumer, or None if there is none.

        Raises:
            NoResponderError: there is no such consumer.
        """
        ended: list[str] = []
        async with aclosing(self.pull(stream, consumer, 1, expires=expires, end_status=ended)) as deliveries:
            async for message in deliveries:
                return message
        if "503" in ended:
            raise NoResponderError(stream)
        return None

    async def _release_inbox(
        self, inbox: _Inbox, replies: Replies, expires: float, *, complete: bool
    ) -> None:
        del self._connection.pending[inbox.subject]
        inbox.replies = None
        if complete:
            self._in_use.discard(inbox)
            self._idle.append(inbox)
        elif not self._connection.closed:
            # The request is still open at the server, and its delivery may be delayed in the connection for even longer:
            # a reused inbox would pass it to a caller that asked for something else.
            asyncio.get_running_loop().call_later(expires + _LATE_DELIVERY, self._retire, inbox)
        for message in replies.arrived:
            await inbox.receive(message)

    def _retire(self, inbox: _Inbox) -> None:
        self._in_use.discard(inbox)
        if inbox.subscription is not None and not self._connection.closed:
            self._run(self._connection.unsubscribe(inbox.subscription))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _acquire_inbox(self) -> _Inbox:
        if self._idle:
            inbox = self._idle.pop()
        else:
            inbox = _Inbox(self._connection, f"{self._connection.inbox}d.{next(self._connection.tokens)}")
            inbox.subscription = await self._connection.subscribe(inbox.subject, inbox.receive)
        self._in_use.add(inbox)
        return inbox

    async def cancel_all(self, client: Client) -> None:
        """
        Cancel all open requests, and return the deliveries that the server sent before it had processed that.

        A delivery that is lost with its connection would be available to no worker until its ack wait expires.
        """
        open_requests = [inbox.subscription for inbox in self._in_use if inbox.subscription is not None]
        # drain() ends the subscription and handles what arrives until the server has confirmed it.
        await asyncio.gather(*(subscription.drain() for subscription in open_requests))  # type: ignore[no-untyped-call]
        await client.flush()
