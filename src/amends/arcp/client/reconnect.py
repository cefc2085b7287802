"""Going back to a session whose connection is gone: how long, how often, and when it has been in vain."""

from __future__ import annotations

import asyncio
from random import random

from amends.arcp.client.handshake import Dial, Opened, open_session
from amends.arcp.client.session_faults import lost, window_over
from amends.arcp.client.settings import Settings
from amends.arcp.wire import messages as m
from amends.core.fault import Fault
from amends.errors.base import FaultError

__all__ = ["Comeback"]

_WINDOW = 600.0
"""Seconds, where the welcome names no window: v1.0's example."""
_LASTED = 10.0
"""Seconds after which a connection was worth its while, however quiet it was."""


class Comeback:
    """The tries of one session, counted from one connection that was worth its while to the next."""

    def __init__(self, dial: Dial, token: str | None, settings: Settings) -> None:
        self._dial = dial
        self._token = token
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._hurry = asyncio.Event()
        self._away_since = self._opened_at = 0.0
        self._tries = 0
        self.fruitful = True
        """Whether the connection has brought anything."""
        self.window = _WINDOW
        """Seconds within which the runtime takes the session up again."""

    def opened(self, welcome: m.Welcome) -> None:
        """There is a connection again, under these conditions."""
        if welcome.resume_window_sec is not None and welcome.resume_window_sec >= 0:
            self.window = welcome.resume_window_sec
        self._opened_at = self._loop.time()

    def hurry(self) -> None:
        """Somebody waits: the next try is due now."""
        self._hurry.set()

    async def back(self, resume: m.Resume, reason: str) -> Opened | Fault:
        """The session on a new connection; the fault when that cannot be, `reason` being why it was left."""
        policy = self._settings.resuming
        now = self._loop.time()
        if self.fruitful or now - self._opened_at > _LASTED:
            self._away_since, self._tries = now, 0
        # Else the last resumption brought nothing before it was lost: it counts as one more failed try, so that a
        # peer that welcomes and hangs up, or replays a frame too large to be read, is not gone back to for ever.
        self.fruitful = False
        patience = self.window
        if policy.max_wait is not None and self._settings.auto_resume:
            patience = min(patience, policy.max_wait)
        last = lost(reason)
        while True:
            self._tries += 1
            left = patience - (self._loop.time() - self._away_since)
            if left <= 0:
                return window_over(reason=reason) if patience >= self.window else last
            if policy.attempts is not None and self._tries > policy.attempts:
                return last
            wait = policy.backoff.jitter(policy.backoff.wait(self._tries), random())  # noqa: S311 - jitter
            called = await self._pause(min(left, wait) if self._settings.auto_resume else left)
            if not called and not self._settings.auto_resume:
                return window_over(reason=reason)
            try:
                opened = await open_session(self._dial, self._token, self._settings, resume)
            except FaultError as error:
                # Nobody there: try again. Refused: that is final.
                if error.fault.origin is None or error.fault.origin.path != "connection":
                    return error.fault
                last = error.fault
                continue
            if opened.session_id != resume.session_id:
                # It opened another session instead: what we wait for is not in it.
                await opened.connection.close()
                return window_over(reason="forgotten")
            return opened

    async def _pause(self, delay: float) -> bool:
        """Wait before a try; whether somebody is in a hurry, which ends the wait."""
        try:
            async with asyncio.timeout(delay):
                await self._hurry.wait()
        except TimeoutError:
            return False
        self._hurry.clear()
        return True
