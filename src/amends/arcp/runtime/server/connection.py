"""
Serve one connection from its first frame to its end: the handshake, then one request after another.

After the handshake every error answers the request that caused it, with that request's id, and the connection goes on.
Only a malformed frame, a hello in an open session or a frame for another session end the connection, with
`session.error` (S5).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from amends.arcp.runtime.cluster.quota import Capacity
from amends.arcp.runtime.jobs.answers import Answers, read_steps
from amends.arcp.runtime.jobs.cancel import Cancellation
from amends.arcp.runtime.jobs.outcome import refusal
from amends.arcp.runtime.jobs.running import RunningJobs
from amends.arcp.runtime.jobs.signals import Signals
from amends.arcp.runtime.jobs.submit import Submissions
from amends.arcp.runtime.server.handshake import Handshake, Handshakes
from amends.arcp.runtime.server.job_listing import JobListing
from amends.arcp.runtime.server.peers import Refusal, use_specified_code
from amends.arcp.runtime.server.session import SUBMITTED, Session
from amends.arcp.runtime.server.sessions import Sessions
from amends.arcp.transports import Connection, ConnectionLost
from amends.arcp.wire import STEPS, Envelope, Malformed, envelope, new_id, now_text, read, read_payload, write
from amends.arcp.wire.messages import AboutJob, Ack, Bye, Cancel, Cancelled, Ping, Pong, StepList
from amends.errors import FaultError
from amends.errors.arcp import (
    ARCPError,
    InternalError,
    InvalidRequestError,
    JobNotFoundError,
    PermissionDeniedError,
)
from amends.logs import logger

__all__ = ["Handler", "Server"]

_log = logger("amends.arcp")
_audit = logger("amends.arcp.audit")
_POLICY, _TRY_LATER = 1008, 1013


@dataclass(eq=False)
class Server:
    """Serves the connections of one node."""

    _jobs: RunningJobs
    _capacity: Capacity
    _sessions: Sessions
    _handshake: Handshake
    _submissions: Submissions
    _listing: JobListing
    _cancellation: Cancellation
    _signals: Signals
    _answers: Answers

    def __post_init__(self) -> None:
        self.handshakes = Handshakes(self._jobs.limits, self._jobs.tasks)
        """Connections that have no session yet."""
        self._handlers: dict[str, Handler] = {
            "session.ping": _ping,
            "session.ack": _ack,
            "session.list_jobs": _requires("list_jobs", self._listing.list_jobs),
            "session.close": _close,
            "session.bye": _close,
            "job.cancel": self._cancel,
            "job.subscribe": _requires("subscribe", self._listing.subscribe),
            "job.unsubscribe": _requires("subscribe", self._listing.unsubscribe),
            "x-vendor.amends.job": _requires(STEPS, self._about_job),
        }
        """By message type; `job.submit` gets a task. Unknown types, also of later versions, are ignored (section 5)."""

    async def serve(self, connection: Connection) -> None:
        """Run one connection to its end."""
        waiting = None if self._capacity.draining else self.handshakes.enter(connection)
        if waiting is None:
            await connection.close(_TRY_LATER, "")
            return
        try:
            session = await self._handshake.open_session(connection, lambda: self.handshakes.spoke(waiting))
        finally:
            self.handshakes.leave(waiting)
        if session is None:
            await connection.close(_TRY_LATER if waiting.silent else _POLICY, "")
            return
        try:
            await self._serve_requests(session)
        finally:
            await session.drop()

    async def _serve_requests(self, session: Session) -> None:
        """
        Serve one request after another until the connection ends.

        Each submission gets a task, in which its agent runs too, so no request waits for a job. Submissions that arrived
        together start in one turn of the event loop and share their writes. Other requests are served here.
        """
        other: Envelope | Malformed | None = None

        def take(frame: str | bytes) -> bool:
            nonlocal other
            if session.closing:
                # The client repeats requests that arrive on an abandoned connection when it reconnects.
                return False
            session.last_received = self._jobs.tasks.loop.time()
            message = read(frame)
            if (
                isinstance(message, Malformed)
                or message.type != "job.submit"
                or message.session_id not in {None, session.id}
                or session.unconfirmed
            ):
                other = message
                return False
            self._start_submission(session, message)
            return not session.full

        while not session.closing and await session.connection.receive_into(take):
            message, other = other, None
            if message is not None and not await self._serve_request(session, message):
                return
            if session.full:
                await session.wait_for_room()

    async def _serve_request(self, session: Session, message: Envelope | Malformed) -> bool:
        """Serve one request. Returns False if the connection has to be closed."""
        if isinstance(message, Malformed):
            await _close_with_error(session, InvalidRequestError(message.reason))
            return False
        if message.session_id is not None and message.session_id != session.id:
            await _close_with_error(session, InvalidRequestError("The frame belongs to another session"))
            return False
        if message.type in _HELLOS:
            await _close_with_error(session, InvalidRequestError("The connection already has a session"))
            return False
        if session.unconfirmed:
            session.unconfirmed = False
            await self._sessions.confirm_token(session)
        if message.type == "job.submit":
            self._start_submission(session, message)
            return True
        # Let the submissions that arrived earlier start first.
        await asyncio.sleep(0)
        handler = self._handlers.get(message.type)
        if handler is not None:
            await _handle(handler, session, message, read_payload(message))
        return True

    def _start_submission(self, session: Session, message: Envelope) -> None:
        submit = self._submissions.submit
        self._jobs.tasks.spawn(_handle(submit, session, message, read_payload(message)))
        # Behind the task's first step, so that an answer of that step is sent in the same turn of the loop.
        session.flush_soon()

    async def _cancel(self, session: Session, message: Envelope, request: Cancel) -> None:
        job_id = message.job_id or request.job_id
        spec = None if job_id is None else await self._jobs.ledger.spec(job_id)
        if spec is None or not await self._listing.may_observe(session.principal, spec.principal):
            raise JobNotFoundError
        feed = session.feeds.get(spec.job_id)
        submitted = spec.session == session.id or (feed is not None and feed.mode & SUBMITTED)
        if spec.principal != session.principal or not submitted:
            raise PermissionDeniedError(
                "Only the session that submitted a job may cancel it", details={"job_id": job_id}
            )
        await self._cancellation.cancel(spec, request.reason)
        session.send_message(
            "job.cancelled", Cancelled(spec.job_id, message.id), job_id=spec.job_id, trace=spec.trace
        )

    async def _about_job(self, session: Session, message: Envelope, request: AboutJob) -> None:
        """Serve a signal, an answer, or a request for the steps of a job. Signals and answers need the job's owner."""
        ledger = self._jobs.ledger
        spec = await ledger.spec(request.job_id)
        if spec is None or not await self._listing.may_observe(session.principal, spec.principal):
            raise JobNotFoundError
        counted = None
        if request.signal is not None or request.step is not None:
            if spec.principal != session.principal:
                raise PermissionDeniedError(
                    "Only the owner of a job may send it signals and answers", details={"job_id": spec.job_id}
                )
            author = session.principal
            if request.signal is not None:
                counted = await self._signals.send(
                    spec, request.id or message.id, request.signal, request.value, author
                )
            else:
                if request.happened is None:
                    raise InvalidRequestError(
                        "The answer says whether it happened", details={"field": "happened"}
                    )
                await self._answers.answer(spec, request.step or "", request.happened, request.value, author)
            _audit.info(
                "%s by %s to %s", "signal" if request.signal is not None else "answer", author, spec.job_id
            )
        steps = [msgspec.to_builtins(step) for step in await read_steps(ledger, spec.job_id)]
        session.send_message(
            "x-vendor.amends.steps", StepList(spec.job_id, message.id, steps, counted), trace=spec.trace
        )


