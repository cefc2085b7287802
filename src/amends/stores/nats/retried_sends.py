"""
Requests whose answer nobody waits for, and that are sent again until it has come.

For what is decided already and only has to be carried out: a finished task's message is to be removed, and should that
never arrive, whoever is given the message again finds it finished.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

from amends.stores.errors import StoreError
from amends.stores.nats.replies import Answers

if TYPE_CHECKING:
    from amends.stores.nats.connection import Link

__all__ = ["Errands"]

_PATIENCE = 2.0


class _Errand(Answers):
    """Forgets itself when its answer arrives."""

    __slots__ = ("errands", "payload", "since", "subject", "token")

    def __init__(self, errands: Errands, token: str, subject: str, payload: bytes) -> None:
        super().__init__()
        self.errands = errands
        self.token = token
        self.subject = subject
        self.payload = payload
        self.since = time.monotonic()

    def wake(self) -> None:
        if self.arrived:
            self.errands.over(self)


class Errands:
    """The errands of one link."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._open: set[_Errand] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None

    async def run(self, subject: str, payload: bytes) -> None:
        """Send it, and see to it that it arrives, for as long as a request may take."""
        errand = _Errand(self, str(next(self._link.tokens)), subject, payload)
        self._link.open[errand.token] = errand
        self._open.add(errand)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_PATIENCE, self._look)
        await self._send(errand)

    def over(self, errand: _Errand) -> None:
        """It has arrived, or is given up."""
        self._link.open.pop(errand.token, None)
        self._open.discard(errand)

    def stop(self) -> None:
        """The link is closed: it flushes what was sent, and nothing is sent again."""
        if self._timer is not None:
            self._timer.cancel()

    async def _send(self, errand: _Errand) -> None:
        # What cannot be sent now is sent later.
        if self._link.up.is_set():
            with contextlib.suppress(StoreError):
                await self._link.send(
                    errand.subject, errand.payload, f"{self._link.inbox}.{errand.token}", None
                )

    def _look(self) -> None:
        now = time.monotonic()
        for errand in [errand for errand in self._open if now - errand.since > self._link.timeout]:
            self.over(errand)
        late = [errand for errand in self._open if now - errand.since >= _PATIENCE]
        if late:
            self._sending = asyncio.ensure_future(self._send_all(late))
        self._timer = asyncio.get_running_loop().call_later(_PATIENCE, self._look) if self._open else None

    async def _send_all(self, errands: list[_Errand]) -> None:
        for errand in errands:
            await self._send(errand)
