"""Heartbeats (6.4) and acknowledgements (6.5) of a session, and the detection of a silent connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from amends.arcp.wire import message_id, now_text
from amends.arcp.wire import messages as m

__all__ = ["Heartbeat"]

_ACK_EVERY = 256
_ACK_WITHIN = 0.25
"""Acknowledge at most this often, or after that many events, so that a fast runtime need not pause."""


@dataclass(eq=False)
class Heartbeat:
    """The timers of one session; `start` starts them."""

    _send: Callable[[str, m.Message], None]
    """Sends a message of a type."""
    _last_sent: Callable[[], float]
    """Returns the time of the last sent message, by the loop's clock."""
    _on_silence: Callable[[], None]
    """Called when nothing was received for two intervals."""
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _interval: float | None = None
    _acks: bool = False
    _beat_timer: asyncio.TimerHandle | None = None
    _ack_timer: asyncio.TimerHandle | None = None
    _seq: int = 0
    _acked: int = 0
    last_received: float = 0.0
    """The time of the last received message, by the loop's clock."""

    def start(self, interval: float | None, *, acks: bool) -> None:
        """Start on a new connection: `interval` in seconds if heartbeats were negotiated, and whether acks were."""
        self.stop()
        self.last_received = self._loop.time()
        self._interval = interval
        self._acks = acks
        self._beat_later()

    def stop(self) -> None:
        """Stop the timers, because the connection is over."""
        for timer in (self._beat_timer, self._ack_timer):
            if timer is not None:
                timer.cancel()
        self._beat_timer = self._ack_timer = None

    def received_up_to(self, seq: int) -> None:
        """Record that every event up to `seq` was received."""
        self._seq = seq
        if self._ack_timer is None:
            if self._acks:
                self._ack_timer = self._loop.call_later(_ACK_WITHIN, self._acknowledge)
        elif seq - self._acked >= _ACK_EVERY:
            self._ack_timer.cancel()
            self._acknowledge()

    def _acknowledge(self) -> None:
        self._ack_timer = None
        self._acked = self._seq
        self._send("session.ack", m.Ack(self._seq))

    def _beat_later(self) -> None:
        # Checked twice per interval, so that a loss is detected before half of a third interval has passed.
        if self._interval is not None:
            self._beat_timer = self._loop.call_later(self._interval / 2, self._beat)

    def _beat(self) -> None:
        interval = self._interval or 0.0
        now = self._loop.time()
        if now - self.last_received >= 2 * interval:
            self._on_silence()
            return
        if now - self.last_received >= interval / 2 or now - self._last_sent() >= interval / 2:
            self._send("session.ping", m.Ping(message_id(), now_text()))
        self._beat_later()
