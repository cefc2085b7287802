"""The client: one session, its jobs and its requests."""

from __future__ import annotations

import asyncio
import sys
from asyncio import Lock, Task
from collections.abc import Mapping, Sequence
from functools import partial
from math import inf, isfinite
from typing import Any

from amends.arcp.client.dial import Dial
from amends.arcp.client.handle import Handle
from amends.arcp.client.handshake import Ticket
from amends.arcp.client.inbox import Inbox
from amends.arcp.client.job import Job
from amends.arcp.client.recovery import submit_with_recovery
from amends.arcp.client.session import Session
from amends.arcp.client.session_faults import connection_lost, result_gone
from amends.arcp.client.settings import Settings
from amends.arcp.inputs import encode_input
from amends.arcp.wire import STEPS, new_id, text_of
from amends.arcp.wire import messages as m
from amends.core.policy import DEFAULT, Policy
from amends.errors import arcp as errors
from amends.errors.arcp import InvalidRequestError
from amends.errors.base import FaultError
from amends.foreign.trust import trusted
from amends.recovery.effect_context import check_time_limit
from amends.recovery.incoming import id_of, incoming, new_left
from amends.recovery.origins import PER_ORIGIN, Upstreams
from amends.recovery.scope import time_left, tries_left

__all__ = ["Client", "current_trace_id"]

_ENDED = frozenset({"success", "error", "cancelled", "timed_out"})
_PAGE = 100
_EMPTY_PAGES = 1_000
"""How many empty pages of a listing are read one after another."""
_FIRST_EVENT = 1.0
_LOOK_EVERY = 2.0
_LOOK_AT = 10_000


