"""
One connection from its first frame to its end: who is there, then what is asked for, one frame after the other.

After the welcome every request is answered by name; what a client gets wrong in one request ends that request alone.
Only a frame that is none, a hello out of place or a session that is over end the connection, with `session.error`
(S5).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from amends.arcp.runtime.admission import submit
from amends.arcp.runtime.handshake import welcomed
from amends.arcp.runtime.noticing import Noticing
from amends.arcp.runtime.refusal import refusal
from amends.arcp.runtime.session_requests import HANDLERS, Handler
from amends.arcp.transports import Connection, ConnectionLost
from amends.arcp.wire import Envelope, Malformed, envelope, read, write
from amends.errors import FaultError
from amends.errors.arcp import ARCPError, InternalError, InvalidRequestError
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
        session = await welcomed(node, connection)
    finally:
        node.strangers -= 1
    if session is None:
        await connection.close(_POLICY, "")
        return
    try:
        await _converse(session)
    finally:
        await node.drop(session)


async def _converse(session: Session) -> None:
    """Serve what is asked for until the connection is over, in tasks that take turns in reading."""
    over: asyncio.Future[None] = session.node.loop.create_future()
    session.node.begin(_read(session, over))
    await over


async def _read(session: Session, over: asyncio.Future[None]) -> None:
    """
    Read and serve. Whoever comes upon a submission serves it at once.

    An agent that has to wait keeps this task for its job, and the next one reads on: most jobs cost no task of their
    own, and none waits for another. Where the store makes every submission wait, each has a task from the start, and those
    that came together are begun in one turn of the event loop: what they write leaves together.
    """
    node, receive = session.node, session.connection.receive
    handed_on = begun = False

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
                await Noticing(node.sessions.confirmed(session), session.go_on)
            if begun and message.type != "job.submit":
                # Behind those that came before it.
                begun = False
                await asyncio.sleep(0)
            if message.type == "job.submit" and node.called:
                begun = True
                node.begin(_beside(session, message))
            elif message.type == "job.submit":
                await Noticing(_submitted(session, message), hand_on, apart=True)
                if handed_on:
                    return
            else:
                handler = HANDLERS.get(message.type)
                if handler is not None:
                    await Noticing(_answered(handler, session, message), session.go_on)
            if session.full:
                session.go_on()
                await session.room()
    finally:
        if not handed_on and not over.done():
            over.set_result(None)
        node.finished()


async def _beside(session: Session, message: Envelope) -> None:
    try:
        await _submitted(session, message)
    finally:
        session.node.finished()


async def _submitted(session: Session, message: Envelope) -> None:
    try:
        await _answered(submit, session, message)
    except Exception:  # noqa: BLE001 - nobody waits for this task: whoever submitted is told
        _log.exception("a submission failed")
        session.say("job.error", refusal(InternalError(), request_id=message.id), trace=message.trace_id)
    finally:
        session.newborn = None


async def _answered(handler: Handler, session: Session, message: Envelope) -> None:
    """Serve a request; what goes wrong with it is told to whoever asked, under the request's name."""
    try:
        await handler(session, message)
    except ARCPError as error:
        session.say("job.error", refusal(error, request_id=message.id), trace=message.trace_id)
    except StoreError:
        _log.exception("a request failed: the store fails")
        session.say("job.error", refusal(InternalError(), request_id=message.id), trace=message.trace_id)


async def _end(session: Session, error: FaultError) -> None:
    """End the connection and say why; the session can be resumed."""
    session.go_on()
    frame = write(envelope("session.error", refusal(error), session_id=session.id))
    try:
        async with asyncio.timeout(5):
            await session.connection.send(frame)
    except (ConnectionLost, TimeoutError):
        pass
