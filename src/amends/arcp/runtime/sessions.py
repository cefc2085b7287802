"""
Opening and resuming sessions: who may, with which token, and how many.

A resume token has 256 random bits and is kept as a digest. Every welcome carries a new one. The one before works until
the client has sent anything on the new connection: a welcome that was lost on the way must not lock its client out.
After that the old one is worth nothing.

Resuming is one compare-and-set on the session's row (who), then an entry in its log (where): see `resumption`.
"""

from __future__ import annotations

import secrets
from hashlib import sha256
from hmac import compare_digest
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from amends.arcp.runtime.entries import SESSIONS, SessionRow, encode, session_log
from amends.arcp.runtime.feeds import Feed
from amends.arcp.runtime.resumption import check, fence, find
from amends.arcp.runtime.session import Session
from amends.arcp.transports import Connection
from amends.arcp.wire import new_id
from amends.arcp.wire.messages import Resume
from amends.errors.arcp import (
    ARCPError,
    InternalError,
    ResumeWindowExpiredError,
    UnauthenticatedError,
)
from amends.stores import ConflictError

if TYPE_CHECKING:
    from amends.arcp.runtime.node import Node

__all__ = ["Sessions"]

_read_row = msgspec.json.Decoder(SessionRow).decode
_TRIES = 8


