"""
One connection to NATS, and requests over it that outlive a lost server.

Every request is sent again when the connection breaks or nobody answers, until its time is up. That is safe because every
write carries a message id or a condition: the server does it once, however often it hears it. What cannot be known in
the end is said (`StoreUnavailableError.executed`).

nats-py's own request makes a task, a timer and a parsed reply object for each call; here they share one subscription
and a dictionary of futures, which leaves room for the conditions the contract needs at the same price.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
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
from amends.stores.nats.api_errors import ApiError, NobodyThereError
from amends.stores.nats.clock import ServerClock
from amends.stores.nats.deliveries import Deliveries
from amends.stores.nats.limiter import Room
from amends.stores.nats.replies import Answers, Patience, header
from amends.stores.nats.retried_sends import Errands
from amends.stores.nats.wire import RawMessage, Wire

if TYPE_CHECKING:
    from nats.aio.client import Client

__all__ = ["Link"]

_read = msgspec.json.Decoder(dict[str, Any]).decode

# In flight at once; callers beyond it wait their turn. Enough to fill a pipe, too few to fill a memory.
_IN_FLIGHT = 1024
# After this long without an answer a request is sent again: a server that lost its leader drops requests silently.
_PATIENCE = 2.0
_PAUSE = 0.05
# Seconds for what is still to be said when a connection is closed.
_GOODBYE = 1.0


async def _within(seconds: float, connecting: Coroutine[Any, Any, Wire]) -> Wire:
    """
    What it comes to, in time.

    It is cancelled until it has ended: a cancellation that meets a refused connection in the same turn is lost before
    Python 3.12, and nats-py would go on trying for ever.

    Raises:
        TimeoutError: not in time.
    """
    task = asyncio.ensure_future(connecting)
    try:
        await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        await _ended(task)
        if not task.cancelled() and task.exception() is None:
            await task.result().client.close()  # made in the very turn in which nobody wanted it any more
        raise
    await _ended(task)
    if task.cancelled():
        raise TimeoutError
    return task.result()


async def _connected(settings: dict[str, Any]) -> Wire:
    from nats.aio.client import Client

    wire = Wire(Client())
    await wire.client.connect(**settings)
    return wire


async def _ended(task: asyncio.Task[Any]) -> None:
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=_PAUSE)


class Link:
    """A connection with its inbox, its idea of the server's time, and its patience."""

    def __init__(self, shown: str, timeout: float) -> None:
        self.shown = shown
        self.timeout = timeout
        self.closed = False
        self._wire: Wire | None = None
        self.open: dict[str, Answers] = {}
        self.deliveries = Deliveries(self)
        self.errands = Errands(self)
        self._patience = Patience(_PATIENCE)
        self.tokens = itertools.count()
        self.inbox = f"_INBOX.{uuid.uuid4().hex}"
        self.up = asyncio.Event()
        self._room = Room(_IN_FLIGHT)
        self.mark = f"~{uuid.uuid4().hex[:16]}"
        self._ids = itertools.count()
        self.clock = ServerClock()
        self.again: Callable[[], None] = _nothing
        """Called when a connection was made anew."""

    @classmethod
    async def to(cls, servers: list[str], shown: str, timeout: float, options: Mapping[str, Any]) -> Link:  # noqa: ASYNC109  (of every request, not of this call)
        """
        Connect, within `timeout`.

        Raises:
            StoreUnavailableError: nobody answers, or not as a NATS server with JetStream does.
        """
        import nats.errors

        link = cls(shown, timeout)
        settings: dict[str, Any] = {
            "servers": servers,
            "name": "amends",
            "connect_timeout": min(timeout, 5.0),
            "max_reconnect_attempts": -1,
            "reconnect_time_wait": 0.1,
            "error_cb": link._ignore,
            "disconnected_cb": link._went_down,
            "reconnected_cb": link._came_up,
            **options,
        }
        try:
            link._wire = await _within(timeout, _connected(settings))
        except (TimeoutError, OSError, nats.errors.Error) as error:
            raise StoreUnavailableError(
                f"no NATS server answers at {shown}: start one, or correct the address"
            ) from error
        link._wire.hear(f"{link.inbox}.*", link._arrived)
        link.up.set()
        return link

    # -- the connection's own life

    async def _ignore(self, error: Exception) -> None:
        """What goes wrong shows in the request it went wrong for."""

    async def _went_down(self) -> None:
        self.up.clear()
        for answers in self.open.values():
            answers.broken = True
            answers.wake()

    async def _came_up(self) -> None:
        self.clock.forget()  # another server of a cluster, another clock
        self.up.set()
        self.again()

    async def close(self) -> None:
        """Let go; whoever waits is told."""
        self.closed = True
        self.errands.stop()
        self._patience.stop()
        for answers in self.open.values():
            answers.broken = True
            answers.wake()
        self.up.set()
        if self._wire is not None and not self._wire.client.is_closed:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(_GOODBYE):
                    await self.deliveries.leave(self._wire.client)
            await self._wire.client.close()

    @property
    def wire(self) -> Wire:
        """The connection, unless it was closed."""
        if self.closed or self._wire is None:
            raise StoreClosedError(self.shown)
        return self._wire

    @property
    def client(self) -> Client:
        """The library's part of it."""
        return self.wire.client

    def _arrived(self, message: RawMessage) -> None:
        answers = self.open.get(message.subject[len(self.inbox) + 1 :])
        if answers is not None:
            answers.arrived.append(message)
            answers.wake()

    # -- asking

    def new_id(self) -> str:
        """A message id nobody else uses."""
        return f"{self.mark}-{next(self._ids):x}"

    def tell(self, subject: str, payload: bytes = b"") -> None:
        """Send without waiting for anything, also as a last word; lost if the connection is."""
        if self._wire is not None:
            with contextlib.suppress(Exception):
                self._wire.post(subject, payload, "", None)

    async def ask(
        self,
        subject: str,
        payload: bytes = b"",
        headers: dict[str, str] | None = None,
        *,
        tries: list[int] | None = None,
    ) -> RawMessage:
        """
        The answer to a request, sent as often as needed within the timeout.

        `tries` collects one number per sending, for callers that must know whether an earlier one may have counted.

        Raises:
            StoreUnavailableError: no answer in time.
            NobodyThereError: connected, and nobody serves that subject.
        """
        end = time.monotonic() + self.timeout
        sent = False
        if not self._room.take():
            await self._room.turn()
        try:
            while True:
                if sent or not self.up.is_set() or self.closed:
                    await self.until_up(end, "maybe" if sent else "no")
                token = str(next(self.tokens))
                answers = self.open[token] = Answers()
                try:
                    if tries is not None:
                        tries.append(1)
                    if not await self.send(subject, payload, f"{self.inbox}.{token}", headers):
                        continue
                    sent = True
                    left = end - time.monotonic()
                    if left > _PATIENCE:
                        message = await self._patience.next(answers)
                    else:
                        message = await answers.next(left)
                finally:
                    del self.open[token]
                if message is not None:
                    if header(message, "Status") == "503" and not message.data:
                        raise NobodyThereError(subject)
                    return message
        finally:
            self._room.leave()

    async def send(self, subject: str, payload: bytes, reply: str, headers: dict[str, str] | None) -> bool:
        """Whether it went out; not when the connection is just being lost."""
        import nats.errors

        wire = self.wire
        limit = wire.client.max_payload
        if headers and len(payload) > limit // 2:
            # The server counts the headers too, and hangs up.
            limit -= sum(len(name) + len(value) + 4 for name, value in headers.items()) + 12
        if len(payload) > limit:
            raise ValueTooLargeError(len(payload), limit)
        try:
            wire.post(subject, payload, reply, headers)
        except (nats.errors.ConnectionClosedError, nats.errors.ConnectionDrainingError):
            raise StoreClosedError(self.shown) from None
        except (nats.errors.Error, OSError):
            await asyncio.sleep(_PAUSE)
            return False
        return True

    async def until_up(self, end: float, executed: Executed = "no") -> None:
        """Wait for the connection; past `end`, say whether what was asked may have happened."""
        left = end - time.monotonic()
        if not self.up.is_set() and left > 0:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self.up.wait(), left)
        if self.closed:
            raise StoreClosedError(self.shown)
        if end - time.monotonic() <= 0:
            state = "does not answer" if self.up.is_set() else "cannot be reached"
            raise StoreUnavailableError(f"{self.shown} {state} for {self.timeout:g} s: try again", executed)

    async def stream(
        self, subject: str, payload: bytes, *, patience: float = _PATIENCE
    ) -> AsyncGenerator[RawMessage, None]:
        """All answers to one request, until the caller has enough, none comes for `patience`, or the connection breaks."""
        await self.until_up(time.monotonic() + self.timeout, "no")
        token = str(next(self.tokens))
        answers = self.open[token] = Answers()
        try:
            if not await self.send(subject, payload, f"{self.inbox}.{token}", None):
                return
            while (message := await answers.next(patience)) is not None:
                yield message
            if self.closed:
                raise StoreClosedError(self.shown)
        finally:
            del self.open[token]

    async def api(self, name: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """
        JetStream's answer to an API call; passing trouble (no leader yet) is waited out.

        Raises:
            ApiError: JetStream said no.
        """
        payload = json.dumps(body).encode() if body is not None else b""
        return await self._patiently(f"$JS.API.{name}", payload, None, None)

    async def publish(
        self, subject: str, payload: bytes, headers: dict[str, str], tries: list[int] | None = None
    ) -> dict[str, Any]:
        """
        JetStream's acknowledgement of a stored message.

        Raises:
            ApiError: JetStream said no. Number 0: no stream takes that subject.
        """
        return await self._patiently(subject, payload, headers, tries)

    async def _patiently(
        self, subject: str, payload: bytes, headers: dict[str, str] | None, tries: list[int] | None
    ) -> dict[str, Any]:
        end = time.monotonic() + self.timeout
        while True:
            try:
                message = await self.ask(subject, payload, headers, tries=tries)
            except NobodyThereError:
                if headers is not None:
                    raise ApiError(503, 0, "no stream takes this subject") from None
                # The server is up and JetStream is not, yet.
                answer: dict[str, Any] = {
                    "error": {"code": 503, "err_code": 10008, "description": "JetStream is not up"}
                }
            else:
                answer = _read(message.data)
                if "ts" in answer:
                    self.clock.hear(answer["ts"])
            error = answer.get("error")
            if error is None:
                return answer
            problem = ApiError(error.get("code", 0), error.get("err_code", 0), error.get("description", ""))
            if problem.full:
                raise StoreFullError(
                    f"{self.shown} has no room left ({problem.description}): raise its limits"
                )
            if not problem.passing:
                raise problem
            if time.monotonic() > end:
                raise StoreUnavailableError(
                    f"{self.shown} is not ready ({problem.description}): is JetStream enabled?"
                )
            await asyncio.sleep(_PAUSE)

    async def server_time(self, stream: str) -> float:
        """
        Seconds since 1970 by the server's clock.

        Raises:
            StoreError: the server is too old to tell.
        """
        now = await self.clock.now(lambda: self.api(f"STREAM.INFO.{stream}"))
        if now is None:
            raise StoreError(f"{self.shown} does not tell the time: nats-server 2.11 or newer is needed")
        return now


def _nothing() -> None:
    pass
