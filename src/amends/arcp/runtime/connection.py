"""
One connection from its first frame to its end: who is there, then what is asked for, one frame after the other.

Nothing is kept for a stranger but one frame and a deadline. After the welcome every request is answered by name;
what a client gets wrong in one request ends that request alone. Only a frame that is none, a hello out of place or a
session that is over end the connection, with `session.error` (S5).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from amends._version import __version__
from amends.arcp.runtime.admission import submit
from amends.arcp.runtime.agents import inventory
from amends.arcp.runtime.cancel import cancel
from amends.arcp.runtime.feeds import SUBMITTED
from amends.arcp.runtime.listing import listed, may_observe, subscribe, unsubscribe
from amends.arcp.runtime.noticing import Noticing
from amends.arcp.transports import Connection, ConnectionLost
from amends.arcp.wire import (
    FEATURES,
    Envelope,
    Malformed,
    envelope,
    negotiated,
    now_text,
    read,
    read_payload,
    write,
)
from amends.arcp.wire.messages import (
    Auth,
    Bye,
    Cancelled,
    Capabilities,
    Error,
    Hello,
    Peer,
    Pong,
    Resume,
    Welcome,
)
from amends.dialects import arcp as dialect
from amends.errors import FaultError
from amends.errors.arcp import (
    ARCPError,
    InternalError,
    InvalidRequestError,
    JobNotFoundError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from amends.stores import StoreError

if TYPE_CHECKING:
    from amends.arcp.runtime.node import Node
    from amends.arcp.runtime.session import Session

__all__ = ["serve"]

_log = logging.getLogger("amends.arcp")
_POLICY, _TRY_LATER = 1008, 1013


async def serve(node: Node, connection: Connection) -> None:
    """Run one connection to its end."""
    if node.strangers >= node.limits.strangers or node.draining:
        await connection.close(_TRY_LATER, "")
        return
    node.strangers += 1
    try:
        session = await _welcomed(node, connection)
    finally:
        node.strangers -= 1
    if session is None:
        await connection.close(_POLICY, "")
        return
    try:
        await _converse(session)
    finally:
        await node.drop(session)


# -- who is there


async def _welcomed(node: Node, connection: Connection) -> Session | None:
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
    features = negotiated(ours, named or ())
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
        await node.sessions.replay(session, replayed)
    except BaseException:
        await node.drop(session)
        raise
    for feed in list(session.feeds.values()):
        feed.trace = await node.trace(feed.job_id)
        feed.begin(node)
    session.writer = node.spawn(session.write())


def _whole(seconds: float) -> float:
    """A published peer reads whole seconds only."""
    return int(seconds) if seconds == int(seconds) else seconds


async def _refuse(connection: Connection, error: FaultError) -> None:
    """Say why there is no session."""
    try:
        async with asyncio.timeout(5):
            await connection.send(write(envelope("session.error", _error(error))))
    except (ConnectionLost, TimeoutError):
        pass


# -- what is asked for


async def _converse(session: Session) -> None:
    """Serve what is asked for until the connection is over, in tasks that take turns in reading."""
    over: asyncio.Future[None] = session.node.loop.create_future()
    session.node.begin(_read(session, over))
    await over


async def _read(session: Session, over: asyncio.Future[None]) -> None:
    """
    Read and serve. Whoever comes upon a submission serves it at once.

    An agent that has to wait keeps this task for its job, and the next one reads on: most jobs cost no task of their
    own, and none waits for another.
    """
    node, receive = session.node, session.connection.receive
    handed_on = False

    def hand_on() -> None:
        nonlocal handed_on
        handed_on = True
        session.go_on()
        node.begin(_read(session, over))

    try:
        while not session.closing:
            frame = await Noticing(receive(), session.go_on)
            if frame is None or session.closing:
                # What comes late over a connection that was given up is asked again over the next one.
                break
            session.hold()
            session.heard = node.loop.time()
            message = read(frame)
            if isinstance(message, Malformed):
                await _end(session, InvalidRequestError(message.reason))
                break
            if message.session_id is not None and message.session_id != session.id:
                await _end(session, InvalidRequestError("The frame belongs to another session"))
                break
            if session.unconfirmed:
                session.unconfirmed = False
                await node.sessions.confirmed(session)
            if message.type == "job.submit":
                await Noticing(_submitted(session, message), hand_on, apart=True)
                if handed_on:
                    return
            else:
                handler = _HANDLERS.get(message.type)
                if handler is not None:
                    await Noticing(_answered(handler, session, message), session.go_on)
            if session.full:
                session.go_on()
                await session.room()
    finally:
        if not handed_on and not over.done():
            over.set_result(None)
        node.finished()


async def _submitted(session: Session, message: Envelope) -> None:
    try:
        await _answered(submit, session, message)
    except Exception:  # noqa: BLE001 - nobody waits for this task: whoever submitted is told
        _log.exception("a submission failed")
        session.say("job.error", _error(InternalError(), request_id=message.id), trace=message.trace_id)
    finally:
        session.newborn = None


async def _answered(
    handler: Callable[[Session, Envelope], Awaitable[None]], session: Session, message: Envelope
) -> None:
    """Serve a request; what goes wrong with it is told to whoever asked, under the request's name."""
    try:
        await handler(session, message)
    except ARCPError as error:
        session.say("job.error", _error(error, request_id=message.id), trace=message.trace_id)
    except StoreError:
        _log.exception("a request failed: the store fails")
        session.say("job.error", _error(InternalError(), request_id=message.id), trace=message.trace_id)