class Sessions:
    """The sessions of one node: those with a connection, and those that can be resumed."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._rows = node.store.table(SESSIONS)
        self.attached: dict[str, Session] = {}
        self._left: dict[str, tuple[str, float]] = {}
        """Sessions without a connection: their principal, and until when they are kept."""
        self._counts: dict[str, int] = {}

    # -- beginning

    async def open(
        self, principal: str, features: frozenset[str], connection: Connection
    ) -> tuple[Session, str]:
        """
        A new session, and its resume token.

        Raises:
            InternalError: the principal has too many.

        """
        await self._admit(principal)
        session_id, token = new_id("sess"), secrets.token_urlsafe(32)
        row = SessionRow(
            principal=principal, token=_digest(token), features=tuple(sorted(features)), node=self._node.id
        )
        session = Session(self._node, session_id, principal, features, connection)
        session.row = row
        session.revision = await self._rows.create(
            session_id, encode(row), expires_in=self._node.limits.resume_window
        )
        self._attach(session)
        return session, token

    async def resume(
        self, principal: str, wanted: Resume, features: frozenset[str] | None, connection: Connection
    ) -> tuple[Session, str, list[tuple[int, str, int]]]:
        """
        The session as it goes on, its new token, and the events to be replayed: number, job, number in its log.

        Raises:
            ResumeWindowExpiredError: it is gone, or what is asked for is; also for another principal's session.
            UnauthenticatedError: the token is not its token.
            InvalidRequestError: it claims to have seen what was never sent.

        """
        for _ in range(_TRIES):
            found = await self._rows.get(wanted.session_id)
            row = None if found is None else _read_row(found.value)
            if found is None or row is None or row.principal != principal:
                raise ResumeWindowExpiredError
            shown = _shown(row, wanted.resume_token)
            here = self.attached.get(wanted.session_id)
            if here is not None:
                # The client gave its old connection up before we did.
                await self._node.drop(here)
            token = secrets.token_urlsafe(32)
            if features is None:
                features = frozenset(row.features)
            rotated = replace(
                row,
                token=_digest(token),
                previous=shown,
                epoch=row.epoch + 1,
                node=self._node.id,
                features=tuple(sorted(features)),
            )
            place = await find(self._node, wanted.session_id)
            await check(self._node, place, wanted.last_event_seq)
            try:
                revision = await self._rows.put(
                    wanted.session_id,
                    encode(rotated),
                    revision=found.revision,
                    expires_in=self._node.limits.resume_window,
                )
            except ConflictError:
                continue
            place = await fence(self._node, wanted.session_id, place)
            session = Session(
                self._node,
                wanted.session_id,
                principal,
                features,
                connection,
                next_event=place.next_event,
                log_end=place.log_end,
            )
            session.row, session.revision = rotated, revision
            session.unconfirmed = True
            session.acked = wanted.last_event_seq
            for job_id, (start, mode) in place.feeds.items():
                session.feeds[job_id] = Feed(session, job_id, "", start, mode)
            self._attach(session)
            return session, token, [event for event in place.events if event[0] > wanted.last_event_seq]
        raise ResumeWindowExpiredError

    # -- going on

    async def confirmed(self, session: Session) -> None:
        """The client has the new token: the one before is worth nothing from now on."""
        if session.row.previous is not None:
            session.row = replace(session.row, previous=None)
            await self.renew(session)

    async def renew(self, session: Session) -> None:
        """Keep the session for one more window."""
        try:
            session.revision = await self._rows.put(
                session.id,
                encode(session.row),
                revision=session.revision,
                expires_in=self._node.limits.resume_window,
            )
        except ConflictError:
            # It goes on elsewhere; its writer notices at the next event, and idle ones here.
            await self._node.drop(session)

    # -- ending

    async def leave(self, session: Session) -> None:
        """The connection is gone; the session can be resumed for a while."""
        if self.attached.get(session.id) is session:
            del self.attached[session.id]
            self._left[session.id] = (
                session.principal,
                self._node.loop.time() + self._node.limits.resume_window,
            )
            try:
                await self._rows.put(
                    session.id,
                    encode(session.row),
                    revision=session.revision,
                    expires_in=self._node.limits.resume_window,
                )
            except ConflictError:
                found = await self._rows.get(session.id)
                if found is not None and _read_row(found.value).node == self._node.id:
                    return  # renewed just now, which is as good
                if found is None:
                    # Not taken by another node: its time ran out while nobody could renew it.
                    await self._erase(session.id)
                self._forget(session.id)

    async def expire(self) -> None:
        """Erase what nobody came back for."""
        now = self._node.loop.time()
        for session_id, (principal, until) in list(self._left.items()):
            if until <= now:
                found = await self._rows.get(session_id)
                if found is not None and _read_row(found.value).node == self._node.id:
                    # By the store's clock there is some time left: look again then.
                    if session_id in self._left:
                        self._left[session_id] = (principal, now + (found.expires_in or 0.0))
                    continue
                # Another node may have it by now; then the row is not ours to judge.
                if found is None:
                    await self._erase(session_id)
                # Last: what the store did not erase is looked at again.
                self._forget(session_id)

    async def _erase(self, session_id: str) -> None:
        await self._rows.delete(session_id)
        await self._node.store.log(session_log(session_id)).drop()

    def _forget(self, session_id: str) -> None:
        left = self._left.pop(session_id, None)
        if left is not None:
            self._counted(left[0], -1)

    def _attach(self, session: Session) -> None:
        self._forget(session.id)
        self._counted(session.principal, 1)
        self.attached[session.id] = session

    async def _admit(self, principal: str) -> None:
        limit = self._node.limits.sessions_per_principal
        while self._counts.get(principal, 0) >= limit:
            oldest = next((id for id, (owner, _) in self._left.items() if owner == principal), None)
            if oldest is None:
                raise _too_many(limit)
            self._forget(oldest)
            found = await self._rows.get(oldest)
            # Resumed on another node, it is that node's to count.
            if found is None or _read_row(found.value).node == self._node.id:
                await self._erase(oldest)

    def _counted(self, principal: str, change: int) -> None:
        count = self._counts.get(principal, 0) + change
        if count > 0:
            self._counts[principal] = count
        else:
            self._counts.pop(principal, None)


def _shown(row: SessionRow, token: str) -> bytes:
    """The digest of the token that was shown, if it is one of the row's; both are compared, in constant time."""
    given = _digest(token)
    current = compare_digest(row.token, given)
    previous = compare_digest(row.previous if row.previous is not None else bytes(32), given)
    if not (current or previous):
        raise UnauthenticatedError("The resume token is not this session's")
    return given


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogatepass")).digest()


def _too_many(limit: int) -> ARCPError:
    return InternalError(
        "Too many sessions", retryable=False, details={"limit": "sessions_per_principal", "value": limit}
    )
