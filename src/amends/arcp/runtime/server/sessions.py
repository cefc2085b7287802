"""
Opening, resuming and expiring sessions, their resume tokens, and the limit of sessions per principal.

A resume token has 256 random bits; the store has only its digest. Every welcome contains a new token. The previous one
stays valid until the client has sent a message on the new connection, so that a lost welcome does not lock the client
out. After that the previous token is invalid.

To resume a session, a node replaces the session's row with a compare-and-set, then appends to its log: see `resume`.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from hashlib import sha256
from hmac import compare_digest

import msgspec
from msgspec.structs import replace

from amends.arcp.runtime.entries import SESSIONS, SessionRow, encode, session_log
from amends.arcp.runtime.jobs.running import RunningJobs
from amends.arcp.runtime.server.resume import check_replayable, fence, read_state
from amends.arcp.runtime.server.session import Feed, Session
from amends.arcp.transports import Connection
from amends.arcp.wire import new_id
from amends.arcp.wire.messages import Resume
from amends.errors.arcp import (
    ARCPError,
    InternalError,
    ResumeWindowExpiredError,
    UnauthenticatedError,
)
from amends.proof import Claim, Proof, rests_on
from amends.stores import ConflictError, Row

__all__ = ["Sessions"]

_read_row = msgspec.json.Decoder(SessionRow).decode
_TRIES = 8


class Sessions:
    """The sessions of one node: those with a connection, and those that can be resumed."""

    def __init__(self, jobs: RunningJobs) -> None:
        self._jobs = jobs
        self._node = jobs.ledger.node
        self._limits = jobs.limits
        self._loop = jobs.tasks.loop
        self._store = jobs.ledger.store
        self._rows = self._store.table(SESSIONS)
        self.attached: dict[str, Session] = {}
        self._detached: dict[str, tuple[SessionRow, float]] = {}
        """Sessions without a connection: their row, and the time at which they expire by the event loop's clock."""
        self._counts: dict[str, int] = {}

    # -- opening

    async def open(
        self, principal: str, features: frozenset[str], connection: Connection
    ) -> tuple[Session, str]:
        """
        Open a session. Returns it with its resume token.

        Raises:
            InternalError: the principal has reached `Limits.sessions_per_principal`.

        """
        await self._admit(principal)
        session_id, token = new_id("sess"), secrets.token_urlsafe(32)
        row = SessionRow(
            principal=principal, token=_digest(token), features=tuple(sorted(features)), node=self._node
        )
        session = Session(self._jobs, session_id, row, connection, self.detach)
        session.revision = await self._put(session_id, row, 0)
        self._attach(session)
        return session, token

    async def resume(
        self, principal: str, wanted: Resume, features: frozenset[str] | None, connection: Connection
    ) -> tuple[Session, str, list[tuple[int, str, int]]]:
        """
        Return the resumed session, its new token, and the events to replay (event number, job, entry number).

        Raises:
            ResumeWindowExpiredError: the session or the requested events no longer exist, or the session belongs to
                another principal.
            UnauthenticatedError: the token is not valid for the session.
            InvalidRequestError: the client claims to have seen an event that was never sent.

        """
        for _ in range(_TRIES):
            found = await self._rows.get(wanted.session_id) or await self._restore_row(wanted.session_id)
            row = None if found is None else _read_row(found.value)
            if found is None or row is None or row.principal != principal:
                raise ResumeWindowExpiredError
            used = _check_token(row, wanted.resume_token)
            here = self.attached.get(wanted.session_id)
            if here is not None:
                # The client has already given up its old connection, which is still attached here.
                await here.drop_soon()
            token = secrets.token_urlsafe(32)
            if features is None:
                features = frozenset(row.features)
            rotated = replace(
                row,
                token=_digest(token),
                previous=used,
                epoch=row.epoch + 1,
                node=self._node,
                features=tuple(sorted(features)),
            )
            state = await read_state(self._store, wanted.session_id)
            await check_replayable(self._store, state, wanted.last_event_seq)
            try:
                revision = await self._put(wanted.session_id, rotated, found.revision)
            except ConflictError:
                continue
            state = await fence(self._store, wanted.session_id, state)
            session = Session(
                self._jobs,
                wanted.session_id,
                rotated,
                connection,
                self.detach,
                next_event=state.next_event,
                log_end=state.log_end,
            )
            session.revision = revision
            session.unconfirmed = True
            session.acked = wanted.last_event_seq
            for job_id, (start, mode) in state.feeds.items():
                session.feeds[job_id] = Feed(session, job_id, "", start, mode)
            self._attach(session)
            return session, token, [event for event in state.events if event[0] > wanted.last_event_seq]
        raise ResumeWindowExpiredError

    async def _restore_row(self, session_id: str) -> Row | None:
        """
        Write the row of a session of this node again that is not in the store any more, although its window is not over.

        The store's clock may have been set; by the event loop's clock the session has not expired.
        """
        here, now = self.attached.get(session_id), self._loop.time()
        left = self._detached.get(session_id)
        if here is not None:
            left = (here.row, here.renewed + self._limits.resume_window)
        if left is None or left[1] <= now:
            return None
        row, until = left
        with suppress(ConflictError):
            await self._rows.create(session_id, encode(row), expires_in=until - now)
        return await self._rows.get(session_id)

    # -- renewing

    async def confirm_token(self, session: Session) -> None:
        """Invalidate the previous token, because the client has received the new one."""
        if session.row.previous is not None:
            session.row = replace(session.row, previous=None)
            await self.renew(session)

    async def renew(self, session: Session) -> None:
        """Extend the session by another resume window."""
        began = self._loop.time()
        try:
            session.revision = await self._put(session.id, session.row, session.revision)
            session.renewed = began
        except ConflictError:
            # The session was resumed elsewhere. An active session notices that in its writer, an idle one here.
            await session.drop_soon()

    async def _put(self, session_id: str, row: SessionRow, revision: int) -> int:
        window = self._limits.resume_window
        return await self._rows.put(session_id, encode(row), revision=revision, expires_in=window)

    # -- expiring

    async def detach(self, session: Session) -> None:
        """Record that the session has no connection; it can be resumed within its window."""
        if self.attached.get(session.id) is session:
            del self.attached[session.id]
            self._detached[session.id] = (session.row, self._loop.time() + self._limits.resume_window)
            try:
                await self._put(session.id, session.row, session.revision)
            except ConflictError:
                found = await self._rows.get(session.id)
                if found is not None and _read_row(found.value).node == self._node:
                    return  # It was renewed at the same moment, with the same effect.
                if found is None and self._loop.time() < session.renewed + self._limits.resume_window:
                    return  # It has not expired by the event loop's clock: `_restore_row` writes the row again.
                if found is None:
                    # No other node has it: it expired while the store could not be reached.
                    await self._delete(session.id)
                self._remove_detached(session.id)

    async def expire(self) -> None:
        """Delete detached sessions whose resume window is over."""
        now = self._loop.time()
        for session_id, (row, until) in list(self._detached.items()):
            if until <= now:
                found = await self._rows.get(session_id)
                if found is not None and _read_row(found.value).node == self._node:
                    # By the store's clock the session has not expired: check again when it should have.
                    if session_id in self._detached:
                        self._detached[session_id] = (row, now + (found.expires_in or 0.0))
                    continue
                # If another node has resumed the session, its row must stay.
                if found is None:
                    await self._delete(session_id)
                # After the deletion: if that fails, the next round repeats it.
                self._remove_detached(session_id)

    async def _delete(self, session_id: str) -> None:
        await self._rows.delete(session_id)
        await self._store.log(session_log(session_id)).drop()

    def _remove_detached(self, session_id: str) -> None:
        left = self._detached.pop(session_id, None)
        if left is not None:
            self._change_count(left[0].principal, -1)

    def _attach(self, session: Session) -> None:
        self._remove_detached(session.id)
        self._change_count(session.principal, 1)
        self.attached[session.id] = session

    async def _admit(self, principal: str) -> None:
        limit = self._limits.sessions_per_principal
        while self._counts.get(principal, 0) >= limit:
            oldest = next((id for id, (row, _) in self._detached.items() if row.principal == principal), None)
            if oldest is None:
                raise _too_many(limit)
            self._remove_detached(oldest)
            found = await self._rows.get(oldest)
            # If another node has resumed it, that node counts it.
            if found is None or _read_row(found.value).node == self._node:
                await self._delete(oldest)

    def _change_count(self, principal: str, change: int) -> None:
        count = self._counts.get(principal, 0) + change
        if count > 0:
            self._counts[principal] = count
        else:
            self._counts.pop(principal, None)


@rests_on(Claim.OURS, Proof.SECRET)
def _check_token(row: SessionRow, token: str) -> bytes:
    """Return the token's digest if it is the current or the previous one; both are compared in constant time."""
    given = _digest(token)
    current = compare_digest(row.token, given)
    previous = compare_digest(row.previous if row.previous is not None else bytes(32), given)
    if not (current or previous):
        raise UnauthenticatedError("The resume token is not valid for this session")
    return given


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogatepass")).digest()


def _too_many(limit: int) -> ARCPError:
    return InternalError(
        "The principal has too many sessions",
        details={"limit": "sessions_per_principal", "value": limit},
    )
