"""
Who is there: the first frame of a connection, and the welcome or the refusal it gets.

Nothing is kept for a stranger but one frame and a deadline.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from amends._version import __version__
from amends.arcp.runtime.agents import inventory
from amends.arcp.runtime.refusal import refusal
from amends.arcp.runtime.resumption import known, replay
from amends.arcp.transports import Connection, ConnectionLost
from amends.arcp.wire import (
    FEATURES,
    Envelope,
    Malformed,
    envelope,
    negotiate,
    now_text,
    read,
    read_payload,
    write,
)
from amends.arcp.wire.messages import Auth, Capabilities, Hello, Peer, Resume, Welcome
from amends.errors import FaultError
from amends.errors.arcp import ARCPError, InternalError, InvalidRequestError, UnauthenticatedError
from amends.stores import StoreError

if TYPE_CHECKING:
    from amends.arcp.runtime.node import Node
    from amends.arcp.runtime.session import Session

__all__ = ["welcomed"]

_log = logging.getLogger("amends.arcp")

_WITHOUT_CREDENTIALS = tuple(feature for feature in FEATURES if feature != "provisioned_credentials")


async def welcomed(node: Node, connection: Connection) -> Session | None:
    """The session a connection begins or goes on with; None when it has none."""
    try:
        async with asyncio.timeout(node.limits.hello_timeout):
            frame = await connection.receive()
            if frame is None:
                return None
            return await _greeted(node, connection, read(frame))
    except TimeoutError:
        await _refuse(connection, InvalidRequestError("No hello in time"))
    except ARCPError as error:
        await _refuse(connection, error)
    except ConnectionLost:
        pass
    except StoreError:
        _log.exception("no session: the store fails")
        await _refuse(connection, InternalError())
    return None


async def _greeted(node: Node, connection: Connection, message: Envelope | Malformed) -> Session:
    if isinstance(message, Malformed):
        raise InvalidRequestError(message.reason)
    if message.type not in {"session.hello", "session.resume"}:
        raise InvalidRequestError("A session begins with session.hello")
    hello = read_payload(message)
    if isinstance(hello, Malformed):
        raise InvalidRequestError(hello.reason)
    principal = await _principal(
        node, hello.auth or (hello.resume.auth if isinstance(hello, Hello) and hello.resume else None)
    )
    ours = FEATURES if node.credentials is not None else _WITHOUT_CREDENTIALS
    capabilities = hello.capabilities
    named = None if capabilities is None else capabilities.features
    features = negotiate(ours, named or ())
    wanted: Resume | None = hello if isinstance(hello, Resume) else hello.resume
    if wanted is None:
        session, token = await node.sessions.open(principal, features, connection)
        replayed: list[tuple[int, str, int]] = []
    else:
        # A resumed session speaks as it did, unless it says otherwise.
        session, token, replayed = await node.sessions.resume(
            principal, wanted, None if named is None else features, connection
        )
    await _welcome(node, session, token, ours, replayed)
    return session


async def _principal(node: Node, auth: Auth | None) -> str:
    if auth is None or not auth.token or (auth.scheme or "bearer").lower() != "bearer":
        raise UnauthenticatedError
    try:
        principal = await node.authenticate(auth.token)
    except ARCPError:
        raise
    except Exception as error:
        _log.exception("authentication failed")
        raise InternalError from error
    if principal is None:
        raise UnauthenticatedError
    return principal


async def _welcome(
    node: Node,
    session: Session,
    token: str,
    features: tuple[str, ...],
    replayed: list[tuple[int, str, int]],
) -> None:
    welcome = Welcome(
        Peer(node.name, __version__),
        session.id,
        token,
        _whole(node.limits.resume_window),
        _whole(node.limits.heartbeat) if "heartbeat" in session.features else None,
        Capabilities(["json"], list(features), inventory(await node.known())),
        now_text(),
    )
    try:
        await session.send([write(envelope("session.welcome", welcome, session_id=session.id))])
        await replay(session, replayed)
    except BaseException:
        await node.drop(session)
        raise
    for feed in list(session.feeds.values()):
        feed.trace, principal = await known(node, feed.job_id)
        feed.guarded = principal != session.principal
        feed.begin(node)
    session.writer = node.spawn(session.write())


def _whole(seconds: float) -> float:
    """A published peer reads whole seconds only."""
    return int(seconds) if seconds == int(seconds) else seconds


async def _refuse(connection: Connection, error: FaultError) -> None:
    """Say why there is no session."""
    try:
        async with asyncio.timeout(5):
            await connection.send(write(envelope("session.error", refusal(error))))
    except (ConnectionLost, TimeoutError):
        pass
