"""Deliveries of consumers: requested by pull, and returned to the server if the requester is gone when they arrive."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from amends.stores.errors import StoreClosedError
from amends.stores.nats.api_errors import NoResponderError
from amends.stores.nats.replies import Inbox, Replies, header

if TYPE_CHECKING:
    from nats.aio.client import Client

    from amends.stores.nats.connection import NatsConnection
    from amends.stores.nats.wire import RawMessage

__all__ = ["Deliveries"]

_FLUSHES = 3
"""Round trips before a connection is closed: the server cancels the requests; late deliveries arrive; they are returned."""
_LATE_DELIVERY = 30.0
"""Seconds for which a delivery after its request was abandoned is returned at once; after that its ack wait expires."""


class Deliveries:
    """The pull requests over one connection, and a pool of inboxes for them."""

    def __init__(self, connection: NatsConnection) -> None:
        self._connection = connection
        self._idle: list[Inbox] = []
        self._in_use: set[Inbox] = set()
        """Inboxes to which the server may still deliver."""

    async def pull(
        self,
        subject: str,
        payload: bytes,
        batch: int,
        *,
        max_silence: float,
        expires: float,
        end_status: list[str] | None = None,
    ) -> AsyncGenerator[RawMessage, None]:
        """
        Yield up to `batch` deliveries of a consumer, for one pull request; heartbeats only restart the silence timer.

        Deliveries that arrive after the caller has stopped are returned to the server. `end_status` receives the status
        with which the server ended the request.
        """
        await self._connection.wait_connected(time.monotonic() + self._connection.timeout, "no")
        inbox = self._acquire_inbox()
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
            self._release_inbox(inbox, replies, expires, complete=complete)

    async def pull_one(
        self, subject: str, payload: bytes, *, max_silence: float, expires: float
    ) -> RawMessage | None:
        """
        One delivery of a consumer, or None if there is none; a cheaper `pull` for taking a message.

        Raises:
            NoResponderError: there is no such consumer.
        """
        if not self._connection.connected.is_set() or self._connection.closed:
            await self._connection.wait_connected(time.monotonic() + self._connection.timeout, "no")
        inbox = self._acquire_inbox()
        replies = inbox.replies = self._connection.pending[inbox.subject] = Replies()
        complete = False
        try:
            if not await self._connection.send(subject, payload, inbox.subject, None):
                return None
            while (message := await replies.next(max_silence)) is not None:
                status = header(message, "Status")
                if status == "100":
                    continue
                complete = True
                if status == "503":
                    raise NoResponderError(subject)
                if status is None and self._connection.closed:
                    replies.arrived.append(message)
                    break
                return message if status is None else None
            if self._connection.closed:
                raise StoreClosedError(self._connection.display_url)
            return None
        finally:
            self._release_inbox(inbox, replies, expires, complete=complete)

    def _release_inbox(self, inbox: Inbox, replies: Replies, expires: float, *, complete: bool) -> None:
        del self._connection.pending[inbox.subject]
        inbox.replies = None
        for message in replies.arrived:
            inbox.receive(message)
        if complete:
            self._reuse(inbox)
        elif not self._connection.closed:
            # The request is still open at the server, and its delivery may be delayed in the connection for even longer:
            # a reused inbox would pass it to a caller that asked for something else.
            asyncio.get_running_loop().call_later(expires + _LATE_DELIVERY, self._retire, inbox)

    def _reuse(self, inbox: Inbox) -> None:
        self._in_use.discard(inbox)
        self._idle.append(inbox)

    def _retire(self, inbox: Inbox) -> None:
        self._in_use.discard(inbox)
        if not self._connection.closed:
            self._connection.wire.unsubscribe(inbox.number)

    def _acquire_inbox(self) -> Inbox:
        if self._idle:
            inbox = self._idle.pop()
        else:
            inbox = Inbox(self._connection, f"{self._connection.inbox}d.{next(self._connection.tokens)}")
            inbox.number = self._connection.wire.subscribe(inbox.subject, inbox.receive)
        self._in_use.add(inbox)
        return inbox

    async def cancel_all(self, client: Client) -> None:
        """
        Cancel all open requests, and return the deliveries that the server sent before it had processed that.

        A delivery that is lost with its connection would be available to no worker until its ack wait expires.
        """
        for inbox in list(self._in_use):
            # The local handler stays: a delivery that was on its way arrives before or after the server's next reply.
            await client._send_unsubscribe(inbox.number)  # noqa: SLF001
        for _ in range(_FLUSHES):
            await client.flush()
