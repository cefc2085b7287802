"""
The heartbeat of all sessions (section 6.4): one task pings idle sessions, closes connections that are dead or do not
read, and renews the rows of attached sessions.
"""

from __future__ import annotations

import asyncio
import logging

from amends.arcp.runtime.limits import Limits
from amends.arcp.runtime.server.session import Session
from amends.arcp.runtime.server.sessions import Sessions
from amends.arcp.wire import message_id, now_text
from amends.arcp.wire.messages import Error, Ping
from amends.stores import StoreError

__all__ = ["ping_sessions"]

_log = logging.getLogger("amends.arcp")


async def ping_sessions(sessions: Sessions, limits: Limits) -> None:
    """Check and renew all attached sessions, repeatedly and forever."""
    clock = asyncio.get_running_loop().time
    pause = min(limits.heartbeat / 4, limits.send_timeout / 4, limits.resume_window / 6, 5.0)
    renewed = clock()
    while True:
        await asyncio.sleep(pause)
        now = clock()
        renew = now - renewed >= limits.resume_window / 3
        if renew:
            renewed = now
        for session in list(sessions.attached.values()):
            try:
                await _check_session(session, limits, now)
                if renew and not session.closing:
                    await sessions.renew(session)
            except StoreError:
                _log.warning("session %s could not be renewed: the store failed", session.id)


async def _check_session(session: Session, limits: Limits, now: float) -> None:
    if session.sending_since is not None and now - session.sending_since > limits.send_timeout:
        _log.info("session %s does not read its messages: its connection is closed", session.id)
        await session.drop()
        return
    if "heartbeat" not in session.features or session.writer is None:
        return
    # Only an unanswered ping counts: without one, this process itself may have been suspended.
    unanswered = session.last_ping > session.last_received and now - session.last_ping >= limits.heartbeat
    if unanswered and now - session.last_received > 2 * limits.heartbeat:
        # The jobs continue (6.4), and the session can be resumed.
        _log.info("session %s sent nothing for two heartbeat intervals: its connection is closed", session.id)
        error = Error("HEARTBEAT_LOST", "No message arrived for two heartbeat intervals", retryable=True)
        session.send_message("session.error", error)
        await session.wait_until_flushed(1.0)
        await session.drop()
    elif now - max(session.last_ping, min(session.last_received, session.last_sent)) >= limits.heartbeat:
        session.last_ping = now
        session.send_message("session.ping", Ping(message_id(), now_text()))
