"""
Serve one connection from its first frame to its end: the handshake, then one request after another.

After the handshake every error answers the request that caused it, with that request's id, and the connection goes on.
Only a malformed frame, a hello in an open session or a frame for another session end the connection, with
`session.error` (S5).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from amends.arcp.runtime.jobs.submit import submit
from amends.arcp.runtime.server.first_wait import OnFirstWait
from amends.arcp.runtime.server.handshake import open_session
from amends.arcp.runtime.server.refusals import refusal
from amends.arcp.runtime.server.requests import HANDLERS, Handler
from amends.arcp.transports import Connection, ConnectionLost
from amends.arcp.wire import Envelope, Malformed, envelope, read, write
from amends.errors import FaultError
from amends.errors.arcp import ARCPError, InternalError, InvalidRequestError
from amends.stores import StoreError

if TYPE_CHECKING:
    from amends.arcp.runtime.node import Node
    from amends.arcp.runtime.server.session import Session

__all__ = ["serve"]

_log = logging.getLogger("amends.arcp")
_POLICY, _TRY_LATER = 1008, 1013


async def serve(node: Node, connection: Connection) -> None:
    """Run one connection to its end."""
    if node.handshakes >= node.limits.handshakes or node.draining:
        await connection.close(_TRY_LATER, "")
        return
    node.handshakes += 1
    try:
        session = await open_session(node, connection)
    finally:
        node.handshakes -= 1
    if session is None:
        await connection.close(_POLICY, "")
        return
    try:
        await _serve_requests(session)
    finally:
        await node.drop(session)


async def _serve_requests(session: Session) -> None:
    """Serve requests until the connection ends. One task reads at a time; see `_read`."""
    done: asyncio.Future[None] = session.node.loop.create_future()
    session.node.spawn_bare(_read(session, done))
    await done


async def _read(session: Session, done: asyncio.Future[None]) -> None:
    """
    Read and serve requests; a submission is served in this task.

    If a submission has to wait, this task stays with its job and a new task reads on. So most jobs need no task of their
    own, and no request waits for a job. On stores that notify (NATS) every submission waits for the store, so each gets
    a task at once; submissions that arrived together start in one turn of the event loop and share their writes.
    """
    node, receive = session.node, session.connection.receive
    replaced = submitting = False

    def start_next_reader() -> None:
        nonlocal replaced
        replaced = True
        session.resume_flushing()
        node.spawn_bare(_read(session, done))

    try:
        while not session.closing:
            frame = await OnFirstWait(receive(), session.resume_flushing)
            if frame is None or session.closing:
                # The client repeats requests that arrive on an abandoned connection when it reconnects.
                break
            session.pause_flushing()
            session.last_received = node.loop.time()
            message = read(frame)
            if isinstance(message, Malformed):
                await _close_with_error(session, InvalidRequestError(message.reason))
                break
            if message.session_id is not None and message.session_id != session.id:
                await _close_with_error(session, InvalidRequestError("The frame belongs to another session"))
                break
            if session.unconfirmed:
                session.unconfirmed = False
                await OnFirstWait(node.sessions.confirm_token(session), session.resume_flushing)
            if submitting and message.type != "job.submit":
                # Let the submissions that arrived earlier start first.
                submitting = False
                await asyncio.sleep(0)
            if message.type == "job.submit" and node.notified:
                submitting = True
                node.spawn_bare(_submit_in_task(session, message))
            elif message.type == "job.submit":
                await OnFirstWait(_submit(session, message), start_next_reader, own_context=True)
                if replaced:
                    return
            else:
                handler = HANDLERS.get(message.type)
                if handler is not None:
                    await OnFirstWait(_handle(handler, session, message), session.resume_flushing)
            if session.full:
                session.resume_flushing()
                await session.wait_for_room()
    finally:
        if not replaced and not done.done():
            done.set_result(None)
        node.discard_current_task()


async def _submit_in_task(session: Session, message: Envelope) -> None:
    try:
        await _submit(session, message)
    finally:
        session.node.discard_current_task()


async def _submit(session: Session, message: Envelope) -> None:
    try:
        await _handle(submit, session, message)
    except Exception:  # noqa: BLE001 - no other task sees this failure, so the client is answered here
        _log.exception("session %s: the submission %s failed unexpectedly", session.id, message.id)
        session.send_message(
            "job.error", refusal(InternalError(), request_id=message.id), trace=message.trace_id
        )
    finally:
        session.unwritten_job = None


async def _handle(handler: Handler, session: Session, message: Envelope) -> None:
    """Serve a request; a failure is sent as a `job.error` that carries the request's id."""
    try:
        await handler(session, message)
    except ARCPError as error:
        session.send_message("job.error", refusal(error, request_id=message.id), trace=message.trace_id)
    except StoreError:
        _log.exception("session %s: the request %s failed because the store failed", session.id, message.id)
        session.send_message(
            "job.error", refusal(InternalError(), request_id=message.id), trace=message.trace_id
        )


async def _close_with_error(session: Session, error: FaultError) -> None:
    """Send `session.error` before the connection is closed; the session can be resumed."""
    session.resume_flushing()
    frame = write(envelope("session.error", refusal(error), session_id=session.id))
    try:
        async with asyncio.timeout(5):
            await session.connection.send(frame)
    except (ConnectionLost, TimeoutError):
        pass
