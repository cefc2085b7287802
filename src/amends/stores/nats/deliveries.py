"""What a consumer delivers: pulled by request, kept by whoever asked, handed back when he has gone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from amends.stores.errors import StoreClosedError
from amends.stores.nats.api_errors import NobodyThereError
from amends.stores.nats.replies import Answers, Inbox, header

if TYPE_CHECKING:
    from nats.aio.client import Client

    from amends.stores.nats.connection import Link
    from amends.stores.nats.wire import RawMessage

__all__ = ["Deliveries"]

_TURNS = 3
"""Exchanges with the server before a connection is closed: it has heard; what was on its way has come; that is handed back."""
_LATE = 30.0
"""Seconds for which what was asked for in vain is still handed back at once; later, when its time is up."""


class Deliveries:
    """Pull requests over one link, and the inboxes they borrow."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._idle: list[Inbox] = []
        self._lent: set[Inbox] = set()
        """At these the server may still deliver."""

    async def many(
        self,
        subject: str,
        payload: bytes,
        batch: int,
        *,
        patience: float,
        expires: float,
        ended: list[str] | None = None,
    ) -> AsyncGenerator[RawMessage, None]:
        """
        Up to `batch` deliveries of a consumer, for one pull request; heartbeats only prove that it lives.

        What arrives after the caller has gone is handed back. `ended` is told with which status the server ended it.
        """
        await self._link.until_up(time.monotonic() + self._link.timeout, "no")
        inbox = self._borrow()
        answers = inbox.answers = self._link.open[inbox.subject] = Answers()
        complete = False
        try:
            if not await self._link.send(subject, payload, inbox.subject, None):
                return
            while not complete and (message := await answers.next(patience)) is not None:
                status = header(message, "Status")
                if status is None:
                    batch -= 1
                    complete = batch == 0
                    if self._link.closed:
                        answers.arrived.append(message)
                        break
                    yield message
                elif status != "100":
                    complete = True
                    if ended is not None:
                        ended.append(status)
            if self._link.closed:
                raise StoreClosedError(self._link.shown)
        finally:
            self._give_back(inbox, answers, expires, complete=complete)

    async def one(
        self, subject: str, payload: bytes, *, patience: float, expires: float
    ) -> RawMessage | None:
        """
        One delivery of a consumer, or None when there is none; `many` without its machinery, for takes.

        Raises:
            NobodyThereError: there is no such consumer.
        """
        if not self._link.up.is_set() or self._link.closed:
            await self._link.until_up(time.monotonic() + self._link.timeout, "no")
        inbox = self._borrow()
        answers = inbox.answers = self._link.open[inbox.subject] = Answers()
        complete = False
        try:
            if not await self._link.send(subject, payload, inbox.subject, None):
                return None
            while (message := await answers.next(patience)) is not None:
                status = header(message, "Status")
                if status == "100":
                    continue
                complete = True
                if status == "503":
                    raise NobodyThereError(subject)
                if status is None and self._link.closed:
                    answers.arrived.append(message)
                    break
                return message if status is None else None
            if self._link.closed:
                raise StoreClosedError(self._link.shown)
            return None
        finally:
            self._give_back(inbox, answers, expires, complete=complete)

    def _give_back(self, inbox: Inbox, answers: Answers, expires: float, *, complete: bool) -> None:
        del self._link.open[inbox.subject]
        inbox.answers = None
        for message in answers.arrived:
            inbox.arrived(message)
        if complete:
            self._returned(inbox)
        elif not self._link.closed:
            # The request still stands at the server, and its answer may hang in the wire for longer than that: lent again,
            # the inbox would bring it to somebody who has asked for something else.
            asyncio.get_running_loop().call_later(expires + _LATE, self._retire, inbox)

    def _returned(self, inbox: Inbox) -> None:
        self._lent.discard(inbox)
        self._idle.append(inbox)

    def _retire(self, inbox: Inbox) -> None:
        self._lent.discard(inbox)
        if not self._link.closed:
            self._link.wire.unhear(inbox.number)

    def _borrow(self) -> Inbox:
        if self._idle:
            inbox = self._idle.pop()
        else:
            inbox = Inbox(self._link, f"{self._link.inbox}d.{next(self._link.tokens)}")
            inbox.number = self._link.wire.hear(inbox.subject, inbox.arrived)
        self._lent.add(inbox)
        return inbox

    async def leave(self, client: Client) -> None:
        """
        Take back what was asked for, and hand back what was delivered before the server had heard of it.

        A delivery that goes down with its connection would be nobody's until its time is up.
        """
        for inbox in list(self._lent):
            # Still heard here: a delivery that was on its way comes before or behind the server's next answer.
            await client._send_unsubscribe(inbox.number)  # noqa: SLF001
        for _ in range(_TURNS):
            await client.flush()
