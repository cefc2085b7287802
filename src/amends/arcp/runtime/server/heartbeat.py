"""
The heartbeat of all sessions (section 6.4): one task pings idle sessions and closes connections that are dead or do not read;
another renews the rows of attached sessions.

The first task never waits for the store or for a client, so that no dead connection delays the heartbeats of the others.
"""

from __future__ import annotations

import asyncio

from amends.arcp.runtime.limits import Limits
from amends.arcp.runtime.server.session import Session
from amends.arcp.runtime.server.sessions import Sessions
from amends.arcp.runtime.tasks import Tasks
from amends.arcp.wire import message_id, now_text
from amends.arcp.wire.messages import Error, Ping
from amends.logs import logger
from amends.stores import StoreError

__all__ = ["ping_sessions", "renew_sessions"]

_log = logger("amends.arcp")


async def ping_sessions(sessions: Sessions, limits: Limits, tasks: Tasks) -> None:
    """Check all attached sessions, repeatedly and forever."""
    clock = tasks.loop.time
    pause = min(limits.heartbeat / 4, limits.send_timeout / 4, 5.0)
    given_up: dict[Session, asyncio.Task[None]] = {}
    while True:
        await asyncio.sleep(pause)
        now = clock()
        given_up = {session: task for session, task in given_up.items() if not task.done()}
        for session in sessions.attached.values():
            if session in given_up:
                continue
            if session.sending_since is not None and now - session.sending_since > limits.send_timeout:
                _log.info("session %s does not read its messages: its connection is closed", session.id)
                given_up[session] = tasks.spawn(session.drop())
            elif "heartbeat" in session.features and session.writer is not None:
                if _is_silent(session, limits, now):
                    given_up[session] = tasks.spawn(_give_up_silent(session))
                else:
                    _ping_if_idle(session, limits, now)


def _is_silent(session: Session, limits: Limits, now: float) -> bool:
    # Only an unanswered ping counts: without one, this process itself may have been suspended.
    unanswered = session.last_ping > session.last_received and now - session.last_ping >= limits.heartbeat
    return unanswered and now - session.last_received > 2 * limits.heartbeat


async def _give_up_silent(session: Session) -> None:
    """Close the connection of a silent session. The jobs continue (6.4), and the session can be resumed."""
    _log.info("session %s sent nothing for two heartbeat intervals: its connection is closed", session.id)
    error = Error("HEARTBEAT_LOST", "No message arrived for two heartbeat intervals", retryable=True)
    session.send_message("session.error", error)
    await session.wait_until_flushed(1.0)
    await session.drop()


def _ping_if_idle(session: Session, limits: Limits, now: float) -> None:
    if now - max(session.last_ping, min(session.last_received, session.last_sent)) >= limits.heartbeat:
        session.last_ping = now
        session.send_message("session.ping", Ping(message_id(), now_text()))


async def renew_sessions(sessions: Sessions, limits: Limits) -> None:
    """Extend all attached sessions, repeatedly and forever, so that they do not expire while they have a connection."""
    while True:
        await asyncio.sleep(limits.resume_window / 3)
        for session in list(sessions.attached.values()):
            if session.closing:
                continue
            try:
                await sessions.renew(session)
            except StoreError:
                _log.warning("session %s could not be renewed: the store failed", session.id)
