"""Resume a session after its connection was lost: how often, for how long, and when to give up."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import random

from amends.arcp.client.dial import Dial
from amends.arcp.client.handshake import OpenedSession, open_session
from amends.arcp.client.session_faults import as_transient, connection_lost, resume_expired
from amends.arcp.client.settings import Settings
from amends.arcp.wire import messages as m
from amends.core.fault import Fault
from amends.errors.base import FaultError
from amends.logs import logger

__all__ = ["Reconnect"]

_log = logger("amends.arcp")

_WINDOW = 600.0
"""Seconds, if the welcome contains no window: the example in v1.0."""
_STABLE_AFTER = 10.0
"""Seconds after which a connection counts as useful even if nothing was received over it."""


@dataclass(eq=False)
class Reconnect:
    """The attempts to resume one session, counted since its last useful connection."""

    _dial: Dial
    _token: str | None
    _settings: Settings
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _retry_now: asyncio.Event = field(default_factory=asyncio.Event)
    _lost_at: float = 0.0
    _opened_at: float = 0.0
    _tries: int = 0
    received_anything: bool = True
    """Whether anything was received over the connection."""
    window: float = _WINDOW
    """Seconds within which the runtime allows the session to be resumed."""

    def connected(self, welcome: m.Welcome) -> None:
        """Record a new connection and the window in its welcome."""
        if welcome.resume_window_sec is not None and welcome.resume_window_sec >= 0:
            self.window = welcome.resume_window_sec
        self._opened_at = self._loop.time()

    def retry_now(self) -> None:
        """Start the next attempt without waiting."""
        self._retry_now.set()

    async def resume(self, resume: m.Resume, reason: str) -> OpenedSession | Fault:
        """Resume the session on a new connection; returns the fault if that fails. `reason` is why the old one was left."""
        policy = self._settings.resuming
        now = self._loop.time()
        if self.received_anything or now - self._opened_at > _STABLE_AFTER:
            self._lost_at, self._tries = now, 0
        # Otherwise the last resumption was lost before anything was received. It counts as a failed attempt, so that the
        # client stops if a peer always disconnects after its welcome, or replays a frame that is too large to read.
        self.received_anything = False
        limit = self.window
        if policy.max_wait is not None and self._settings.auto_resume:
            limit = min(limit, policy.max_wait)
        last, asked_from = connection_lost(reason), resume.last_event_seq
        while True:
            self._tries += 1
            left = limit - (self._loop.time() - self._lost_at)
            if left <= 0:
                # The runtime was not reached, so it is unknown whether it still has the session.
                return as_transient(last)
            if policy.attempts is not None and self._tries > policy.attempts:
                return as_transient(last)
            wait = policy.backoff.jitter(policy.backoff.wait(self._tries), random())  # noqa: S311 - jitter
            wait = max(wait, last.retry_after or 0.0)
            requested = await self._pause(min(left, wait) if self._settings.auto_resume else left)
            if not requested and not self._settings.auto_resume:
                # The caller did not resume within the runtime's window.
                return resume_expired(reason=reason)
            try:
                opened = await open_session(self._dial, self._token, self._settings, resume)
            except FaultError as error:
                if error.code == "RESUME_WINDOW_EXPIRED" and resume.last_event_seq == asked_from > 0:
                    # The runtime of the TypeScript SDK rejects a session without an event to replay: ask for the last one.
                    resume = m.Resume(resume.session_id, resume.resume_token, asked_from - 1)
                    self._retry_now.set()
                    continue
                # Unreachable: try again. Rejected by the runtime: that is final.
                if error.fault.origin is None or error.fault.origin.path != "connection":
                    return error.fault
                last = error.fault
                continue
            if opened.session_id != resume.session_id:
                # The runtime opened another session, which does not have this one's jobs.
                await opened.connection.close()
                return resume_expired(reason="forgotten")
            _log.info(
                "session resumed on a new connection after %.1f s, try %d",
                self._loop.time() - self._lost_at,
                self._tries,
            )
            return opened

    async def _pause(self, delay: float) -> bool:
        """Wait before an attempt; returns True if `retry_now` ended the wait."""
        try:
            async with asyncio.timeout(delay):
                await self._retry_now.wait()
        except TimeoutError:
            return False
        self._retry_now.clear()
        return True
