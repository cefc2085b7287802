"""The client: one session, its jobs, its requests."""

from __future__ import annotations

from asyncio import Future, Lock
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from amends.arcp.client.handle import Handle
from amends.arcp.client.handshake import Dial, Ticket
from amends.arcp.client.inbox import Inbox
from amends.arcp.client.job import Job
from amends.arcp.client.session import Link
from amends.arcp.client.session_faults import lost
from amends.arcp.client.settings import Settings
from amends.arcp.client.tracing import current_trace_id
from amends.arcp.wire import messages as m
from amends.arcp.wire import text_of
from amends.errors.arcp import InvalidRequestError
from amends.errors.base import FaultError

__all__ = ["Client"]

_ENDED = frozenset({"success", "error", "cancelled", "timed_out"})
_PAGE = 100


class Client:
    """A session with a runtime. Made by `connect`."""

    def __init__(self, dial: Dial, token: str | None, settings: Settings) -> None:
        self._dial = dial
        self._token = token
        self._settings = settings
        self._inbox = Inbox(settings, partial(Handle, self))
        self._jobs, self._requests = self._inbox.jobs, self._inbox.requests
        self._link = Link(dial, token, settings, self._inbox)
        self._renewing = Lock()
        self._closed = False

    # -- the session

    async def open(self, ticket: Ticket | None = None) -> None:
        """Open the session; `connect` does it."""
        await self._link.open(ticket)

    async def close(self) -> None:
        """Leave the session. Jobs go on; handles that are still waiting raise HEARTBEAT_LOST."""
        self._closed = True
        await self._link.close()

    async def detach(self) -> Ticket | None:
        """
        Leave without a goodbye, so that `connect(…, ticket=…)` can go on with the session, here or elsewhere.

        Whoever does may cancel its jobs, which another session may not. None where the runtime gives no token.
        """
        ticket = self._link.ticket
        self._closed = True
        await self._link.close(goodbye=False)
        return ticket

    async def resume(self) -> None:
        """
        Go on with the session on a new connection, now: after a loss, or to leave a bad connection.

        Nothing is lost and nothing comes twice. A lost connection is resumed without this call too.

        Raises:
            FaultError: RESUME_WINDOW_EXPIRED, UNAUTHENTICATED …: the session is over, and a new one is the recovery.

        """
        await self._link.resume()

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._link.session_id

    @property
    def features(self) -> frozenset[str]:
        """What both sides can do."""
        return self._link.features

    @property
    def agents(self) -> dict[str, m.Agent]:
        """The runtime's agents by name, as it named them in its welcome."""
        listed = (self._link.welcome.capabilities or m.Capabilities()).agents or []
        found = [m.Agent(entry) if isinstance(entry, str) else entry for entry in listed]
        return {agent.name: agent for agent in found}

    # -- jobs

    async def submit(
        self,
        agent: str,
        input: Any = None,
        *,
        idempotency_key: str | None = None,
        max_runtime_sec: float | None = None,
        lease: Mapping[str, Sequence[str]] | None = None,
        expires_at: str | float | None = None,
        trace_id: str | None = None,
        parent_job_id: str | None = None,
    ) -> Handle:
        """
        Submit a job, and get its handle once the runtime has accepted it.

        Args:
            agent: `name`, or `name@version` for exactly that one.
            input: any JSON value.
            idempotency_key: the same key with the same job is the same job, whatever was lost on the way.
            max_runtime_sec: after that many seconds the job ends with TIMEOUT.
            lease: what it may do: capability → patterns.
            expires_at: until when: seconds since the epoch, or UTC text with a Z.
            trace_id: the trace it belongs to; without one, the current one of OpenTelemetry, else the runtime's.
            parent_job_id: the job this one belongs to.

        Raises:
            FaultError: why it was not accepted. Without a key, a connection lost before the answer leaves open
                whether it was: HEARTBEAT_LOST, `executed` maybe.

        """
        constraints = None
        if expires_at is not None:
            constraints = {"expires_at": expires_at if isinstance(expires_at, str) else text_of(expires_at)}
        payload = m.Submit(
            agent=agent,
            input=input,
            lease_request={name: list(patterns) for name, patterns in lease.items()} if lease else None,
            lease_constraints=constraints,
            idempotency_key=idempotency_key,
            max_runtime_sec=_whole(max_runtime_sec),
            parent_job_id=parent_job_id,
        )
        trace = trace_id or current_trace_id()
        return await self._ask(  # type: ignore[no-any-return]
            "job.submit", payload, repeatable=idempotency_key is not None, trace_id=trace
        )

    async def submit_with_recovery(self, agent: str, input: Any = None, **options: Any) -> Any:
        """
        Submit, wait for the result, and repeat where that can help: S5's loop, within a policy's bounds.

        Every try carries the same key, so that the runtime has one job whatever is lost; a session that is over is
        replaced by a new one. See `amends.arcp.client.recovery.submit_with_recovery` for the options.
        """
        from amends.arcp.client.recovery import submit_with_recovery

        return await submit_with_recovery(self, agent, input, **options)

    async def subscribe(
        self, job_id: str, *, history: bool = True, from_event_seq: int | None = None
    ) -> Handle:
        """
        Watch a job of another session (7.6). With `history` its events so far come first.

        Raises:
            FaultError: JOB_NOT_FOUND, PERMISSION_DENIED, or INVALID_REQUEST where the runtime has no subscriptions.

        """
        known = self._jobs.get(job_id)
        if known is not None:
            # It is here already; asking again would bring its events twice.
            return Handle(self, known, m.Accepted(job_id))
        self._need("subscribe")
        job = self._jobs[job_id] = Job(job_id, None, self._settings)
        try:
            subscribed = await self._subscribed(job_id, history, from_event_seq)
            if not history and subscribed.current_status in _ENDED and not job.outcome.finished:
                # A job that is over has nothing to come but what was.
                subscribed = await self._subscribed(job_id, history=True, from_event_seq=None)
        except BaseException as error:
            # Somebody else may hold the same job: by a submission, then it goes on; by a subscription, then not.
            if not job.submitted:
                if self._jobs.get(job_id) is job:
                    del self._jobs[job_id]
                job.fail(error.fault if isinstance(error, FaultError) else lost("closed"))
            raise
        job.trace_id = job.trace_id or subscribed.trace_id
        accepted = m.Accepted(
            job_id=job_id,
            agent=subscribed.agent,
            lease=subscribed.lease,
            lease_constraints=subscribed.lease_constraints,
            budget=subscribed.budget,
            credentials=subscribed.credentials,
            trace_id=subscribed.trace_id,
            parent_job_id=subscribed.parent_job_id,
        )
        return Handle(self, job, accepted)

    async def _subscribed(self, job_id: str, history: bool, from_event_seq: int | None) -> m.Subscribed:
        start = from_event_seq if from_event_seq is not None else 0 if history else None
        payload = m.Subscribe(job_id, start, history or None)
        return await self._ask("job.subscribe", payload, repeatable=True, job_id=job_id)  # type: ignore[no-any-return]

    async def unsubscribe(self, job_id: str) -> None:
        """Watch a job no longer. Handles that still wait raise HEARTBEAT_LOST."""
        job = self._jobs.pop(job_id, None)
        await self._link.ready(self._settings.request_timeout)
        self._link.post(self._link.message("job.unsubscribe", m.Unsubscribe(job_id), job_id=job_id))
        if job is not None:
            job.fail(lost("closed"))

    async def jobs(
        self,
        *,
        status: Sequence[str] | None = None,
        agent: str | None = None,
        created_after: str | float | None = None,
        limit: int = _PAGE,
    ) -> list[m.JobEntry]:
        """
        The jobs this principal may see (6.6), at most `limit` of them, over as many pages as that takes.

        Raises:
            FaultError: INVALID_REQUEST where the runtime has no listing.

        """
        self._need("list_jobs")
        after = text_of(created_after) if isinstance(created_after, int | float) else created_after
        wanted = m.Filter(list(status) if status is not None else None, agent, after)
        found: list[m.JobEntry] = []
        cursor: str | None = None
        while len(found) < limit:
            payload = m.ListJobs(
                filter=None if wanted == m.Filter() else wanted,
                limit=min(limit - len(found), _PAGE),
                cursor=cursor,
            )
            page = await self._ask("session.list_jobs", payload, repeatable=True)
            found += page.jobs
            if not page.next_cursor or page.next_cursor == cursor or not page.jobs:
                break
            cursor = page.next_cursor
        return found[:limit]

    async def cancel(self, job_id: str, reason: str | None = None) -> None:
        """
        Ask the runtime to cancel a job of this session, and wait until it says that it does.

        Raises:
            FaultError: PERMISSION_DENIED for another session's, JOB_NOT_FOUND, INVALID_REQUEST for one that has ended.

        """
        payload = m.Cancel(reason or "client_request")
        await self._ask("job.cancel", payload, repeatable=True, job_id=job_id)

    async def _cancel(self, job: Job, reason: str | None) -> None:
        if job.outcome.finished:
            return
        try:
            await self.cancel(job.job_id, reason)
        except FaultError:
            # It ended in the meantime, which is an answer too.
            if not job.outcome.finished:
                raise

    async def _ask(
        self,
        type: str,
        payload: Any,
        *,
        repeatable: bool,
        job_id: str | None = None,
        trace_id: str | None = None,
    ) -> Any:
        link = self._link
        if not link.is_open:
            await link.ready(self._settings.request_timeout)
        message = link.message(type, payload, job_id=job_id, trace_id=trace_id)
        # Written before anybody waits: an input that is no JSON is the caller's mistake, said at once.
        link.post(message, alone=not self._requests)
        answer: Future[Any] = self._requests.add(message, repeatable=repeatable, job_id=job_id)
        try:
            return await answer
        except BaseException:
            self._requests.forget(message)
            raise

    def _need(self, feature: str) -> None:
        if feature not in self._link.features:
            raise InvalidRequestError(f"The runtime does not offer {feature}", details={"feature": feature})

    async def _renew(self) -> None:
        """A new session in place of one that is over (S5: the recovery of every session error)."""
        async with self._renewing:
            if self._link.fault is None or self._closed:
                return
            old, self._link = self._link, Link(self._dial, self._token, self._settings, self._inbox)
            await old.close()
            try:
                await self._link.open()
            except FaultError as error:
                self._link.fault = error.fault
                raise


def _whole(seconds: float | None) -> float | None:
    """Published runtimes take whole seconds only."""
    return int(seconds) if seconds is not None and float(seconds).is_integer() else seconds
