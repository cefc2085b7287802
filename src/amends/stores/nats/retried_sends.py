"""
Requests that no caller waits for, sent again until their reply has come.

For steps whose outcome is already decided, such as removing a finished message. If the request never arrives, the next
worker that receives the message finds its claim finished.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

from amends.stores.errors import StoreError
from amends.stores.nats.replies import Replies

if TYPE_CHECKING:
    from amends.stores.nats.connection import NatsConnection

__all__ = ["RetriedSends"]

_RESEND_AFTER = 2.0


class _RetriedSend(Replies):
    """A request that removes itself when its reply arrives."""

    __slots__ = ("payload", "sends", "since", "subject", "token")

    def __init__(self, sends: RetriedSends, token: str, subject: str, payload: bytes) -> None:
        super().__init__()
        self.sends = sends
        self.token = token
        self.subject = subject
        self.payload = payload
        self.since = time.monotonic()

    def wake(self) -> None:
        if self.arrived:
            self.sends.finish(self)


class RetriedSends:
    """The retried sends of one connection."""

    def __init__(self, connection: NatsConnection) -> None:
        self._connection = connection
        self._open: set[_RetriedSend] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None

    async def send(self, subject: str, payload: bytes) -> None:
        """Send a request, and send it again until it is answered or the connection's timeout has passed."""
        send = _RetriedSend(self, str(next(self._connection.tokens)), subject, payload)
        self._connection.pending[send.token] = send
        self._open.add(send)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_RESEND_AFTER, self._resend)
        await self._send(send)

    def finish(self, send: _RetriedSend) -> None:
        """Remove a request that was answered or has timed out."""
        self._connection.pending.pop(send.token, None)
        self._open.discard(send)

    def stop(self) -> None:
        """Stop sending again, because the connection is being closed; it flushes what was sent."""
        if self._timer is not None:
            self._timer.cancel()

    async def _send(self, send: _RetriedSend) -> None:
        # A request that cannot be sent now is sent again later.
        if self._connection.connected.is_set():
            with contextlib.suppress(StoreError):
                await self._connection.send(
                    send.subject, send.payload, f"{self._connection.inbox}.{send.token}", None
                )

    def _resend(self) -> None:
        now = time.monotonic()
        for send in [send for send in self._open if now - send.since > self._connection.timeout]:
            self.finish(send)
        late = [send for send in self._open if now - send.since >= _RESEND_AFTER]
        if late:
            self._sending = asyncio.ensure_future(self._send_all(late))
        self._timer = (
            asyncio.get_running_loop().call_later(_RESEND_AFTER, self._resend) if self._open else None
        )

    async def _send_all(self, sends: list[_RetriedSend]) -> None:
        for send in sends:
            await self._send(send)
