"""Opening a session, or going back to one (sections 6.1 to 6.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from amends._version import __version__
from amends.arcp.client.session_faults import error_of, lost, received
from amends.arcp.client.settings import Settings
from amends.arcp.transports.connection import Connection, ConnectionLost
from amends.arcp.wire import Envelope, Malformed, envelope, payload_of, read, read_payload, write
from amends.arcp.wire import messages as m
from amends.core.enums import Executed

__all__ = ["Dial", "Opened", "Ticket", "open_session"]

Dial = Callable[[], Awaitable[Connection]]
"""How to reach the runtime: every call gives a fresh connection."""

_EARLY = 100_000
"""Messages that may come before the welcome: v1.0 replays first and welcomes then."""


class Ticket(msgspec.Struct, frozen=True):
    """A session to be resumed (6.3). A credential: keep it as you keep the token. Its text form does not show it."""

    session_id: str
    resume_token: str
    last_event_seq: int = 0

    def __repr__(self) -> str:
        return f"Ticket({self.session_id!r}, last_event_seq={self.last_event_seq})"


class Opened(msgspec.Struct):
    """A session that is open."""

    connection: Connection
    welcome: m.Welcome
    session_id: str
    early: list[tuple[Envelope, int]]
    """What came before the welcome, with its size."""


async def open_session(
    dial: Dial, token: str | None, settings: Settings, resume: m.Resume | None = None
) -> Opened:
    """
    Dial, greet, and be welcomed.

    Raises:
        FaultError: what the runtime refused with; HEARTBEAT_LOST when it cannot be reached or says nothing.

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
            return await _welcomed(connection)
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
    raise error_of(lost(reason, executed=Executed.NO)) from None


async def _welcomed(connection: Connection) -> Opened:
    early: list[tuple[Envelope, int]] = []
    while len(early) < _EARLY:
        frame = await connection.receive()
        if frame is None:
            break
        message = read(frame)
        if isinstance(message, Malformed):
            break
        if message.type == "session.error":
            raise error_of(received("session.error", payload_of(message), message.trace_id))
        if message.type == "session.welcome":
            welcome = read_payload(message)
            session_id = None if isinstance(welcome, Malformed) else welcome.session_id or message.session_id
            if session_id is None:
                break
            return Opened(connection, welcome, session_id, early)
        early.append((message, len(frame)))
    raise error_of(lost("no_protocol", executed=Executed.NO))
