"""
A session over connections that come and go.

One task reads. When the connection is lost, or falls silent, or skips an event, the same task goes back to the session
on a new one, within the runtime's window and our policy; what comes then is exactly what is missing. When that
cannot be, everything that waits is told why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from amends.arcp.client.handshake import Dial, Opened, Ticket, open_session
from amends.arcp.client.heartbeat import Pulse
from amends.arcp.client.outbox import Outbox
from amends.arcp.client.reconnect import Comeback
from amends.arcp.client.session_faults import error_of, lost, received, window_over
from amends.arcp.client.settings import Settings
from amends.arcp.wire import (
    Envelope,
    Malformed,
    envelope,
    negotiated,
    now_text,
    payload_of,
    read,
)
from amends.arcp.wire import messages as m
from amends.core.fault import Fault

__all__ = ["Link", "Receiver"]

_INTERVAL = 30.0
_GARBAGE = 16
"""Frames in a row that are no messages, before the connection counts as broken."""
_GOODBYE = 2.0
_OVER: Any = object()
_TURN = 64
"""Messages taken before others on the loop get their turn."""


class Receiver(Protocol):
    """What a link tells its owner."""

    def arrived(self, message: Envelope, size: int) -> Any:
        """A message; something to await where the connection has to be held up."""

    def refused(self, fault: Fault, payload: dict[str, Any]) -> None:
        """A `session.error`: some request may be meant."""

    def unanswered(self) -> Iterable[Envelope]:
        """The session goes on, on another connection: what is to be asked again there."""

    def ended(self, fault: Fault) -> None:
        """Nothing more will come."""


class Link:
    """The session."""

    def __init__(self, dial: Dial, token: str | None, settings: Settings, receiver: Receiver) -> None:
        self._dial = dial
        self._token = token
        self._settings = settings
        self._receiver = receiver
        self._loop = asyncio.get_running_loop()
        self._outbox = Outbox()
        self._pulse = Pulse(self._say, lambda: self._outbox.spoke, self._fell_silent)
        self._task: asyncio.Task[None] | None = None
        self._comeback = Comeback(dial, token, settings)
        self._open = asyncio.Event()
        self._closing = False
        self._said_goodbye = asyncio.Event()
        self._session_error: Fault | None = None
        self._silent = False
        self._gap_at = -1
        self._resume_token: str | None = None
        self.fault: Fault | None = None
        """Why the session is over, once it is."""
        self.session_id = ""
        self.features: frozenset[str] = frozenset()
        self.welcome = m.Welcome()
        self.last_seq = 0
        """The highest number up to which every event has come."""

    # -- opening and closing

    async def open(self, ticket: Ticket | None = None) -> None:
        """
        Open the session, or take one over from whoever left it.

        Raises:
            FaultError: what the runtime refused with, or HEARTBEAT_LOST.

        """
        resume = None
        if ticket is not None:
            resume = m.Resume(ticket.session_id, ticket.resume_token, ticket.last_event_seq)
            self.last_seq = ticket.last_event_seq
        opened = await open_session(self._dial, self._token, self._settings, resume)
        if ticket is not None and opened.session_id != ticket.session_id:
            await opened.connection.close()
            raise error_of(window_over(reason="forgotten"))
        self._adopt(opened)
        await self._take_early(opened)
        self._task = asyncio.create_task(self._run())

    @property
    def ticket(self) -> Ticket | None:
        """What somebody needs to go on with this session elsewhere; None where the runtime gives no token."""
        if self._resume_token is None:
            return None
        return Ticket(self.session_id, self._resume_token, self.last_seq)

    async def close(self, *, goodbye: bool = True) -> None:
        """Leave the session, in good order or so that it can be resumed; its jobs go on either way."""
        self._closing = True
        task, connection = self._task, self._outbox.connection
        if goodbye and self.fault is None and self._open.is_set() and connection is not None:
            try:
                async with asyncio.timeout(_GOODBYE):
                    self.post(self.message("session.close", m.Bye("client_shutdown")))
                    await self._said_goodbye.wait()
            except TimeoutError:
                pass
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self._pulse.stop()
        await self._outbox.close()
        if connection is not None:
            await connection.close()
        if self.fault is None:
            self._end(lost("closed"))

    @property
    def is_open(self) -> bool:
        """Whether messages can be sent now."""
        return self._outbox.connection is not None and self.fault is None

    async def ready(self, within: float) -> None:
        """
        Wait until messages can be sent.

        Raises:
            FaultError: when the session is over, or not back in time.

        """
        if not self._open.is_set():
            try:
                async with asyncio.timeout(within):
                    await self._open.wait()
            except TimeoutError:
                raise error_of(lost("disconnected")) from None
        # An end opens the door too, for whoever waits at it.
        if self.fault is not None:
            raise error_of(self.fault)

    async def resume(self) -> None:
        """
        Go on with the session on a new connection, now.

        Raises:
            FaultError: when that cannot be.

        """
        if self.fault is not None:
            raise error_of(self.fault)
        if self._open.is_set():
            # The reading task has to see that this connection is over before anybody waits for the next.
            self._drop()
        self._comeback.hurry()
        await self.ready(self._comeback.window + self._settings.connect_timeout)

    # -- sending

    def message(
        self, type: str, payload: Any, *, job_id: str | None = None, trace_id: str | None = None
    ) -> Envelope:
        """A message of this session."""
        return envelope(type, payload, session_id=self.session_id, job_id=job_id, trace_id=trace_id)

    def post(self, message: Envelope, *, alone: bool = False) -> None:
        """Send a message; see `Outbox.post`."""
        self._outbox.post(message, alone=alone)

    def _say(self, type: str, payload: m.Message) -> None:
        self.post(self.message(type, payload))

    # -- reading

    async def _run(self) -> None:
        fault: Fault | None = None
        try:
            while fault is None:
                await self._read()
                if self._closing:
                    return
                fault = self._session_error or await self._return()
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody may be left waiting
            _log(error)
            fault = lost("disconnected")
        finally:
            if fault is None and not self._closing:
                fault = lost("disconnected")
        if fault is not None:
            self._end(fault)

    async def _read(self) -> None:
        """Hand on what comes, until the connection is over."""
        outbox, pulse, comeback, now = self._outbox, self._pulse, self._comeback, self._loop.time
        connection = outbox.connection
        garbage = in_a_row = 0
        while connection is not None and connection is outbox.connection:
            frame = await connection.receive()
            if frame is None:
                break
            pulse.heard = now()
            message = read(frame)
            if isinstance(message, Malformed):
                garbage += 1
                if garbage >= _GARBAGE:
                    break
                continue
            garbage = 0
            comeback.fruitful = True
            more = self._take(message, len(frame))
            if more is not None:
                if more is _OVER:
                    break
                await more
            in_a_row += 1
            if in_a_row % _TURN == 0:
                # A flood must not keep those from running who would read it.
                await asyncio.sleep(0)
        self._open.clear()
        self._said_goodbye.set()
        pulse.stop()
        outbox.connection = None
        if connection is not None:
            await connection.close()

    def _take(self, message: Envelope, size: int) -> Any:
        """Take one message: None, something to await, or _OVER when the connection is of no use any more."""
        control = _CONTROL.get(message.type)
        if control is not None:
            return control(self, message)
        self._session_error = None
        seq = message.event_seq
        if seq is not None:
            if seq > self.last_seq + 1:
                return self._gap()
            if seq > self.last_seq:
                self.last_seq = seq
                self._pulse.progressed(seq)
        return self._receiver.arrived(message, size)

    async def _take_early(self, opened: Opened) -> None:
        """What came before the welcome."""
        for message, size in opened.early:
            more = self._take(message, size)
            if more is _OVER:
                self._drop()
                return
            if more is not None:
                await more

    def _gap(self) -> Any:
        """
        Events are missing (8.3): go back to the session for them, once.

        A runtime that has them replays them. One that skips them again does not have them any more.
        """
        if self._gap_at == self.last_seq:
            self._session_error = window_over(reason="gap", after=self.last_seq)
        self._gap_at = self.last_seq
        return _OVER

    # -- what is said about the session itself

    def _pinged(self, message: Envelope) -> None:
        self._session_error = None
        payload = payload_of(message) or {}
        nonce = payload.get("nonce")
        pong = m.Pong(nonce if isinstance(nonce, str) else "", now_text())
        self.post(self.message("session.pong", pong))

    def _ponged(self, message: Envelope) -> None:
        """It was heard: the session goes on, whatever was said before."""
        self._session_error = None

    def _bid_goodbye(self, message: Envelope) -> None:
        """The runtime leaves. Ours was answered, or it goes down: another node may have the session."""
        self._said_goodbye.set()

    def _errored(self, message: Envelope) -> Any:
        """
        S5: fatal, the transport closes after it. A published runtime refuses requests with it and goes on.

        So it ends the session only if the connection ends with it; and a request that was waiting is refused.
        """
        payload = payload_of(message)
        fault = received("session.error", payload, message.trace_id)
        if fault.code == "HEARTBEAT_LOST" and not self._closing:
            # 6.4: this connection was given up, not the session. We may hear of it late, and go back all the same.
            return _OVER
        if self._closing:
            self._said_goodbye.set()
        self._receiver.refused(fault, payload or {})
        self._session_error = fault
        return None

    # -- going back

    async def _return(self) -> Fault | None:
        """Go back to the session; the fault when that cannot be."""
        reason = "silent" if self._silent else "gap" if self._gap_at == self.last_seq else "disconnected"
        if self._resume_token is None:
            return lost(reason)
        resume = m.Resume(self.session_id, self._resume_token, self.last_seq)
        opened = await self._comeback.back(resume, reason)
        if isinstance(opened, Fault):
            return opened
        self._adopt(opened)
        # At once: what is asked from now on is not in doubt.
        for message in self._receiver.unanswered():
            message.session_id = self.session_id
            self.post(message)
        await self._take_early(opened)
        return None

    def _adopt(self, opened: Opened) -> None:
        welcome = opened.welcome
        self._outbox.attach(opened.connection)
        self._resume_token = welcome.resume_token or None
        capabilities = welcome.capabilities or m.Capabilities()
        self.welcome = welcome
        self.session_id = opened.session_id
        self.features = negotiated(self._settings.features, capabilities.features or ())
        self._silent = False
        self._session_error = None
        self._comeback.opened(welcome)
        self._open.set()
        self._pulse.start(self._interval, acks="ack" in self.features)

    def _drop(self) -> None:
        """Be done with this connection."""
        self._open.clear()
        self._pulse.stop()
        self._outbox.drop()

    def _fell_silent(self) -> None:
        self._silent = True
        self._drop()

    def _end(self, fault: Fault) -> None:
        self.fault = fault
        self._pulse.stop()
        self._open.set()
        self._receiver.ended(fault)

    @property
    def _interval(self) -> float | None:
        """Seconds between signs of life, where both sides agreed on them; a runtime may leave open how often."""
        if "heartbeat" not in self.features:
            return None
        seconds = self.welcome.heartbeat_interval_sec
        return seconds if seconds is not None and seconds > 0 else _INTERVAL


_CONTROL: dict[str, Callable[[Link, Envelope], None]] = {
    "session.ping": Link._pinged,  # noqa: SLF001 - the table of its own methods
    "session.pong": Link._ponged,  # noqa: SLF001
    "session.bye": Link._bid_goodbye,  # noqa: SLF001
    "session.closed": Link._bid_goodbye,  # noqa: SLF001
    "session.error": Link._errored,  # noqa: SLF001
}


def _log(error: Exception) -> None:
    from logging import getLogger

    getLogger("amends.arcp").error("the client's connection failed: %s", type(error).__name__, exc_info=error)
