"""What can be asked in a session beside a job, one function each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from amends.arcp.runtime.cancel import cancel
from amends.arcp.runtime.feeds import SUBMITTED
from amends.arcp.runtime.job_listing import listed, may_observe, subscribe, unsubscribe
from amends.arcp.wire import Envelope, Malformed, now_text, read_payload
from amends.arcp.wire.messages import Bye, Cancelled, Pong
from amends.errors.arcp import InvalidRequestError, JobNotFoundError, PermissionDeniedError

if TYPE_CHECKING:
    from amends.arcp.runtime.session import Session

__all__ = ["HANDLERS", "Handler"]

Handler = Callable[["Session", Envelope], Awaitable[None]]
"""
Serves one request.

Raises:
    ARCPError: what whoever asked is told, under the request's name.

"""


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


def _needs(feature: str, handler: Handler) -> Handler:
    async def served(session: Session, message: Envelope) -> None:
        if feature not in session.features:
            raise InvalidRequestError("The feature was not negotiated", details={"feature": feature})
        await handler(session, message)

    return served


HANDLERS: dict[str, Handler] = {
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