async def _handle(handler: Handler, session: Session, message: Envelope, request: object) -> None:
    """Serve a request; a failure is sent as a `job.error` that carries the request's id."""
    if session.closing:
        # The client repeats the request when it reconnects.
        return
    if isinstance(request, Malformed) and message.type not in _NEVER_REFUSED:
        _refuse(session, message, request, InvalidRequestError(request.reason))
        return
    try:
        await handler(session, message, request)
    except ARCPError as error:
        _refuse(session, message, request, error)
    except Exception:  # noqa: BLE001 - of the store, or unexpected; the client is answered in any case
        _log.exception("session %s: the request %s failed", session.id, message.id)
        _refuse(session, message, request, InternalError())


def _refuse(session: Session, message: Envelope, request: object, error: ARCPError) -> None:
    """Answer a request with a failure, in the form that the client of the session's SDK matches to its request."""
    job_id: str | None = message.job_id or getattr(request, "job_id", None)
    peer = session.peer
    if peer.refusal is Refusal.ACCEPTED_THEN_ERROR and message.type in _ANSWERS:
        _accept_and_fail(session, message, getattr(request, "agent", None), error, job_id or new_id("job"))
        return
    payload = msgspec.to_builtins(refusal(error, request_id=message.id))
    if peer.specified_codes:
        use_specified_code(payload)
    if peer.refusal is Refusal.SESSION_ERROR:
        # Without the id of a job, which would end the job for a refused cancellation.
        session.send_message("session.error", payload, trace=message.trace_id)
        return
    if peer.refusal is Refusal.JOB_ERROR_OF_A_JOB and message.type == "job.submit":
        job_id = new_id("job")
    id = None if job_id else message.id
    session.send_message("job.error", payload, job_id=job_id, trace=message.trace_id, id=id)


