"""
One clock hand for all sessions (section 6.4): it pings the quiet, ends connections that are dead or do not read, and
keeps the rows of sessions that are in use.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from amends.arcp.wire import message_id, now_text
from amends.arcp.wire.messages import Error, Ping
from amends.stores import StoreError

if TYPE_CHECKING:
    from amends.arcp.runtime.node import Node
    from amends.arcp.runtime.session import Session

__all__ = ["beat"]

_log = logging.getLogger("amends.arcp")


async def beat(node: Node) -> None:
    """Go round for ever."""
    limits = node.limits
    pause = min(limits.heartbeat / 4, limits.send_timeout / 4, limits.resume_window / 6, 5.0)
    renewed = node.loop.time()
    while True:
        await asyncio.sleep(pause)
        now = node.loop.time()
        renew = now - renewed >= limits.resume_window / 3
        if renew:
            renewed = now
        for session in list(node.sessions.attached.values()):
            try:
                await _look(node, session, now)
                if renew and not session.closing:
                    await node.sessions.renew(session)
            except StoreError:
                _log.warning("session %s could not be renewed: the store fails", session.id)


async def _look(node: Node, session: Session, now: float) -> None:
    limits = node.limits
    if session.sending is not None and now - session.sending > limits.send_timeout:
        _log.info("session %s reads too slowly: its connection is closed", session.id)
        await node.drop(session)
        return
    if "heartbeat" not in session.features or session.writer is None:
        return
    # Nobody is given up who was not asked: it may be this process that was held up.
    asked = session.pinged > session.heard and now - session.pinged >= limits.heartbeat
    if asked and now - session.heard > 2 * limits.heartbeat:
        # Jobs go on (6.4); the session can be resumed.
        _log.info("session %s is silent: its connection is closed", session.id)
        error = Error("HEARTBEAT_LOST", "Nothing was heard for two intervals", retryable=True)
        session.say("session.error", error)
        await session.flushed(1.0)
        await node.drop(session)
    elif now - max(session.pinged, min(session.heard, session.sent)) >= limits.heartbeat:
        session.pinged = now
        session.say("session.ping", Ping(message_id(), now_text()))
