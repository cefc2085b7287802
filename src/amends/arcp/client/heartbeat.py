"""Signs of life (6.4) and acknowledgements (6.5): what a session says by itself, and the silence it notices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from amends.arcp.wire import message_id, now_text
from amends.arcp.wire import messages as m

__all__ = ["Pulse"]

_ACK_EVERY = 256
_ACK_WITHIN = 0.25
"""An acknowledgement at most this often, or after so many events, so that a fast runtime need not stop."""


class Pulse:
    """The timers of one session."""

    def __init__(
        self, say: Callable[[str, m.Message], None], spoke: Callable[[], float], silence: Callable[[], None]
    ) -> None:
        """
        Wait to be started.

        Args:
            say: sends a message of a type.
            spoke: when something was sent last, by the loop's clock.
            silence: called when nothing was heard for two intervals.

        """
        self._say = say
        self._spoke = spoke
        self._silence = silence
        self._loop = asyncio.get_running_loop()
        self._interval: float | None = None
        self._acks = False
        self._beat_timer: asyncio.TimerHandle | None = None
        self._ack_timer: asyncio.TimerHandle | None = None
        self._seq = self._acked = 0
        self.heard = 0.0
        """When something was heard last, by the loop's clock."""

    def start(self, interval: float | None, *, acks: bool) -> None:
        """Begin on a new connection: `interval` in seconds where heartbeats were agreed on, and whether acks were."""
        self.stop()
        self.heard = self._loop.time()
        self._interval = interval
        self._acks = acks
        self._beat_later()

    def stop(self) -> None:
        """The connection is over."""
        for timer in (self._beat_timer, self._ack_timer):
            if timer is not None:
                timer.cancel()
        self._beat_timer = self._ack_timer = None

    def progressed(self, seq: int) -> None:
        """Every event up to this number has come."""
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
        self._say("session.ack", m.Ack(self._seq))

    def _beat_later(self) -> None:
        # Looked at twice per interval, so that a loss is noticed before half of a third one has passed.
        if self._interval is not None:
            self._beat_timer = self._loop.call_later(self._interval / 2, self._beat)

    def _beat(self) -> None:
        interval = self._interval or 0.0
        now = self._loop.time()
        if now - self.heard >= 2 * interval:
            self._silence()
            return
        if now - self.heard >= interval / 2 or now - self._spoke() >= interval / 2:
            self._say("session.ping", m.Ping(message_id(), now_text()))
        self._beat_later()
