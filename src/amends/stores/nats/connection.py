"""
One connection to NATS, with requests that survive the loss of a server.

A request is sent again when the connection breaks or no reply comes, until its timeout. That is safe because every write
carries a message id or a condition: the server executes it once, however often it receives it. If the outcome remains
unknown, `StoreUnavailableError.executed` is "maybe".

All requests share one subscription and a dictionary of waiting callers, as nats-py's own requests do.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from amends.stores.errors import (
    Executed,
    StoreClosedError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
    ValueTooLargeError,
)
from amends.stores.nats.api_errors import ApiError, NoResponderError
from amends.stores.nats.clock import ServerClock
from amends.stores.nats.connect import connect
from amends.stores.nats.deliveries import Deliveries
from amends.stores.nats.replies import Replies, header
from amends.stores.nats.retried_sends import RetriedSends

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

__all__ = ["NatsConnection"]

_decode = msgspec.json.Decoder(dict[str, Any]).decode

# Requests in flight; further callers wait. Enough to keep the connection busy, too few to use much memory.
_IN_FLIGHT = 1024
# After this long without a reply a request is sent again: a server that lost its leader drops requests silently.
_RESEND_AFTER = 2.0
_PAUSE = 0.05
# Seconds for the last messages when a connection is closed.
_CLOSE_TIMEOUT = 1.0


class NatsConnection:
    """A connection with its reply inbox, its estimate of the server's clock, and its timeouts."""

    def __init__(self, display_url: str, timeout: float) -> None:
        self.display_url = display_url
        self.timeout = timeout
        self.closed = False
        self._client: Client | None = None
        self.pending: dict[str, Replies] = {}
        self.deliveries = Deliveries(self)
        self.retried_sends = RetriedSends(self)
        self.tokens = itertools.count()
        self.inbox = f"_INBOX.{uuid.uuid4().hex}"
        self.connected = asyncio.Event()
        self._in_flight = asyncio.Semaphore(_IN_FLIGHT)
        self.id_prefix = f"~{uuid.uuid4().hex[:16]}"
        self._ids = itertools.count()
        self.clock = ServerClock()
        self.on_reconnect: Callable[[], None] = _nothing
        """Called after a reconnect."""

    @classmethod
    async def open(
        cls,
        servers: list[str],
        display_url: str,
        timeout: float,  # noqa: ASYNC109  (of every request, not of this call)
        options: Mapping[str, Any],
    ) -> NatsConnection:
        """
        Connect, within `timeout`.

        Raises:
            StoreUnavailableError: no server answers, or the one that does has no JetStream.
        """
        import nats.errors

        connection = cls(display_url, timeout)
        settings: dict[str, Any] = {
            "servers": servers,
            "name": "amends",
            "connect_timeout": min(timeout, 5.0),
            "max_reconnect_attempts": -1,
            "reconnect_time_wait": 0.1,
            "error_cb": connection._ignore,
            "disconnected_cb": connection._disconnected,
            "reconnected_cb": connection._reconnected,
            **options,
        }
        try:
            connection._client = await connect(settings, timeout)
        except (TimeoutError, OSError, nats.errors.Error) as error:
            raise StoreUnavailableError(
                f"no NATS server answers at {display_url}: start one, or correct the address"
            ) from error
        await connection.subscribe(f"{connection.inbox}.*", connection._receive)
        connection.connected.set()
        return connection

    # -- state of the connection

    async def _ignore(self, error: Exception) -> None:
        """Ignore nats-py's error callback: each request reports its own failure."""

    async def _disconnected(self) -> None:
        self.connected.clear()
        for replies in self.pending.values():
            replies.broken = True
            replies.wake()

    async def _reconnected(self) -> None:
        self.clock.reset()  # it may be another server of a cluster, with another clock
        self.connected.set()
        self.on_reconnect()

    async def close(self) -> None:
        """Close the connection; pending requests raise StoreClosedError."""
        self.closed = True
        self.retried_sends.stop()
        for replies in self.pending.values():
            replies.broken = True
            replies.wake()
        self.connected.set()
        client = self._client
        if client is not None and not client.is_closed:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(_CLOSE_TIMEOUT):
                    await self.deliveries.cancel_all(client)
            await client.close()

    @property
    def client(self) -> Client:
        """The nats-py client; raises StoreClosedError if the connection was closed."""
        if self.closed or self._client is None:
            raise StoreClosedError(self.display_url)
        return self._client

    async def subscribe(self, subject: str, handler: Callable[[Msg], Awaitable[None]]) -> Subscription:
        """Call `handler` for every message of a subject; nats-py renews the subscription after a reconnect."""
        return await self.client.subscribe(subject, cb=handler)

    async def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription; does nothing if the connection is closed."""
        import nats.errors

        if not self.closed:
            with contextlib.suppress(nats.errors.Error, OSError):
                await subscription.unsubscribe()

    async def _receive(self, message: Msg) -> None:
        replies = self.pending.get(message.subject[len(self.inbox) + 1 :])
        if replies is not None:
            replies.arrived.append(message)
            replies.wake()

    # -- requests

    def new_id(self) -> str:
        """A new, unique message id."""
        return f"{self.id_prefix}-{next(self._ids):x}"

    async def publish(self, subject: str, payload: bytes = b"") -> None:
        """Send a message without waiting for a reply, also while closing; it is lost if the connection is."""
        if self._client is not None:
            with contextlib.suppress(Exception):
                await self._client.publish(subject, payload)

    async def request(
        self,
        subject: str,
        payload: bytes = b"",
        headers: dict[str, str] | None = None,
        *,
        tries: list[int] | None = None,
    ) -> Msg:
        """
        Send a request, again if necessary, and return its reply within the timeout.

        `tries` collects one item each time it is sent, for callers that must know whether an earlier one may have succeeded.

        Raises:
            StoreUnavailableError: no reply in time.
            NoResponderError: the connection is up, but no responder serves the subject.
        """
        end = time.monotonic() + self.timeout
        sent = False
        async with self._in_flight:
            while True:
                if sent or not self.connected.is_set() or self.closed:
                    await self.wait_connected(end, "maybe" if sent else "no")
                token = str(next(self.tokens))
                replies = self.pending[token] = Replies()
                try:
                    if tries is not None:
                        tries.append(1)
                    if not await self.send(subject, payload, f"{self.inbox}.{token}", headers):
                        continue
                    sent = True
                    message = await replies.next(min(end - time.monotonic(), _RESEND_AFTER))
                finally:
                    del self.pending[token]
                if message is not None:
                    if header(message, "Status") == "503" and not message.data:
                        raise NoResponderError(subject)
                    return message

    async def send(self, subject: str, payload: bytes, reply: str, headers: dict[str, str] | None) -> bool:
        """Send a message and return True, or False if the connection is being lost."""
        import nats.errors

        client = self.client
        limit = client.max_payload
        if headers and len(payload) > limit // 2:
            # The server counts the headers too, and disconnects if the sum is too large.
            limit -= sum(len(name) + len(value) + 4 for name, value in headers.items()) + 12
        if len(payload) > limit:
            raise ValueTooLargeError(len(payload), limit)
        task = asyncio.current_task()
        cancelling = task.cancelling() if task is not None else 0
        try:
            await client.publish(subject, payload, reply, headers)
        except (nats.errors.ConnectionClosedError, nats.errors.ConnectionDrainingError):
            raise StoreClosedError(self.display_url) from None
        except (nats.errors.Error, OSError):
            await asyncio.sleep(_PAUSE)
            return False
        if task is not None and task.cancelling() > cancelling:
            # nats-py catches a cancellation while it waits for a full buffer to be sent.
            raise asyncio.CancelledError
        return True

    async def wait_connected(self, end: float, executed: Executed = "no") -> None:
        """Wait for the connection; past `end`, raise StoreUnavailableError with `executed`."""
        left = end - time.monotonic()
        if not self.connected.is_set() and left > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):  # wait_for of Python 3.11 can lose a cancellation
                    await self.connected.wait()
        if self.closed:
            raise StoreClosedError(self.display_url)
        if end - time.monotonic() <= 0:
            state = "has not answered" if self.connected.is_set() else "has been unreachable"
            raise StoreUnavailableError(
                f"{self.display_url} {state} for {self.timeout:g} s: try again", executed
            )

    async def stream(self, subject: str, payload: bytes) -> AsyncGenerator[Msg, None]:
        """Yield the replies to one request until the caller stops, none comes for a time, or the connection breaks."""
        await self.wait_connected(time.monotonic() + self.timeout, "no")
        token = str(next(self.tokens))
        replies = self.pending[token] = Replies()
        try:
            if not await self.send(subject, payload, f"{self.inbox}.{token}", None):
                return
            while (message := await replies.next(_RESEND_AFTER)) is not None:
                yield message
            if self.closed:
                raise StoreClosedError(self.display_url)
        finally:
            del self.pending[token]

    async def api(self, name: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """
        Call JetStream's API and return its reply; temporary errors (no leader yet) are retried until the timeout.

        Raises:
            ApiError: JetStream rejected the request.
        """
        payload = json.dumps(body).encode() if body is not None else b""
        return await self.publish_acked(f"$JS.API.{name}", payload, None)

    async def find(self, name: str, body: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """Call JetStream's API; None if there is no such stream, consumer or message."""
        try:
            return await self.api(name, body)
        except ApiError as error:
            if error.missing:
                return None
            raise

    async def publish_acked(
        self, subject: str, payload: bytes, headers: dict[str, str] | None, tries: list[int] | None = None
    ) -> dict[str, Any]:
        """
        Publish to a stream, or without headers to the API, and return JetStream's reply.

        Raises:
            ApiError: JetStream rejected the message. Number 0: no stream has that subject.
        """
        end = time.monotonic() + self.timeout
        while True:
            try:
                message = await self.request(subject, payload, headers, tries=tries)
            except NoResponderError:
                if headers is not None:
                    raise ApiError(503, 0, "no stream has this subject") from None
                # The server is up, but JetStream is not up yet.
                answer: dict[str, Any] = {
                    "error": {"code": 503, "err_code": 10008, "description": "JetStream is not up"}
                }
            else:
                answer = _decode(message.data)
                if "ts" in answer:
                    self.clock.observe(answer["ts"])
            error = answer.get("error")
            if error is None:
                return answer
            problem = ApiError(error.get("code", 0), error.get("err_code", 0), error.get("description", ""))
            if problem.full:
                raise StoreFullError(
                    f"{self.display_url} has no space left (JetStream error {problem.number}): free space, or raise its limits"
                )
            if not problem.temporary:
                raise problem
            if time.monotonic() > end:
                raise StoreUnavailableError(
                    f"{self.display_url} is not ready (JetStream error {problem.number}): check that JetStream is enabled, that "
                    "there are as many servers as replicas, and that the disk is not full"
                )
            await asyncio.sleep(_PAUSE)

    async def server_time(self, stream: str) -> float:
        """
        Seconds since 1970 by the server's clock.

        Raises:
            StoreError: the server is too old to report its time.
        """
        now = await self.clock.now(lambda: self.api(f"STREAM.INFO.{stream}"))
        if now is None:
            raise StoreError(f"{self.display_url} does not report its time: use nats-server 2.11 or newer")
        return now


def _nothing() -> None:
    pass
