"""`Context`: what an agent uses to report events, check its lease, delegate jobs and stream results."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from amends.arcp.runtime.credentials.lifecycle import CredentialLifecycle
from amends.arcp.runtime.jobs.amounts import is_cost, number_on_wire
from amends.arcp.runtime.jobs.job import Job
from amends.arcp.runtime.jobs.outcome import encode_error, without_secrets
from amends.arcp.runtime.jobs.result_stream import ResultStream
from amends.arcp.runtime.jobs.signals import receive
from amends.arcp.wire import new_id
from amends.core.json_value import json_value
from amends.effects.steps import DAY, Steps
from amends.errors import FaultError
from amends.errors.arcp import ARCPError, is_retryable_by_default
from amends.foreign import from_exception
from amends.foreign.groups import join
from amends.recovery.effect_context import current_key

__all__ = ["Context", "Delegate"]


Delegate = Callable[..., Awaitable[object]]
"""Runs a delegated job, and returns its result; see `Context.delegate`."""


class Context:
    """
    One run of one job, as its agent sees it.

    Events go to every subscribed session, in order, after they were written to the store. A call waits only while the
    store or a subscribed session cannot keep up.

    >>> import asyncio
    >>> from amends.arcp import Runtime, connect
    >>> runtime = Runtime(tokens={"secret": "alice"})
    >>> @runtime.register_agent("read")
    ... async def read(path, ctx):
    ...     ctx.authorize("fs.read", path)
    ...     await ctx.log(f"reading {path}")
    ...     return ctx.principal
    >>> async def example():
    ...     async with connect(runtime, token="secret") as client:
    ...         handle = await client.submit("read", "/reports/may.csv", lease={"fs.read": ["/reports/**"]})
    ...         return await handle.done
    >>> asyncio.run(example())
    'alice'
    """

    __slots__ = ("_calls", "_credentials", "_delegate", "_job", "_steps", "_stream", "deadline")

    def __init__(
        self, job: Job, deadline: float | None, credentials: CredentialLifecycle, delegate: Delegate
    ) -> None:
        self._job = job
        self._credentials = credentials
        self._delegate = delegate
        self._calls: dict[str, None] = {}
        self._stream: ResultStream | None = None
        self._steps: Steps | None = None
        self.deadline = deadline
        """Time on the event loop's clock at which the run is stopped; None if it has no limit."""

    def get_steps(self) -> Steps:
        """Return the durable steps of this run; for the runtime's own parts."""
        if self._steps is None:
            self._steps = Steps(self._job.steps, largest=self._job.host.limits.step_bytes)
        return self._steps

    @property
    def steps(self) -> Steps:
        """The durable steps of this run; for the runtime's own parts."""
        return self.get_steps()

    # -- facts about the run

    @property
    def job(self) -> Job:
        """The job itself; for the runtime's own parts."""
        return self._job

    @property
    def job_id(self) -> str:
        """The job's id; the same in every run."""
        return self._job.spec.job_id

    @property
    def run(self) -> int:
        """Which run of the job this is, from 1."""
        return self._job.run

    @property
    def agent(self) -> str:
        """The agent and its version, as `name@version`."""
        return self._job.spec.agent

    @property
    def principal(self) -> str:
        """The principal that submitted the job."""
        return self._job.spec.principal

    @property
    def trace(self) -> str:
        """The id of the trace that this job belongs to; pass it on in calls to other services."""
        return self._job.spec.trace

    @property
    def parent_job_id(self) -> str | None:
        """The job that delegated this one."""
        return self._job.spec.parent

    @property
    def cancelled(self) -> bool:
        """Whether the job is being stopped. The agent also gets a `CancelledError` where it waits."""
        return self._job.stopping is not None

    @property
    def lease(self) -> dict[str, list[str]]:
        """The capabilities granted to the job, each with its patterns."""
        return self._job.lease.wire()

    @property
    def budget(self) -> dict[str, str]:
        """The rest of the budget per currency, as exact decimals."""
        return self._job.budget.counters()

    @property
    def credentials(self) -> list[dict[str, Any]]:
        """The credentials provisioned for this job (9.8)."""
        return [dict(credential) for credential in self._job.credentials or ()]

    async def rotate_credential(self, id: str) -> dict[str, Any]:
        """
        Replace a credential that its endpoint no longer accepts, and return it with its new value.

        Sessions of the job's principal that are subscribed to the job receive the new value; the old value is retired.

        Raises:
            ValueError: the job has no credential with this id.
            InternalError: the provider failed; the old value stays in use.

        """
        if all(one["id"] != id for one in self._job.credentials or ()):
            raise ValueError(f"the job has no credential {id!r}")
        return await self._credentials.rotate(self._job, id)

    # -- events

    async def log(self, message: str, level: str = "info") -> None:
        """Report a log message."""
        await self._emit("log", {"level": level, "message": str(message)})

    async def thought(self, text: str) -> None:
        """Report a step of the agent's reasoning."""
        await self._emit("thought", {"text": str(text)})

    async def status(self, phase: str, message: str | None = None) -> None:
        """Report the phase that the job has entered."""
        await self._emit("status", _present(phase=str(phase), message=message))

    async def progress(
        self,
        current: float,
        total: float | None = None,
        *,
        units: str | None = None,
        message: str | None = None,
    ) -> None:
        """
        Report progress: `current` of `total` units; omit `total` if it is unknown.

        Raises:
            InvalidRequestError: a value is not a finite number.

        """
        body = {"current": number_on_wire(current, "current")}
        if total is not None:
            body["total"] = number_on_wire(total, "total")
        if current < 0:
            raise ValueError("progress must not be negative")
        await self._emit("progress", body | _present(units=units, message=message))

    async def metric(
        self,
        name: str,
        value: object,
        unit: str | None = None,
        dimensions: Mapping[str, object] | None = None,
    ) -> None:
        """
        Report a measurement. A metric whose name begins with `cost.` reduces the budget in its unit (9.6).

        A negative cost does not change the budget. A cost that is too large to be counted uses it up.

        Raises:
            InvalidRequestError: the value is not a finite number.

        """
        job = self._job
        counts = is_cost(name) and unit in job.budget.left
        if counts:
            job.budget = job.budget.spend(unit, value)
        body = _present(name=name, value=number_on_wire(value), unit=unit, dimensions=dimensions)
        await self._emit("metric", body)
        if counts:
            remaining = number_on_wire(job.budget.left[str(unit)])
            await self._emit("metric", {"name": "cost.budget.remaining", "value": remaining, "unit": unit})

    async def artifact(
        self, uri: str, content_type: str, *, byte_size: int | None = None, sha256: str | None = None
    ) -> None:
        """Report the location of something that the job has produced."""
        await self._emit(
            "artifact_ref", _present(uri=uri, content_type=content_type, byte_size=byte_size, sha256=sha256)
        )

    async def event(self, kind: str, body: Mapping[str, object]) -> None:
        """Report an event of a vendor-specific kind; the kind begins with `x-vendor.`."""
        if not kind.startswith("x-vendor."):
            raise ValueError("the kind of a vendor-specific event must begin with 'x-vendor.'")
        await self._emit(kind, dict(body))

    async def tool_call(self, tool: str, args: object = None, *, call_id: str | None = None) -> str:
        """
        Report that a tool is about to be called, and return the call's id for `tool_result`.

        One of the lease's `tool.call` patterns must match the tool. A job that was submitted without a lease has the runtime's
        `default_lease`, which allows every tool.

        Raises:
            PermissionDeniedError, LeaseExpiredError, BudgetExhaustedError: the lease does not allow the call. The
                refusal is also reported as the call's result.

        """
        call_id = call_id or new_id("call")
        self._calls[call_id] = None
        await self._emit(
            "tool_call", {"tool": tool, "args": {} if args is None else args, "call_id": call_id}
        )
        job = self._job
        error = job.lease.check("tool.call", tool, job.now(), job.budget)
        if error is not None:
            raise self.report_refusal(error, call_id)
        return call_id

    async def tool_result(
        self,
        call_id: str,
        result: object = None,
        *,
        error: BaseException | type[BaseException] | Mapping[str, object] | None = None,
    ) -> None:
        """
        Report the result of a tool call. An error here does not end the job; the agent handles it (R7).

        `error` may be any exception; the text of a foreign one is not sent.
        """
        self._calls.pop(call_id, None)
        body = (
            {"call_id": call_id, "result": result}
            if error is None
            else _failed(call_id, error, self._job.secrets)
        )
        await self._emit("tool_result", body)

    # -- authority

    def authorize(self, capability: str, target: str, *, call_id: str | None = None) -> None:
        """
        Raise unless the lease covers the target; call this before every action that needs authority.

        A refusal is also reported as the `tool_result` of the call that it belongs to (R8): `call_id`, or the newest
        call without a result. The agent may continue without the action, except after the lease has expired: then the
        job ends whatever the agent does.

        Raises:
            PermissionDeniedError: no pattern of the lease covers the target.
            LeaseExpiredError: the lease has expired.
            BudgetExhaustedError: a budget of the lease is used up.

        """
        job = self._job
        error = job.lease.check(capability, target, job.now(), job.budget)
        if error is not None:
            raise self.report_refusal(error, call_id)

    def report_refusal(self, error: ARCPError, call_id: str | None = None) -> ARCPError:
        """Report a refusal as a `tool_result`, and return the error for the caller to raise."""
        call_id = call_id or next(reversed(self._calls), None) or new_id("call")
        self._calls.pop(call_id, None)
        self._job.emit("tool_result", _failed(call_id, error, self._job.secrets))
        if error.code == "LEASE_EXPIRED" and self._job.expired is None:
            # 9.5: the agent gets the grace period to clean up; then the job ends.
            self._job.expired = error
            self._job.after(self._job.host.limits.cancel_grace, self._job.stop, error)
        return error

    async def delegate(
        self,
        agent: str,
        input: object = None,
        *,
        lease: Mapping[str, Sequence[str]] | None = None,
        expires_at: str | None = None,
        max_runtime_sec: float | None = None,
        key: str | None = None,
    ) -> Any:
        """
        Run another agent's job under a part of this job's lease, wait for it, and return its result.

        Without `lease`, the other job gets what this job has of the capabilities in the runtime's `default_lease`. If this
        job is started again after its node died, the same delegation joins the job that it has started, or returns its outcome.
        It is recognised by the agent's name with `key`, or with its count.

        Raises:
            ReplayMismatchError: before a restart, this delegation had another input.
            PermissionDeniedError: no `agent.delegate` pattern of the lease covers the agent.
            LeaseSubsetViolationError: the requested lease exceeds this job's lease.
            FaultError: the delegated job failed, with the error that its own client would get.

        """
        return await self._delegate(
            self,
            agent,
            input,
            lease=lease,
            expires_at=expires_at,
            max_runtime=max_runtime_sec,
            key=key,
        )

    # -- durable steps

    @property
    def attempt(self) -> int:
        """How often this run was started, this time included: more than 1 after another node took it over, or an answer."""
        return self._job.steps.attempt

    @property
    def replaying(self) -> bool:
        """Whether this start has not reached everything yet that an earlier one had finished."""
        return self._job.steps.replaying

    @property
    def key(self) -> str | None:
        """The key of the step or effect that is running, for a service that honours keys; the same after a restart."""
        return current_key()

    async def step(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        key: str | int | None = None,
        repeat: bool = False,
        verify: Callable[..., Any] | None = None,
        timeout: float | timedelta | None = None,  # noqa: ASYNC109 - it cancels nothing
        retry: int = 1,
    ) -> Any:
        """
        Call a function once, however often this run is started, and return its result as it reads back from JSON.

            receipt = await ctx.step("charge", charge, order, key=order["id"], verify=find_charge)

        Args:
            name: the step. Several steps with one name are told apart by `key`, or by their order.
            function: called with `args`; a coroutine function, or a plain one that does not block.
            args: the arguments, whose digest is stored.
            key: tells this step from others with its name, in any order: a tool call's id, for example.
            repeat: whether it may be called again if the node died during the call: model calls and reads.
            verify: called with `args` if it is not known whether the call happened. Returns the result, or True, if it did;
                False if it did not; None if that is not known.
            timeout: seconds in which the call can have its effect; 60 without it. Before their end, `verify` is not believed
                when it says that a lost call did not happen. The function is not cancelled, but our clients send nothing later.
            retry: how often it is tried if it failed without effect and may succeed later.

        Raises:
            ReplayMismatchError: before a restart, this step was called with other arguments. Nothing was called.
            EffectUnknownError: it is not known whether the step happened. The job ends with `executed` maybe.

        """
        return await self.steps.run(
            name, function, args, key=key, repeat=repeat, verify=verify, timeout=timeout, retry=retry
        )

    async def sleep(self, duration: float | timedelta, *, key: str | int | None = None) -> None:
        """Wait so many seconds, counted from the first start of this wait."""
        await self.steps.sleep(duration, key)

    async def signal(
        self,
        name: str,
        *,
        timeout: float | timedelta = DAY,  # noqa: ASYNC109 - of the wait, which is stored
        key: str | int | None = None,
    ) -> Any:
        """
        Wait for a signal of the job's owner, and return its value; the same when the run is started again.

            if await ctx.signal("approved", timeout=86_400):
                receipt = await ctx.step("charge", charge, order)

        `client.signal` and `amends runtime signal` send it, also before the agent waits. Each call receives another signal, the
        oldest first.

        Args:
            name: the signal's name.
            timeout: seconds, counted from the first start of this wait; a day without it.
            key: tells this wait from others with its name, in any order.

        Raises:
            TimeoutError: there was none in time (`amends.errors.TimeoutError`); again in every start.

        """
        return await self.steps.signal(name, partial(receive, self._job), timeout, key)

    async def now(self) -> float:
        """Return the time in seconds since 1970; the same when the run is started again."""
        return await self.steps.now()

    async def random(self) -> float:
        """Return a random number from 0 to 1; the same when the run is started again."""
        return await self.steps.random()

    async def uuid(self) -> str:
        """Return a random UUID; the same when the run is started again."""
        return await self.steps.uuid()

    # -- large results

    def result_chunks(self) -> ResultStream:
        """Return the stream for the job's result; use it with `async with`."""
        if self._stream is None:
            self._stream = ResultStream(self._job)
        return self._stream

    async def stream_from(self, chunks: AsyncIterator[str | bytes]) -> None:
        """Write everything that an async generator yields to the result stream."""
        stream = self.result_chunks()
        async for chunk in chunks:
            await stream.write(chunk)

    @property
    def streams(self) -> bool:
        """Whether the agent has begun to stream its result."""
        return self._stream is not None

    async def close(self) -> None:
        """Complete the streamed result, if there is one, after the agent has returned."""
        if self._stream is not None:
            await self._stream.close()

    @property
    def streamed(self) -> tuple[str, int] | None:
        """Id and size of the streamed result; None if the job did not stream one."""
        return None if self._stream is None else (self._stream.result_id, self._stream.size)

    async def _emit(self, kind: str, body: dict[str, object]) -> None:
        job = self._job
        job.emit(kind, body)
        if job.followers or job.outbox:
            await job.wait_for_room()


def _present(**members: object) -> dict[str, object]:
    return {name: value for name, value in members.items() if value is not None}


def _failed(
    call_id: str, error: BaseException | type[BaseException] | Mapping[str, object], secrets: Collection[str]
) -> dict[str, object]:
    if isinstance(error, type) and issubclass(error, BaseException):
        error = error()
    if isinstance(error, BaseException):
        fault = join(error, lambda part: part.fault if isinstance(part, FaultError) else from_exception(part))
        return {"call_id": call_id, "error": without_secrets(encode_error(fault), secrets)}
    given: object = error
    if not isinstance(given, Mapping) or not all(
        isinstance(given.get(name), str) for name in ("code", "message")
    ):
        raise TypeError("error= needs an exception, or a mapping with the members 'code' and 'message'")
    payload = json_value(dict(error))
    payload.setdefault("retryable", is_retryable_by_default(payload["code"]))
    return {"call_id": call_id, "error": without_secrets(payload, secrets)}
