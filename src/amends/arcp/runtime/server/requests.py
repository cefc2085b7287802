"""The handlers of all requests in a session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from amends.arcp.runtime.jobs.cancel import Cancellation
from amends.arcp.runtime.ledger import Ledger
from amends.arcp.runtime.server.feeds import SUBMITTED
from amends.arcp.runtime.server.job_listing import JobListing
from amends.arcp.runtime.server.session import Session
from amends.arcp.runtime.server.submissions import Submissions
from amends.arcp.wire import Envelope, Malformed, now_text, read_payload
from amends.arcp.wire.messages import Bye, Cancelled, Pong
from amends.errors.arcp import InvalidRequestError, JobNotFoundError, PermissionDeniedError

__all__ = ["Handler", "Requests"]

Handler = Callable[[Session, Envelope], Awaitable[None]]
"""
Serves one request.

Raises:
    ARCPError: sent to the client as the answer to the request.

"""


class Requests:
    """The handlers of one node by message type."""

    def __init__(
        self, ledger: Ledger, submissions: Submissions, listing: JobListing, cancellation: Cancellation
    ) -> None:
        self._ledger = ledger
        self._listing = listing
        self._cancellation = cancellation
        self.submit: Handler = submissions.submit
        """Serves `job.submit`; it runs until the job has ended, so it needs a task of its own."""
        self.handlers: dict[str, Handler] = {
            "session.ping": _ping,
            "session.ack": _ack,
            "session.list_jobs": _requires("list_jobs", listing.list_jobs),
            "session.close": _close,
            "session.bye": _close,
            "job.cancel": self._cancel,
            "job.subscribe": _requires("subscribe", listing.subscribe),
            "job.unsubscribe": _requires("subscribe", listing.unsubscribe),
        }
        """All other handlers. Unknown types, also of later protocol versions, are ignored (section 5)."""

    async def _cancel(self, session: Session, message: Envelope) -> None:
        request = read_payload(message)
        if isinstance(request, Malformed):
            raise InvalidRequestError(request.reason)
        job_id = message.job_id or request.job_id
        spec = None if job_id is None else await self._ledger.spec(job_id)
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


async def _ping(session: Session, message: Envelope) -> None:
    ping = read_payload(message)
    nonce = None if isinstance(ping, Malformed) else ping.nonce
    session.send_message("session.pong", Pong(nonce, now_text()))


async def _ack(session: Session, message: Envelope) -> None:
    ack = read_payload(message)
    if not isinstance(ack, Malformed):
        session.acknowledge(ack.last_processed_seq)


async def _close(session: Session, message: Envelope) -> None:
    """End the connection. Jobs continue, and the session can be resumed within its window (6.7)."""
    if message.type == "session.close":
        session.send_message("session.closed", Bye("client asked"))
        await session.wait_until_flushed()
    await session.drop()


def _requires(feature: str, handler: Handler) -> Handler:
    async def checked(session: Session, message: Envelope) -> None:
        if feature not in session.features:
            raise InvalidRequestError("The feature was not negotiated", details={"feature": feature})
        await handler(session, message)

    return checked
