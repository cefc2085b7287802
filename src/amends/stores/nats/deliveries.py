"""What a consumer delivers: pulled by request, kept by whoever asked, handed back when he has gone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from amends.stores.errors import StoreClosedError
from amends.stores.nats.answers import Answers, Inbox, header
from amends.stores.nats.refusal import NobodyThereError

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from amends.stores.nats.link import Link

__all__ = ["Deliveries"]


class Deliveries:
    """Pull requests over one link, and the inboxes they borrow."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._idle: list[Inbox] = []

    async def many(
        self, subject: str, payload: bytes, batch: int, *, patience: float, expires: float
    ) -> AsyncGenerator[Msg, None]:
        """
        Up to `batch` deliveries of a consumer, for one pull request; heartbeats only prove that it lives.

        What arrives after the caller has gone is handed back.
        """
        await self._link.until_up(time.monotonic() + self._link.timeout, "no")
        inbox = await self._borrow()
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
                    yield message
                elif status != "100":
                    complete = True
            if self._link.closed:
                raise StoreClosedError(self._link.shown)
        finally:
            await self._give_back(inbox, answers, expires, complete=complete)

    async def one(self, subject: str, payload: bytes, *, patience: float, expires: float) -> Msg | None:
        """
        One delivery of a consumer, or None when there is none; `many` without its machinery, for takes.

        Raises:
            NobodyThereError: there is no such consumer.
        """
        if not self._link.up.is_set() or self._link.closed:
            await self._link.until_up(time.monotonic() + self._link.timeout, "no")
        inbox = await self._borrow()
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
                return message if status is None else None
            if self._link.closed:
                raise StoreClosedError(self._link.shown)
            return None
        finally:
            await self._give_back(inbox, answers, expires, complete=complete)

    async def _give_back(self, inbox: Inbox, answers: Answers, expires: float, *, complete: bool) -> None:
        del self._link.open[inbox.subject]
        inbox.answers = None
        for message in answers.arrived:
            await inbox.arrived(message)
        if complete:
            self._idle.append(inbox)
        elif not self._link.closed:
            # The request still stands at the server: keep the inbox until it has run out.
            asyncio.get_running_loop().call_later(expires + 1, self._idle.append, inbox)

    async def _borrow(self) -> Inbox:
        if self._idle:
            return self._idle.pop()
        inbox = Inbox(self._link, f"{self._link.inbox}d.{next(self._link.tokens)}")
        inbox.subscription = await self._link.client.subscribe(inbox.subject, cb=inbox.arrived)
        return inbox
