"""
Serve one connection from its first frame to its end: the handshake, then one request after another.

After the handshake every error answers the request that caused it, with that request's id, and the connection goes on.
Only a malformed frame, a hello in an open session or a frame for another session end the connection, with
`session.error` (S5).
"""

from __future__ import annotations

import asyncio
import logging

from amends.arcp.runtime.cluster.capacity import Capacity
from amends.arcp.runtime.limits import Limits
from amends.arcp.runtime.server.handshake import Handshake
from amends.arcp.runtime.server.handshakes import Handshakes
from amends.arcp.runtime.server.refusals import refusal
from amends.arcp.runtime.server.requests import Handler, Requests
from amends.arcp.runtime.server.session import Session
from amends.arcp.runtime.server.sessions import Sessions
from amends.arcp.runtime.tasks import Tasks
from amends.arcp.transports import Connection, ConnectionLost
from amends.arcp.wire import Envelope, Malformed, envelope, new_id, read, read_payload, write
from amends.errors import FaultError
from amends.errors.arcp import ARCPError, InternalError, InvalidRequestError
from amends.stores import StoreError

__all__ = ["Server"]

_log = logging.getLogger("amends.arcp")
_POLICY, _TRY_LATER = 1008, 1013


class Server:
    """Serves the connections of one node."""

    def __init__(
        self,
        limits: Limits,
        tasks: Tasks,
        capacity: Capacity,
        sessions: Sessions,
        handshake: Handshake,
        requests: Requests,
    ) -> None:
        self._tasks = tasks
        self._capacity = capacity
        self._sessions = sessions
        self._handshake = handshake
        self._requests = requests
        self.handshakes = Handshakes(limits)
        """Connections that have no session yet."""

    async def serve(self, connection: Connection) -> None:
        """Run one connection to its end."""
        waiting = None if self._capacity.draining else await self.handshakes.enter(connection)
        if waiting is None:
            await connection.close(_TRY_LATER, "")
            return
        try:
            session = await self._handshake.open_session(connection, lambda: self.handshakes.spoke(waiting))
        finally:
            self.handshakes.leave(waiting)
        if session is None:
            await connection.close(_TRY_LATER if waiting.dropped else _POLICY, "")
            return
        try:
            await self._serve_requests(session)
        finally:
            await session.drop()

    async def _serve_requests(self, session: Session) -> None:
        """
        Serve one request after another until the connection ends.

        Each submission gets a task, in which its agent runs too, so no request waits for a job. Submissions that arrived
        together start in one turn of the event loop and share their writes.
        """
        submitting = False
        while not session.closing:
            frame = await session.connection.receive()
            if frame is None or session.closing:
                # The client repeats requests that arrive on an abandoned connection when it reconnects.
                return
            session.last_received = self._tasks.loop.time()
            message = read(frame)
            if isinstance(message, Malformed):
                await _close_with_error(session, InvalidRequestError(message.reason))
                return
            if message.session_id is not None and message.session_id != session.id:
                await _close_with_error(session, InvalidRequestError("The frame belongs to another session"))
                return
            if session.unconfirmed:
                session.unconfirmed = False
                await self._sessions.confirm_token(session)
            if message.type == "job.submit":
                submitting = True
                self._tasks.spawn(self._submit(session, message))
            else:
                if submitting:
                    # Let the submissions that arrived earlier start first.
                    submitting = False
                    await asyncio.sleep(0)
                handler = self._requests.handlers.get(message.type)
                if handler is not None:
                    await _handle(handler, session, message)
            if session.full:
                await session.wait_for_room()

    async def _submit(self, session: Session, message: Envelope) -> None:
        if session.closing:
            # The client repeats the request when it reconnects.
            return
        try:
            await _handle(self._requests.submit, session, message)
        except Exception:  # noqa: BLE001 - no other task sees this failure, so the client is answered here
            _log.exception("session %s: the submission %s failed unexpectedly", session.id, message.id)
            _refuse(session, message, InternalError())


async def _handle(handler: Handler, session: Session, message: Envelope) -> None:
    """Serve a request; a failure is sent as a `job.error` that carries the request's id."""
    try:
        await handler(session, message)
    except ARCPError as error:
        _refuse(session, message, error)
    except StoreError:
        _log.exception("session %s: the request %s failed because the store failed", session.id, message.id)
        _refuse(session, message, InternalError())


def _refuse(session: Session, message: Envelope, error: ARCPError) -> None:
    payload = refusal(error, request_id=message.id)
    session.send_message("job.error", payload, job_id=_job_of(message), trace=message.trace_id)


def _job_of(message: Envelope) -> str | None:
    """Return the job that a refused request is about. A refused submission gets an id that no job has, for clients that
    look for one.
    """
    if message.type == "job.submit":
        return new_id("job")
    return message.job_id or getattr(read_payload(message), "job_id", None)


async def _close_with_error(session: Session, error: FaultError) -> None:
    """Send `session.error` before the connection is closed; the session can be resumed."""
    frame = write(envelope("session.error", refusal(error), session_id=session.id))
    try:
        async with asyncio.timeout(5):
            await session.connection.send(frame)
    except (ConnectionLost, TimeoutError):
        pass
