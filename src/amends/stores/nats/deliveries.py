"""What a consumer delivers: pulled by request, kept by whoever asked, handed back when he has gone."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from amends.stores.errors import StoreClosedError
from amends.stores.nats.answers import Answers, Inbox, header
from amends.stores.nats.refusal import NobodyThereError

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

    from amends.stores.nats.link import Link

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
        self._retiring: set[asyncio.Task[None]] = set()

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
                    if self._link.closed:
                        answers.arrived.append(message)
                        break
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
                if status is None and self._link.closed:
                    answers.arrived.append(message)
                    break
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
        if inbox.subscription is not None and not self._link.closed:
            task = asyncio.ensure_future(_unsubscribed(inbox.subscription))
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)

    async def _borrow(self) -> Inbox:
        if self._idle:
            inbox = self._idle.pop()
        else:
            inbox = Inbox(self._link, f"{self._link.inbox}d.{next(self._link.tokens)}")
            inbox.subscription = await self._link.client.subscribe(inbox.subject, cb=inbox.arrived)
        self._lent.add(inbox)
        return inbox

    async def leave(self, client: Client) -> None:
        """
        Take back what was asked for, and hand back what was delivered before the server had heard of it.

        A delivery that goes down with its connection would be nobody's until its time is up.
        """
        for inbox in list(self._lent):
            if inbox.subscription is not None:
                # Not the library's `drain`: it listens no longer once the server has heard, and a delivery that was
                # on its way then comes behind that answer.
                await client._send_unsubscribe(inbox.subscription._id)  # noqa: SLF001
        for _ in range(_TURNS):
            await client.flush()


async def _unsubscribed(subscription: Subscription) -> None:
    with contextlib.suppress(Exception):
        # Without a connection there is nothing to be said: it is not asked for anew.
        await subscription.unsubscribe()
