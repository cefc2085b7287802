"""Open a session, or resume one (sections 6.1 to 6.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from amends._version import __version__
from amends.arcp.client.session_faults import connection_lost, error_of, reported_fault
from amends.arcp.client.settings import Settings
from amends.arcp.transports.connection import Connection, ConnectionLost
from amends.arcp.wire import Envelope, Malformed, envelope, payload_of, read, read_payload, write
from amends.arcp.wire import messages as m
from amends.core.enums import Executed

__all__ = ["Dial", "OpenedSession", "Ticket", "open_session"]

Dial = Callable[[], Awaitable[Connection]]
"""Connects to the runtime; every call returns a new connection."""

_EARLY = 100_000
"""Messages that may come before the welcome: v1.0 replays events first."""


class Ticket(msgspec.Struct, frozen=True):
    """A session to resume (6.3). It is a credential: protect it like the token. Its repr does not contain the token."""

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


async def open_session(
    dial: Dial, token: str | None, settings: Settings, resume: m.Resume | None = None
) -> OpenedSession:
    """
    Connect, send `session.hello` and read `session.welcome`.

    Raises:
        FaultError: the runtime's error; HEARTBEAT_LOST if it cannot be reached or does not answer.

    """
    hello = m.Hello(
        client=m.Peer(settings.name, __version__),
        auth=m.Auth("bearer", token or ""),
        capabilities=m.Capabilities(encodings=["json"], features=list(settings.features)),
        resume=resume,
    )
    connection: Connection | None = None
    try:
        async with asyncio.timeout(settings.connect_timeout):
            connection = await dial()
            await connection.send(write(envelope("session.hello", hello)))
            return await _read_welcome(connection)
    except TimeoutError:
        reason = "unreachable" if connection is None else "no_answer"
    except ConnectionLost:
        reason = "unreachable" if connection is None else "no_protocol"
    except BaseException:
        if connection is not None:
            await connection.close()
        raise
    if connection is not None:
        await connection.close()
    raise error_of(connection_lost(reason, executed=Executed.NO)) from None


async def _read_welcome(connection: Connection) -> OpenedSession:
    early: list[tuple[Envelope, int]] = []
    while len(early) < _EARLY:
        frame = await connection.receive()
        if frame is None:
            break
        message = read(frame)
        if isinstance(message, Malformed):
            break
        if message.type == "session.error":
            raise error_of(reported_fault("session.error", payload_of(message), message.trace_id))
        if message.type == "session.welcome":
            welcome = read_payload(message)
            session_id = None if isinstance(welcome, Malformed) else welcome.session_id or message.session_id
            if session_id is None:
                break
            return OpenedSession(connection, welcome, session_id, early)
        early.append((message, len(frame)))
    raise error_of(connection_lost("no_protocol", executed=Executed.NO))
