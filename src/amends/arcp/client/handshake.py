"""Open a session, or resume one (sections 6.1 to 6.3)."""

from __future__ import annotations

import asyncio
from random import random

import msgspec

from amends._version import __version__
from amends.arcp.client.dial import Addresses, Dial, UrlDial
from amends.arcp.client.session_faults import error_of, none_opened, not_opened, reported_fault
from amends.arcp.client.settings import Settings
from amends.arcp.transports.connection import Connection, ConnectionLost
from amends.arcp.wire import Envelope, Malformed, envelope, payload_of, read, read_payload, write
from amends.arcp.wire import messages as m
from amends.core.enums import Recovery
from amends.core.fault import Fault
from amends.errors.base import FaultError

__all__ = ["OpenedSession", "Ticket", "open_session", "open_when_free"]

_TRY_AGAIN_LATER = 1013
_NOT_CLOSED = 1006
"""WebSocket's code for a connection that ended without one."""
_BUSY = "busy"
_PER_ADDRESS = 3.0
"""Seconds for each of several addresses, if `connect_timeout` leaves less."""
_NOISE = 10_000
"""Lines of other output that a child process may print before its first message."""
_LAST = 1.0
"""Seconds to wait for the close code behind a retryable session.error."""
_EARLY = 100_000
"""Messages that may come before the welcome: v1.0 replays events first."""


class Ticket(msgspec.Struct, frozen=True):
    """
    A session to resume (6.3). It is a credential: protect it like the token. Its repr does not contain the token.

        ticket = await client.detach()
        async with connect("wss://host/arcp", token="...", ticket=ticket) as client:
            ...

    >>> Ticket("s-1", "secret", 41)
    Ticket('s-1', last_event_seq=41)
    """

    session_id: str
    resume_token: str
    last_event_seq: int = 0

    def __repr__(self) -> str:
        return f"Ticket({self.session_id!r}, last_event_seq={self.last_event_seq})"


class OpenedSession(msgspec.Struct):
    """An open session."""

    connection: Connection
    welcome: m.Welcome
    session_id: str
    early: list[tuple[Envelope, int]]
    """The messages before the welcome, each with its size."""


async def open_when_free(
    dial: Dial, token: str | None, settings: Settings, resume: m.Resume | None = None
) -> OpenedSession:
    """
    Open a session; while the runtime has too many connections, wait and try again within `busy_timeout`.

    Raises:
        FaultError: as `open_session`.

    """
    backoff = settings.resuming.backoff
    loop = asyncio.get_running_loop()
    end = loop.time() + settings.busy_timeout
    tries = 0
    while True:
        try:
            return await open_session(dial, token, settings, resume)
        except FaultError as error:
            tries += 1
            fault = error.fault
            wait = fault.retry_after
            if tries > 1 if wait is not None else (fault.details or {}).get("reason") == _BUSY:
                wait = max(wait or 0.0, backoff.jitter(backoff.wait(tries), random()))  # noqa: S311 - jitter
            refused = fault.origin is None or fault.origin.path != "connection"
            if refused or wait is None or loop.time() + wait > end:
                raise
        await asyncio.sleep(wait)


async def open_session(
    dial: Dial, token: str | None, settings: Settings, resume: m.Resume | None = None
) -> OpenedSession:
    """
    Connect, send `session.hello` and read `session.welcome`. Of several addresses, each is tried once.

    Raises:
        FaultError: the runtime's error; HEARTBEAT_LOST if it cannot be reached or does not answer.

    """
    if not isinstance(dial, Addresses):
        return await _open(dial, token, settings, resume, settings.connect_timeout)
    failures: dict[str, Fault] = {}
    # Not the whole time for each: one that does not answer must not use up the time of the others.
    timeout = max(min(_PER_ADDRESS, settings.connect_timeout), settings.connect_timeout / len(dial))
    for address in dial.in_turn():
        try:
            return await _open(address, token, settings, resume, timeout)
        except FaultError as error:
            if error.fault.origin is None or error.fault.origin.path != "connection":
                raise
            failures[address.name] = error.fault
    raise error_of(none_opened(failures))


async def _open(
    dial: Dial, token: str | None, settings: Settings, resume: m.Resume | None, within: float
) -> OpenedSession:
    hello = m.Hello(
        client=m.Peer(settings.name, __version__),
        auth=m.Auth("bearer", token or ""),
        capabilities=m.Capabilities(encodings=["json"], features=list(settings.features)),
        resume=resume,
    )
    connection: Connection | None = None
    try:
        async with asyncio.timeout(within):
            connection = await dial()
            await connection.send(write(envelope("session.hello", hello)))
            return await _read_welcome(connection)
    except TimeoutError:
        limit = f"within {within:g} s"
        if connection is None:
            failure = ConnectionLost(f"there was no connection {limit}")
        else:
            failure = ConnectionLost(f"the runtime did not answer {limit}", reason="no_answer")
    except ConnectionLost as error:
        failure = error if connection is None else _not_welcomed(connection)
    except BaseException:
        if connection is not None:
            await connection.close()
        raise
    if connection is not None:
        await connection.close()
    raise error_of(not_opened(failure, dial.name if isinstance(dial, UrlDial) else None)) from None


async def _read_welcome(connection: Connection) -> OpenedSession:
    early: list[tuple[Envelope, int]] = []
    noise = _NOISE if getattr(connection, "noisy", False) else 0
    while len(early) < _EARLY:
        frame = await connection.receive()
        if frame is None:
            break
        message = read(frame)
        if isinstance(message, Malformed) and noise > 0:
            noise -= 1
            continue
        if isinstance(message, Malformed) or message.type == "session.hello":
            # No ARCP, or a server that sends back what it receives.
            break
        if message.type == "session.error":
            fault = reported_fault("session.error", payload_of(message), message.trace_id)
            await _raise_if_busy(connection, fault)
            raise error_of(fault)
        if message.type == "session.welcome":
            welcome = read_payload(message)
            session_id = None if isinstance(welcome, Malformed) else welcome.session_id or message.session_id
            if session_id is None:
                break
            return OpenedSession(connection, welcome, session_id, early)
        early.append((message, len(frame)))
    raise _not_welcomed(connection)


async def _raise_if_busy(connection: Connection, fault: Fault) -> None:
    """Raise ConnectionLost if the runtime closes with 1013 behind a retryable error: it is to be tried again later."""
    if fault.recovery is not Recovery.TRANSIENT:
        return
    try:
        async with asyncio.timeout(_LAST):
            while await connection.receive() is not None:
                pass
    except TimeoutError:
        return
    if _close_code(connection) == _TRY_AGAIN_LATER:
        raise _busy(fault.retry_after)


def _not_welcomed(connection: Connection) -> ConnectionLost:
    """Why a connection ended before the welcome."""
    code = _close_code(connection)
    if code == _TRY_AGAIN_LATER:
        return _busy(None)
    closed = f" (it closed the connection with code {code})" if code is not None else ""
    return ConnectionLost(
        f"the server did not answer with an ARCP message{closed}",
        reason="no_protocol",
        details={"close_code": code} if code is not None else None,
    )


def _busy(retry_after: float | None) -> ConnectionLost:
    return ConnectionLost(
        "the runtime accepts no further connections at the moment", reason=_BUSY, retry_after=retry_after
    )


def _close_code(connection: Connection) -> int | None:
    """The code with which the other side closed a WebSocket; other transports have none."""
    code = getattr(connection, "close_code", None)
    return int(code) if isinstance(code, int) and code != _NOT_CLOSED else None