class Client:
    """
    A session with a runtime, opened by `connect`.

        async with connect("wss://host/arcp", token="...") as client:
            handle = await client.submit("summarise", {"text": "..."}, idempotency_key="report-7")
            print(await handle.done)
    """

    def __init__(self, dial: Dial, token: str | None, settings: Settings) -> None:
        self._dial = dial
        self._token = token
        self._settings = settings
        self._inbox = Inbox(settings, partial(Handle, self._cancel), self._resumed)
        self._jobs, self._requests = self._inbox.jobs, self._inbox.requests
        self._session = Session(dial, token, settings, self._inbox)
        self._renewing = Lock()
        self._upstreams = Upstreams(PER_ORIGIN)
        self._closed = False
        self._looking: Task[None] | None = None

    # -- the session

    async def open(self, ticket: Ticket | None = None) -> None:
        """Open the session; `connect` calls it."""
        try:
            await self._session.open(ticket)
        except FaultError as error:
            raise trusted(error, own=self._settings.own) from error.__cause__

    async def close(self) -> None:
        """Close the session. Jobs continue; pending `done` of handles raise HEARTBEAT_LOST."""
        self._closed = True
        self._stop_looking()
        await self._session.close()

    async def detach(self) -> Ticket | None:
        """
        Disconnect without closing the session, so that `connect(…, ticket=…)` can continue it, here or elsewhere.

        The client that continues it may cancel its jobs, which another session may not. Returns None if the runtime gives
        no resume token.
        """
        ticket = self._session.ticket
        self._closed = True
        self._stop_looking()
        await self._session.close(send_close=False)
        return ticket

    async def resume(self) -> None:
        """
        Continue the session on a new connection now: after a loss, or to leave a bad connection.

        No event is lost or repeated. The client also resumes a lost connection without this call.

        Raises:
            FaultError: RESUME_WINDOW_EXPIRED, UNAUTHENTICATED …: the session is over; open a new one.

        """
        await self._session.resume()

    def _resumed(self) -> None:
        if self._looking is None and any(job.in_doubt for job in self._jobs.values()):
            self._looking = asyncio.create_task(self._look_for_lost_jobs())

    async def _look_for_lost_jobs(self) -> None:
        """
        End the handles of jobs that the runtime lost with a connection.

        The runtime of the TypeScript SDK ends a job at its first event without a connection, and reports it nowhere. Its list
        of running jobs is the only sign.
        """
        try:
            while doubtful := [job for job in self._jobs.values() if job.in_doubt]:
                await asyncio.sleep(_LOOK_EVERY)
                listed = {entry.job_id for entry in await self.jobs(limit=_LOOK_AT)}
                for job in doubtful:
                    if job.job_id not in listed and self._jobs.get(job.job_id) is job:
                        del self._jobs[job.job_id]
                        job.fail(connection_lost("job_lost"))
        except FaultError:
            # The session is over, which ends its jobs, or the runtime cannot list them.
            return
        finally:
            self._looking = None

    def _stop_looking(self) -> None:
        if self._looking is not None:
            self._looking.cancel()

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._session.session_id

    @property
    def features(self) -> frozenset[str]:
        """The features that both sides support."""
        return self._session.features

    @property
    def agents(self) -> dict[str, m.Agent]:
        """The runtime's agents by name, from its welcome message."""
        listed = (self._session.welcome.capabilities or m.Capabilities()).agents or []
        agents = [m.Agent(entry) if isinstance(entry, str) else entry for entry in listed]
        return {agent.name: agent for agent in agents}

    # -- jobs

    async def submit(
        self,
        agent: str,
        input: object = None,
        *,
        idempotency_key: str | None = None,
        max_runtime_sec: float | None = None,
        lease: Mapping[str, Sequence[str]] | None = None,
        expires_at: str | float | None = None,
        trace_id: str | None = None,
        parent_job_id: str | None = None,
    ) -> Handle:
        """
        Submit a job, and return its handle when the runtime has accepted it.

        Args:
            agent: `name`, or `name@version` for exactly that version.
            input: any JSON value.
            idempotency_key: the same key with the same arguments is the same job, also after a lost connection.
            max_runtime_sec: after that many seconds the job ends with TIMEOUT.
            lease: what the job may do: capability → patterns.
            expires_at: the end of the lease: seconds since the epoch, or UTC text with a Z.
            trace_id: the trace of the job; default: OpenTelemetry's current trace, else the runtime chooses.
            parent_job_id: the job that this one belongs to.

        Raises:
            FaultError: the runtime did not accept the job. If the connection is lost before the answer and there is no
                key, it is unknown whether it did: HEARTBEAT_LOST with `executed` maybe. INVALID_REQUEST, before anything
                is sent, for an input that JSON cannot carry: NaN, infinity, unpaired surrogates.

        """
        return await self._submit(
            agent,
            input,
            None,
            [],
            idempotency_key=idempotency_key,
            max_runtime_sec=max_runtime_sec,
            lease=lease,
            expires_at=expires_at,
            trace_id=trace_id,
            parent_job_id=parent_job_id,
        )

    async def _submit(
        self,
        agent: str,
        input: object,
        attempts: int | None,
        calls: list[str | None],
        *,
        idempotency_key: str | None = None,
        max_runtime_sec: float | None = None,
        lease: Mapping[str, Sequence[str]] | None = None,
        expires_at: str | float | None = None,
        trace_id: str | None = None,
        parent_job_id: str | None = None,
    ) -> Handle:
        """Same as `submit`, for a caller that allows so many attempts. `calls` gets the id of this one."""
        check_time_limit()
        constraints = None
        if expires_at is not None:
            constraints = {"expires_at": _time(expires_at, "lease_constraints.expires_at")}
        stated, call = new_left(tries_left(attempts), time_left())
        payload = m.Submit(
            agent=agent,
            input=None if input is None else encode_input(input),
            lease_request={name: list(patterns) for name, patterns in lease.items()} if lease else None,
            lease_constraints=constraints,
            idempotency_key=idempotency_key,
            max_runtime_sec=None if max_runtime_sec is None else _whole(max_runtime_sec),
            parent_job_id=parent_job_id,
            left=stated,
        )
        trace, keyed = trace_id or current_trace_id(), idempotency_key is not None
        handle: Handle = await self._request("job.submit", payload, repeatable=keyed, trace_id=trace)
        calls.append(call)
        handle.signed_for(calls)
        if keyed and handle.accepted.request_id is None:
            await self._find_job_of_key(handle.job_id)
        return handle

    async def _find_job_of_key(self, job_id: str) -> None:
        """
        Follow the job that a key belongs to, if another session submitted it.

        A runtime that gives no request id (the TypeScript SDK's) sends the events of a job only to the session that submitted
        it first, and nothing for one that has ended. A new job reports its status at once.
        """
        job = self._jobs.get(job_id)
        if job is None or await job.events.started(_FIRST_EVENT) or "subscribe" not in self._session.features:
            return
        job.submitted = False
        try:
            await self._subscribe(job_id, history=True, from_event_seq=None)
        except FaultError as error:
            if self._jobs.get(job_id) is job:
                del self._jobs[job_id]
            job.fail(result_gone(job_id) if error.code == "JOB_NOT_FOUND" else error.fault)

    async def submit_with_recovery(self, agent: str, input: object = None, **options: Any) -> Any:
        """
        Submit, wait for the result, and repeat where that can help, within the limits of a policy.

        Every attempt has the same key, so that the runtime has one job whatever is lost; a new session replaces one that
        is over. See `amends.arcp.client.recovery.submit_with_recovery` for the options.
        """
        upstreams = self._upstreams
        policy = options.get("policy", DEFAULT)
        attempts = policy.attempts if isinstance(policy, Policy) else None
        calls: list[str | None] = []

        async def attempt(key: str, **job: Any) -> Any:
            await self._renew()
            try:
                async with asyncio.timeout(time_left()) as limit:
                    handle = await self._submit(agent, input, attempts, calls, idempotency_key=key, **job)
                    return await handle.done
            except TimeoutError as error:
                if isinstance(error, FaultError) or not limit.expired():
                    raise
                # The job goes on: the same key finds it again.
                raise errors.TimeoutError(
                    "The time for this call is over, and the job has not ended"
                ) from error

        return await submit_with_recovery(attempt, agent, lambda: upstreams.of(agent), **options)

    async def subscribe(
        self, job_id: str, *, history: bool = True, from_event_seq: int | None = None
    ) -> Handle:
        """
        Follow a job of another session (7.6). With `history`, its events so far come first.

        Raises:
            FaultError: JOB_NOT_FOUND, PERMISSION_DENIED, or INVALID_REQUEST if the runtime does not support it.

        """
        known = self._jobs.get(job_id)
        if known is not None:
            # This client follows the job already; subscribing again would repeat its events.
            return Handle(self._cancel, known, m.Accepted(job_id))
        self._require("subscribe")
        job = self._jobs[job_id] = Job(job_id, None, self._settings)
        try:
            subscribed = await self._subscribe(job_id, history, from_event_seq)
            if not history and subscribed.current_status in _ENDED and not job.outcome.finished:
                # The job has ended, so only its history contains the end.
                subscribed = await self._subscribe(job_id, history=True, from_event_seq=None)
        except BaseException as error:
            # Another handle may share this job: after a submission it continues, after a subscription it fails too.
            if not job.submitted:
                if self._jobs.get(job_id) is job:
                    del self._jobs[job_id]
                job.fail(error.fault if isinstance(error, FaultError) else connection_lost("closed"))
            raise
        job.trace_id = job.trace_id or subscribed.trace_id
        accepted = m.Accepted(
            job_id,
            subscribed.agent,
            subscribed.lease,
            subscribed.lease_constraints,
            subscribed.budget,
            subscribed.credentials,
            trace_id=subscribed.trace_id,
            parent_job_id=subscribed.parent_job_id or None,
        )
        return Handle(self._cancel, job, accepted)

    async def _subscribe(self, job_id: str, history: bool, from_event_seq: int | None) -> m.Subscribed:
        start = from_event_seq if from_event_seq is not None else 0 if history else None
        payload = m.Subscribe(job_id, start, history or None)
        return await self._request("job.subscribe", payload, repeatable=True, job_id=job_id)  # type: ignore[no-any-return]

    async def unsubscribe(self, job_id: str) -> None:
        """Stop following a job. Pending `done` of its handles raise HEARTBEAT_LOST."""
        job = self._jobs.pop(job_id, None)
        await self._session.wait_open(self._settings.request_timeout)
        self._session.post(self._session.message("job.unsubscribe", m.Unsubscribe(job_id), job_id=job_id))
        if job is not None:
            job.fail(connection_lost("closed"))

    async def jobs(
        self,
        *,
        status: Sequence[str] | None = None,
        agent: str | None = None,
        created_after: str | float | None = None,
        limit: int = _PAGE,
    ) -> list[m.JobEntry]:
        """
        List the jobs that this principal may see (6.6), at most `limit`, over as many pages as necessary.

        Raises:
            FaultError: INVALID_REQUEST if the runtime does not support it.

        """
        self._require("list_jobs")
        after = None if created_after is None else _time(created_after, "filter.created_after")
        filter = m.Filter(list(status) if status is not None else None, agent, after)
        jobs: list[m.JobEntry] = []
        cursor: str | None = None
        empty = 0
        while len(jobs) < limit:
            payload = m.ListJobs(
                filter=None if filter == m.Filter() else filter,
                limit=min(limit - len(jobs), _PAGE),
                cursor=cursor,
            )
            page = await self._request("session.list_jobs", payload, repeatable=True)
            jobs += page.jobs
            # A page may be empty: a runtime looks at a limited number of jobs for each.
            empty = 0 if page.jobs else empty + 1
            if not page.next_cursor or page.next_cursor == cursor or empty > _EMPTY_PAGES:
                break
            cursor = page.next_cursor
        return jobs[:limit]

    async def cancel(self, job_id: str, reason: str | None = None) -> None:
        """
        Ask the runtime to cancel a job of this session, and wait for its confirmation.

        Raises:
            FaultError: PERMISSION_DENIED for another session's job, JOB_NOT_FOUND, INVALID_REQUEST for an ended job.

        """
        payload = m.Cancel(reason or "client_request")
        await self._request("job.cancel", payload, repeatable=True, job_id=job_id)

    # -- signals, and the steps of jobs: an extension of amends

    async def signal(self, job_id: str, name: str, value: object = None, *, id: str | None = None) -> bool:
        """
        Send a signal to a job of this principal, for which its agent waits with `ctx.signal`, now or later.

            await client.signal(handle.job_id, "approved", {"by": "bea"})

        Args:
            job_id: the job; its owner may send it signals from any session.
            name: the signal's name.
            value: any JSON value.
            id: identifies this signal: one that is sent again under its id counts once. Default: a new one.

        Returns:
            Whether it was new.

        Raises:
            FaultError: PERMISSION_DENIED for another principal's job, JOB_NOT_FOUND, INVALID_REQUEST for an ended job or a
                runtime without this extension.

        """
        payload = m.AboutJob(job_id, signal=name, id=id or new_id("sig"), value=encode_input(value))
        return bool((await self._about_job(payload)).counted)

    async def answer(self, job_id: str, step: str, *, happened: bool, value: object = None) -> None:
        """
        Answer whether a step happened that a job ended in doubt about: the job continues in another run.

        Args:
            job_id: the job; only its owner may answer.
            step: as `steps` names it.
            happened: True: the step gets the result `value`. False: it is called again, after the time limit of the lost call.
            value: the result of a step that happened.

        Raises:
            FaultError: as for `signal`; INVALID_REQUEST if this step is not in doubt.

        """
        await self._about_job(m.AboutJob(job_id, step=step, happened=happened, value=encode_input(value)))

    async def steps(self, job_id: str) -> list[dict[str, Any]]:
        """
        Return the steps of a job: `step`, `state`, `attempts`, `since`, `until` and the `question` of one in doubt.

        Raises:
            FaultError: JOB_NOT_FOUND, or INVALID_REQUEST for a runtime without this extension.

        """
        return (await self._about_job(m.AboutJob(job_id))).steps

    async def _about_job(self, payload: m.AboutJob) -> m.StepList:
        self._require(STEPS)
        answer: m.StepList = await self._request(
            "x-vendor.amends.job", payload, repeatable=payload.step is None, job_id=payload.job_id
        )
        return answer

    async def _cancel(self, job: Job, reason: str | None) -> None:
        if job.outcome.finished:
            return
        try:
            await self.cancel(job.job_id, reason)
        except FaultError:
            # The job ended in the meantime, so there is nothing to cancel.
            if not job.outcome.finished:
                raise

    async def _request(
        self,
        type: str,
        payload: object,
        *,
        repeatable: bool,
        job_id: str | None = None,
        trace_id: str | None = None,
    ) -> Any:
        session = self._session
        if not session.is_open:
            await session.wait_open(self._settings.request_timeout)
        message = session.message(type, payload, job_id=job_id, trace_id=trace_id)
        # Posted before it is registered: an input that is not JSON raises here. A single request saves a turn of the loop.
        session.post(message, alone=not self._requests)
        answer = self._requests.add(message, repeatable=repeatable, job_id=job_id)
        try:
            return await answer
        except FaultError as error:
            raise trusted(error, own=self._settings.own) from error.__cause__
        finally:
            self._requests.remove(message)

    def _require(self, feature: str) -> None:
        if feature not in self._session.features:
            raise InvalidRequestError(f"The runtime does not support {feature}", details={"feature": feature})

    async def _renew(self) -> None:
        """Replace a session that is over with a new one."""
        async with self._renewing:
            if self._session.fault is None or self._closed:
                return
            old, self._session = self._session, Session(self._dial, self._token, self._settings, self._inbox)
            await old.close()
            try:
                await self._session.open()
            except FaultError as error:
                self._session.fault = error.fault
                raise


def _whole(seconds: float) -> float:
    """A whole number as an int, because published runtimes accept only those. JSON has no NaN: it would mean no limit."""
    try:
        number = float(seconds)
    except OverflowError:
        number = inf
    if not isfinite(number):
        raise InvalidRequestError(
            "max_runtime_sec must be a finite number", details={"field": "max_runtime_sec"}
        )
    return int(seconds) if number.is_integer() else seconds


def _time(given: str | float, field: str) -> str:
    """A time as it is sent."""
    if isinstance(given, str):
        return given
    try:
        return text_of(given)
    except (ValueError, OverflowError, OSError):
        raise InvalidRequestError(
            "A time must be seconds since the epoch, or UTC with a Z", details={"field": field}
        ) from None


def current_trace_id() -> str | None:
    """
    Return the trace that is handled, 32 hexadecimal digits, or None.

    OpenTelemetry is not imported: a program that uses it has imported it.
    """
    trace = sys.modules.get("opentelemetry.trace")
    if trace is not None:
        context = trace.get_current_span().get_span_context()
        if context.is_valid:
            return f"{context.trace_id:032x}"
    return id_of(incoming())