def _accept_and_fail(
    session: Session, message: Envelope, agent: str | None, error: ARCPError, job_id: str
) -> None:
    """
    Refuse a request of a client that reads `job.error` only as the end of a job that it knows.

    A submission and a subscription are answered, and the job ends with the error; without that the client would wait, for
    the second one for ever. It does not wait for the answer to a cancellation, which must not end a job that it follows.
    """
    if message.type != "job.cancel":
        facts: dict[str, object] = {"job_id": job_id, "request_id": message.id, "lease": {}}
        facts["agent"] = agent or "unknown"
        more = {"accepted_at": now_text(), "current_status": "error", "subscribed_from": 0, "replayed": False}
        session.send_message(_ANSWERS[message.type], facts | more, job_id=job_id, trace=message.trace_id)
        end = partial(session.send_message, job_id=job_id, trace=message.trace_id)
        payload = msgspec.to_builtins(refusal(error, of_job=True))
        if session.peer.specified_codes:
            use_specified_code(payload)
        asyncio.get_running_loop().call_later(_ANSWER_SEEN, end, "job.error", payload)


_ANSWERS = {"job.submit": "job.accepted", "job.subscribe": "job.subscribed", "job.cancel": ""}
_ANSWER_SEEN = 0.1
"""Seconds after which the client has read an answer."""


async def _close_with_error(session: Session, error: FaultError) -> None:
    """Send `session.error` before the connection is closed; the session can be resumed."""
    frame = write(envelope("session.error", refusal(error), session_id=session.id))
    try:
        async with asyncio.timeout(5):
            await session.connection.send(frame)
    except (ConnectionLost, TimeoutError):
        pass


_HELLOS = frozenset({"session.hello", "session.resume"})
_NEVER_REFUSED = frozenset({"session.ping", "session.ack", "session.close", "session.bye"})
"""Messages that are served even if their payload cannot be read."""

Handler = Callable[[Session, Envelope, Any], Awaitable[None]]
"""
Serves one request: the session, the message and its payload.

Raises:
    ARCPError: sent to the client as the answer to the request.

"""


async def _ping(session: Session, message: Envelope, ping: Ping | Malformed) -> None:
    nonce = None if isinstance(ping, Malformed) else ping.nonce
    session.send_message("session.pong", Pong(nonce, now_text()))


async def _ack(session: Session, message: Envelope, ack: Ack | Malformed) -> None:
    if not isinstance(ack, Malformed):
        session.acknowledge(ack.last_processed_seq)


async def _close(session: Session, message: Envelope, request: object) -> None:
    """End the connection. Jobs continue, and the session can be resumed within its window (6.7)."""
    if message.type == "session.close":
        session.send_message("session.closed", Bye("client asked"))
        await session.wait_until_flushed()
    await session.drop()


def _requires(feature: str, handler: Handler) -> Handler:
    async def checked(session: Session, message: Envelope, request: object) -> None:
        if feature not in session.features:
            raise InvalidRequestError("The feature was not negotiated", details={"feature": feature})
        await handler(session, message, request)

    return checked
