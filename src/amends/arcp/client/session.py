"""
A session, over any number of connections.

One task reads. When the connection is lost, silent or skips an event, the same task resumes the session on a new
connection, within the runtime's window and the client's policy; the runtime then replays exactly the missing events. If
the session cannot be resumed, everything that waits fails with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from amends.arcp.client.dial import Dial
from amends.arcp.client.handshake import OpenedSession, Ticket, open_when_free
from amends.arcp.client.heartbeat import Heartbeat
from amends.arcp.client.inbox import Inbox
from amends.arcp.client.outbox import Outbox
from amends.arcp.client.reconnect import Reconnect
from amends.arcp.client.session_faults import (
    client_closed,
    connection_lost,
    error_of,
    reported_fault,
    resume_expired,
)
from amends.arcp.client.settings import Settings
from amends.arcp.wire import (
    Envelope,
    Malformed,
    envelope,
    negotiate,
    now_text,
    payload_of,
    read,
)
from amends.arcp.wire import messages as m
from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.logs import logger

__all__ = ["Session"]

_logger = logger("amends.arcp")

_DEFAULT_INTERVAL = 30.0
_MAX_MALFORMED = 16
"""Consecutive malformed frames after which the connection counts as broken."""
_CLOSE_TIMEOUT = 2.0
_CONNECTION_OVER: object = object()
_YIELD_EVERY = 64
"""Messages handled before the reading task yields to other tasks."""


class Session:
    """The client's session with a runtime."""

    def __init__(self, dial: Dial, token: str | None, settings: Settings, inbox: Inbox) -> None:
        self._dial = dial
        self._token = token
        self._settings = settings
        self._inbox = inbox
        self._loop = asyncio.get_running_loop()
        self._outbox = Outbox()
        self._heartbeat = Heartbeat(self._send, lambda: self._outbox.last_sent, self._on_silence)
        self._task: asyncio.Task[None] | None = None
        self._reconnect = Reconnect(dial, token, settings)
        self._open = asyncio.Event()
        self._closing = False
        self._closed_by_runtime = asyncio.Event()
        self._session_error: Fault | None = None
        self._silent = False
        self._gap_at = -1
        self._resume_token: str | None = None
        self.fault: Fault | None = None
        """Why the session is over; None while it is not."""
        self.session_id = ""
        self.features: frozenset[str] = frozenset()
        self.welcome = m.Welcome()
        self.last_seq = 0
        """The highest number up to which every event was received."""

    # -- opening and closing

    async def open(self, ticket: Ticket | None = None) -> None:
        """
        Open the session, or continue the one of a ticket.

        Raises:
            FaultError: the runtime's error, or HEARTBEAT_LOST.

        """
        resume = None
        if ticket is not None:
            resume = m.Resume(ticket.session_id, ticket.resume_token, ticket.last_event_seq)
            self.last_seq = ticket.last_event_seq
        opened = await open_when_free(self._dial, self._token, self._settings, resume)
        if ticket is not None and opened.session_id != ticket.session_id:
            await opened.connection.close()
            raise error_of(resume_expired(reason="forgotten"))
        self._attach(opened)
        await self._handle_early(opened)
        self._task = asyncio.create_task(self._run())

    @property
    def ticket(self) -> Ticket | None:
        """What another client needs to continue this session; None if the runtime gives no resume token."""
        if self._resume_token is None:
            return None
        return Ticket(self.session_id, self._resume_token, self.last_seq)

    async def close(self, *, send_close: bool = True) -> None:
        """Leave the session, with `session.close` or so that it can be resumed; its jobs continue in both cases."""
        self._closing = True
        task, connection = self._task, self._outbox.connection
        if send_close and self.fault is None and self._open.is_set() and connection is not None:
            _logger.debug(
                "closing session %s: waiting up to %g s for the runtime's confirmation",
                self.session_id,
                _CLOSE_TIMEOUT,
            )
            try:
                async with asyncio.timeout(_CLOSE_TIMEOUT):
                    self.post(self.message("session.close", m.Bye("client_shutdown")))
                    await self._closed_by_runtime.wait()
            except TimeoutError:
                _logger.info(
                    "closing session %s: the runtime did not confirm within %g s; the connection is closed without it",
                    self.session_id,
                    _CLOSE_TIMEOUT,
                )
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self._heartbeat.stop()
        await self._outbox.close()
        if connection is not None:
            await connection.close()
        if self.fault is None:
            self._end(connection_lost("closed"))

    @property
    def is_open(self) -> bool:
        """Whether messages can be sent now."""
        return self._outbox.connection is not None and self.fault is None

    async def wait_open(self, within: float) -> None:
        """
        Wait until messages can be sent.

        Raises:
            FaultError: the session is over, or was not resumed in time.

        """
        if not self._open.is_set():
            try:
                async with asyncio.timeout(within):
                    await self._open.wait()
            except TimeoutError:
                raise error_of(connection_lost("disconnected", executed=Executed.NO)) from None
        # The event is also set when the session ends, to wake the waiters.
        self._check_not_over()

    async def resume(self) -> None:
        """
        Continue the session on a new connection now.

        Raises:
            FaultError: the session cannot be resumed.

        """
        self._check_not_over()
        if self._open.is_set():
            # The reading task must see that this connection is over before this method waits for the next.
            self._drop()
        self._reconnect.retry_now()
        await self.wait_open(self._reconnect.window + self._settings.connect_timeout)

    def _check_not_over(self) -> None:
        """Raise why nothing more can be sent; what the caller wanted to send was not."""
        if self._closing:
            raise error_of(client_closed())
        if self.fault is not None:
            raise error_of(replace(self.fault, executed=Executed.NO))

    # -- sending

    def message(
        self, type: str, payload: object, *, job_id: str | None = None, trace_id: str | None = None
    ) -> Envelope:
        """Create a message of this session."""
        return envelope(type, payload, session_id=self.session_id, job_id=job_id, trace_id=trace_id)

    def post(self, message: Envelope, *, alone: bool = False) -> None:
        """Send a message; see `Outbox.post`."""
        self._outbox.post(message, alone=alone)

    def _send(self, type: str, payload: m.Message) -> None:
        self.post(self.message(type, payload))

    # -- reading

    async def _run(self) -> None:
        fault: Fault | None = None
        try:
            while fault is None:
                await self._read()
                if self._closing:
                    return
                fault = self._session_error or await self._resume_lost()
        except Exception as error:  # noqa: BLE001 - every waiter must be woken, whatever the error is
            _log(error)
            fault = connection_lost("disconnected")
        finally:
            if fault is None and not self._closing:
                fault = connection_lost("disconnected")
        if fault is not None:
            self._end(fault)

    async def _read(self) -> None:
        """Handle received messages until the connection is over."""
        outbox, heartbeat, reconnect, now = self._outbox, self._heartbeat, self._reconnect, self._loop.time
        connection = outbox.connection
        malformed = handled = 0
        more: Any = None

        def take(frame: str | bytes) -> bool:
            """Handle one message. Returns False if something has to be done before the next: see `more`."""
            nonlocal malformed, handled, more
            if connection is not outbox.connection:
                more = _CONNECTION_OVER
                return False
            heartbeat.last_received = now()
            message = read(frame)
            if isinstance(message, Malformed):
                malformed += 1
                more = _CONNECTION_OVER if malformed >= _MAX_MALFORMED else None
                return more is None
            malformed = 0
            reconnect.received_anything = True
            more = self._handle(message, len(frame))
            handled += 1
            return more is None and handled % _YIELD_EVERY != 0

        while connection is not None and await connection.receive_into(take):
            if more is _CONNECTION_OVER:
                break
            # Without a pause a flood of messages would keep the iterators from running.
            await (asyncio.sleep(0) if more is None else more())
        self._open.clear()
        self._closed_by_runtime.set()
        heartbeat.stop()
        outbox.connection = None
        if connection is not None:
            await connection.close()

    def _handle(self, message: Envelope, size: int) -> Any:
        """Handle one message; returns None, a function to await, or _CONNECTION_OVER if the connection cannot be used further."""
        control = _CONTROL.get(message.type)
        if control is not None:
            return control(self, message)
        self._session_error = None
        seq = message.event_seq
        if seq is not None:
            if seq > self.last_seq + 1:
                return self._gap()
            if seq <= self.last_seq:
                # Repeated after a resumption.
                return None
            self.last_seq = seq
            self._heartbeat.received_up_to(seq)
        return self._inbox.receive(message, size)

    async def _handle_early(self, opened: OpenedSession) -> None:
        """Handle the messages that came before the welcome."""
        for message, size in opened.early:
            more = self._handle(message, size)
            if more is _CONNECTION_OVER:
                self._drop()
                return
            if more is not None:
                await more()

    def _gap(self) -> Any:
        """
        Events are missing (8.3): resume the session once to get them.

        A runtime that has the events replays them. If the same events are missing again, it does not have them any more.
        """
        if self._gap_at == self.last_seq:
            self._session_error = resume_expired(reason="gap", after=self.last_seq)
        self._gap_at = self.last_seq
        return _CONNECTION_OVER

    # -- control messages

    def _on_ping(self, message: Envelope) -> None:
        self._session_error = None
        payload = payload_of(message) or {}
        nonce = payload.get("nonce")
        pong = m.Pong(nonce if isinstance(nonce, str) else "", now_text())
        self.post(self.message("session.pong", pong))

    def _on_pong(self, message: Envelope) -> None:
        """Clear the session error: the session continues."""
        self._session_error = None

    def _on_closed(self, message: Envelope) -> None:
        """The runtime confirms `session.close`, or shuts down; in the second case another node may have the session."""
        self._closed_by_runtime.set()

    def _on_error(self, message: Envelope) -> Any:
        """
        Handle `session.error`: by the specification it is fatal; a published runtime rejects requests with it and continues.

        It therefore ends the session only if the connection ends too, and it rejects a pending request.
        """
        payload = payload_of(message)
        fault = reported_fault("session.error", payload, message.trace_id)
        if fault.code == "HEARTBEAT_LOST" and not self._closing:
            # 6.4: the runtime gave up this connection, not the session, so the client can resume it.
            return _CONNECTION_OVER
        if self._closing:
            # Published runtimes do not know session.close; they end the session with v1.0's session.bye.
            self._send("session.bye", m.Bye("client_shutdown"))
            self._closed_by_runtime.set()
        self._inbox.reject(fault, payload or {})
        self._session_error = fault
        return None

    # -- resuming

    async def _resume_lost(self) -> Fault | None:
        """Resume the session after a lost connection; returns the fault if that fails."""
        reason = "silent" if self._silent else "gap" if self._gap_at == self.last_seq else "disconnected"
        if self._resume_token is None:
            return connection_lost(reason)
        resume = m.Resume(self.session_id, self._resume_token, self.last_seq)
        opened = await self._reconnect.resume(resume, reason)
        if isinstance(opened, Fault):
            return opened
        self._attach(opened)
        # Before anything is awaited: requests made from now on are not in doubt.
        for message in self._inbox.requests.take_repeatable():
            message.session_id = self.session_id
            self.post(message)
        await self._handle_early(opened)
        self._inbox.resumed()
        return None

    def _attach(self, opened: OpenedSession) -> None:
        welcome = opened.welcome
        self._outbox.attach(opened.connection)
        self._resume_token = welcome.resume_token or None
        capabilities = welcome.capabilities or m.Capabilities()
        self.welcome = welcome
        self.session_id = opened.session_id
        self.features = negotiate(self._settings.features, capabilities.features or ())
        self._silent = False
        self._session_error = None
        self._closed_by_runtime.clear()
        self._reconnect.connected(welcome)
        self._open.set()
        self._heartbeat.start(self._interval, acks="ack" in self.features)

    def _drop(self) -> None:
        """Stop using this connection."""
        self._open.clear()
        self._heartbeat.stop()
        self._outbox.drop()

    def _on_silence(self) -> None:
        self._silent = True
        self._drop()

    def _end(self, fault: Fault) -> None:
        self.fault = fault
        self._heartbeat.stop()
        self._open.set()
        self._inbox.end(fault)

    @property
    def _interval(self) -> float | None:
        """Seconds between heartbeats if both sides support them; the runtime may leave the interval open."""
        if "heartbeat" not in self.features:
            return None
        seconds = self.welcome.heartbeat_interval_sec
        return seconds if seconds is not None and seconds > 0 else _DEFAULT_INTERVAL


_CONTROL: dict[str, Callable[[Session, Envelope], None]] = {
    "session.ping": Session._on_ping,  # noqa: SLF001 - a table of the class's own methods
    "session.pong": Session._on_pong,  # noqa: SLF001
    "session.bye": Session._on_closed,  # noqa: SLF001
    "session.closed": Session._on_closed,  # noqa: SLF001
    "session.error": Session._on_error,  # noqa: SLF001
}


def _log(error: Exception) -> None:
    _logger.error("the client's connection failed: %s", type(error).__name__, exc_info=error)