async def _end(session: Session, error: FaultError) -> None:
    """End the connection and say why; the session can be resumed."""
    frame = write(envelope("session.error", _error(error), session_id=session.id))
    try:
        async with asyncio.timeout(5):
            await session.connection.send(frame)
    except (ConnectionLost, TimeoutError):
        pass


def _error(error: FaultError, request_id: str | None = None) -> Error:
    told: dict[str, Any] = dialect.encode(error.fault)
    return Error(
        told["code"],
        told["message"],
        told["retryable"],
        told.get("details"),
        final_status="error" if request_id is not None else None,
        completed_at=now_text() if request_id is not None else None,
        request_id=request_id,
    )


# -- small requests


async def _ping(session: Session, message: Envelope) -> None:
    ping = read_payload(message)
    nonce = None if isinstance(ping, Malformed) else ping.nonce
    session.say("session.pong", Pong(nonce, now_text()))


async def _ack(session: Session, message: Envelope) -> None:
    ack = read_payload(message)
    if not isinstance(ack, Malformed):
        session.acknowledge(ack.last_processed_seq)


async def _close(session: Session, message: Envelope) -> None:
    """Goodbye: jobs go on, and so can the session within its window (6.7)."""
    if message.type == "session.close":
        session.say("session.closed", Bye("client asked"))
        await session.flushed()
    await session.node.drop(session)


async def _cancel(session: Session, message: Envelope) -> None:
    request = read_payload(message)
    if isinstance(request, Malformed):
        raise InvalidRequestError(request.reason)
    job_id = message.job_id or request.job_id
    node = session.node
    order = None if job_id is None else await node.ledger.order(job_id)
    if order is None or not await may_observe(node, session.principal, order.principal):
        raise JobNotFoundError
    feed = session.feeds.get(order.job_id)
    asked_for_it = order.session == session.id or (feed is not None and feed.mode & SUBMITTED)
    if order.principal != session.principal or not asked_for_it:
        raise PermissionDeniedError(
            "Only the session that submitted a job may cancel it", details={"job_id": job_id}
        )
    await cancel(node, order, request.reason)
    session.say("job.cancelled", Cancelled(order.job_id, message.id), job_id=order.job_id, trace=order.trace)


async def _gated(
    session: Session, feature: str, handler: Callable[[Session, Envelope], Awaitable[None]], message: Envelope
) -> None:
    if feature not in session.features:
        raise InvalidRequestError("The feature was not negotiated", details={"feature": feature})
    await handler(session, message)


def _needs(
    feature: str, handler: Callable[[Session, Envelope], Awaitable[None]]
) -> Callable[[Session, Envelope], Awaitable[None]]:
    async def served(session: Session, message: Envelope) -> None:
        await _gated(session, feature, handler, message)

    return served


_WITHOUT_CREDENTIALS = tuple(feature for feature in FEATURES if feature != "provisioned_credentials")

_HANDLERS: dict[str, Callable[[Session, Envelope], Awaitable[None]]] = {
    "session.ping": _ping,
    "session.ack": _ack,
    "session.list_jobs": _needs("list_jobs", listed),
    "session.close": _close,
    "session.bye": _close,
    "job.cancel": _cancel,
    "job.subscribe": _needs("subscribe", subscribe),
    "job.unsubscribe": _needs("subscribe", unsubscribe),
}
"""What is asked beside `job.submit`. Types that are not here, now or of later versions, are ignored (section 5)."""
