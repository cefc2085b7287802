"""The handlers of all requests in a session except `job.submit`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from amends.arcp.runtime.jobs.cancel import cancel
from amends.arcp.runtime.server.feeds import SUBMITTED
from amends.arcp.runtime.server.job_listing import list_jobs, may_observe, subscribe, unsubscribe
from amends.arcp.wire import Envelope, Malformed, now_text, read_payload
from amends.arcp.wire.messages import Bye, Cancelled, Pong
from amends.errors.arcp import InvalidRequestError, JobNotFoundError, PermissionDeniedError

if TYPE_CHECKING:
    from amends.arcp.runtime.server.session import Session

__all__ = ["HANDLERS", "Handler"]

Handler = Callable[["Session", Envelope], Awaitable[None]]
"""
Serves one request.

Raises:
    ARCPError: sent to the client as the answer to the request.

"""


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
    await session.node.drop(session)


async def _cancel(session: Session, message: Envelope) -> None:
    request = read_payload(message)
    if isinstance(request, Malformed):
        raise InvalidRequestError(request.reason)
    job_id = message.job_id or request.job_id
    node = session.node
    spec = None if job_id is None else await node.ledger.spec(job_id)
    if spec is None or not await may_observe(node, session.principal, spec.principal):
        raise JobNotFoundError
    feed = session.feeds.get(spec.job_id)
    submitted = spec.session == session.id or (feed is not None and feed.mode & SUBMITTED)
    if spec.principal != session.principal or not submitted:
        raise PermissionDeniedError(
            "Only the session that submitted a job may cancel it", details={"job_id": job_id}
        )
    await cancel(node, spec, request.reason)
    session.send_message(
        "job.cancelled", Cancelled(spec.job_id, message.id), job_id=spec.job_id, trace=spec.trace
    )


def _requires(feature: str, handler: Handler) -> Handler:
    async def checked(session: Session, message: Envelope) -> None:
        if feature not in session.features:
            raise InvalidRequestError("The feature was not negotiated", details={"feature": feature})
        await handler(session, message)

    return checked


HANDLERS: dict[str, Handler] = {
    "session.ping": _ping,
    "session.ack": _ack,
    "session.list_jobs": _requires("list_jobs", list_jobs),
    "session.close": _close,
    "session.bye": _close,
    "job.cancel": _cancel,
    "job.subscribe": _requires("subscribe", subscribe),
    "job.unsubscribe": _requires("subscribe", unsubscribe),
}
"""The handlers by message type. Unknown types, also of later protocol versions, are ignored (section 5)."""
