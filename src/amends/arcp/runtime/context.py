"""What an agent is given beside its input: words for what it does, and the only door to what it may do."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from amends.arcp.runtime.streaming import ResultStream
from amends.arcp.wire import new_id
from amends.core.fault import Fault
from amends.dialects import arcp as dialect
from amends.dialects.translation import translate
from amends.errors import FaultError
from amends.errors.arcp import ARCPError

if TYPE_CHECKING:
    from amends.arcp.runtime.job import Job

__all__ = ["Context"]


class Context:
    """
    One run of one job, as its agent sees it.

    What it says goes to everybody who listens, in order, after it was written down. A call waits only while somebody
    who listens cannot keep up.
    """

    __slots__ = ("_calls", "_job", "_stream", "deadline")

    def __init__(self, job: Job, deadline: float | None) -> None:
        self._job = job
        self._calls: dict[str, None] = {}
        self._stream: ResultStream | None = None
        self.deadline = deadline
        """When the run is stopped, by the event loop's clock; None when it never is."""

    # -- what is known

    @property
    def job_id(self) -> str:
        """The job's id; the same in every run."""
        return self._job.order.job_id

    @property
    def run(self) -> int:
        """Which run of the job this is, from 1."""
        return self._job.run

    @property
    def agent(self) -> str:
        """`name@version`"""
        return self._job.order.agent

    @property
    def principal(self) -> str:
        """Who asked for the job."""
        return self._job.order.principal

    @property
    def trace(self) -> str:
        """The id of the trace this job belongs to; hand it on to whatever is called."""
        return self._job.order.trace

    @property
    def parent_job_id(self) -> str | None:
        """The job that delegated this one."""
        return self._job.order.parent

    @property
    def cancelled(self) -> bool:
        """Whether the job was told to stop. A `CancelledError` comes as well, wherever the agent waits."""
        return self._job.stopping is not None

    @property
    def lease(self) -> dict[str, list[str]]:
        """What was granted."""
        return self._job.lease.wire()

    @property
    def budget(self) -> dict[str, str]:
        """What is left, per currency, as exact decimals."""
        return self._job.budget.counters()

    @property
    def credentials(self) -> list[dict[str, Any]]:
        """The credentials provisioned for this job (9.8)."""
        return [dict(credential) for credential in self._job.credentials or ()]

    async def rotate_credential(self, id: str) -> dict[str, Any]:
        """
        Have a credential replaced, because its endpoint no longer takes it, and return it with its new value.

        Whoever listens on behalf of the job's principal is told the new value, and the old one becomes worthless.

        Raises:
            ValueError: the job has no credential of this id.
            InternalError: the provider cannot; the old value is what there is.

        """
        issued = self._job.node.credentials
        if issued is None or all(one["id"] != id for one in self._job.credentials or ()):
            raise ValueError(f"the job has no credential {id!r}")
        return await issued.rotate(self._job, id)

    # -- what can be said

    async def log(self, message: str, level: str = "info") -> None:
        """A line of the job's log."""
        await self._say("log", {"level": level, "message": message})

    async def thought(self, text: str) -> None:
        """A step of the agent's reasoning."""
        await self._say("thought", {"text": text})

    async def status(self, phase: str, message: str | None = None) -> None:
        """What the job is about now."""
        await self._say("status", _present(phase=phase, message=message))

    async def progress(
        self,
        current: float,
        total: float | None = None,
        *,
        units: str | None = None,
        message: str | None = None,
    ) -> None:
        """How far it is. Without a total, nobody knows how much there is."""
        if current < 0:
            raise ValueError("progress begins at 0")
        await self._say("progress", _present(current=current, total=total, units=units, message=message))

    async def metric(
        self, name: str, value: Any, unit: str | None = None, dimensions: Mapping[str, Any] | None = None
    ) -> None:
        """
        A measurement. One whose name begins with `cost.` is taken off the budget in its unit (9.6).

        A negative cost changes nothing: a budget only shrinks.
        """
        body = _present(name=name, value=_number(value), unit=unit, dimensions=dimensions)
        await self._say("metric", body)
        if name.startswith("cost.") and name != "cost.budget.remaining" and unit in self._job.budget.left:
            self._job.budget = left = self._job.budget.spend(unit, value)
            remaining = _number(left.left[str(unit)])
            await self._say("metric", {"name": "cost.budget.remaining", "value": remaining, "unit": unit})

    async def artifact(
        self, uri: str, content_type: str, *, byte_size: int | None = None, sha256: str | None = None
    ) -> None:
        """Where something the job has made can be found."""
        await self._say(
            "artifact_ref", _present(uri=uri, content_type=content_type, byte_size=byte_size, sha256=sha256)
        )

    async def event(self, kind: str, body: Mapping[str, Any]) -> None:
        """An event of a kind of your own: `x-vendor.…`"""
        if not kind.startswith("x-vendor."):
            raise ValueError("kinds of your own begin with 'x-vendor.'")
        await self._say(kind, dict(body))

    async def tool_call(self, tool: str, args: Any = None, *, call_id: str | None = None) -> str:
        """
        Say that a tool is about to be called, and return the id its result is told by.

        Where the lease names `tool.call`, the tool has to be among its patterns; otherwise only `authorize` decides.

        Raises:
            PermissionDeniedError, LeaseExpiredError, BudgetExhaustedError: it may not be called. The result says so.

        """
        call_id = call_id or new_id("call")
        self._calls[call_id] = None
        await self._say("tool_call", {"tool": tool, "args": {} if args is None else args, "call_id": call_id})
        if "tool.call" in self._job.lease.grants:
            self.authorize("tool.call", tool, call_id=call_id)
        return call_id

    async def tool_result(
        self, call_id: str, result: Any = None, *, error: FaultError | Mapping[str, Any] | None = None
    ) -> None:
        """What came of a call. An error here is the agent's to deal with: the job goes on (R7)."""
        self._calls.pop(call_id, None)
        body = {"call_id": call_id, "result": result} if error is None else _failed(call_id, error)
        await self._say("tool_result", body)

    # -- what may be done

    def authorize(self, capability: str, target: str, *, call_id: str | None = None) -> None:
        """
        Pass, or raise: call it before everything that needs authority.

        A refusal is also told as the `tool_result` of the call it belongs to (R8): `call_id`, else the call that
        has no result yet. The agent may go on without; only an expired lease ends the job, whatever the agent does.

        Raises:
            PermissionDeniedError: no pattern of the lease covers the target.
            LeaseExpiredError: the lease has come to its end.
            BudgetExhaustedError: a budget has.

        """
        job = self._job
        error = job.lease.check(capability, target, time.time(), job.budget)
        if error is not None:
            raise self.refused(error, call_id)

    def refused(self, error: ARCPError, call_id: str | None = None) -> ARCPError:
        """Tell a refusal, and hand it back to be raised."""
        call_id = call_id or next(reversed(self._calls), None) or new_id("call")
        self._calls.pop(call_id, None)
        self._job.emit("tool_result", _failed(call_id, error))
        if error.code == "LEASE_EXPIRED" and self._job.expired is None:
            # 9.5: it may unwind, and then it is over.
            self._job.expired = error
            self._job.after(self._job.node.limits.cancel_grace, self._job.stop, error)
        return error

    async def delegate(
        self,
        agent: str,
        input: Any = None,
        *,
        lease: Mapping[str, Any] | None = None,
        expires_at: str | None = None,
        max_runtime_sec: float | None = None,
    ) -> Any:
        """
        Have another agent do a part, under a part of this job's lease, and return its result.

        Raises:
            PermissionDeniedError: the lease does not name the agent under `agent.delegate`.
            LeaseSubsetViolationError: more was asked for than this job has.
            FaultError: the job failed; as its own client would get it.

        """
        from amends.arcp.runtime.delegation import delegated

        return await delegated(
            self,
            self._job,
            agent,
            input,
            lease=lease,
            expires_at=expires_at,
            max_runtime=max_runtime_sec,
        )

    # -- large results

    def result_chunks(self) -> ResultStream:
        """The job's result, piece by piece; use it with `async with`."""
        if self._stream is None:
            self._stream = ResultStream(self._job)
        return self._stream

    async def stream_from(self, chunks: AsyncIterator[str | bytes]) -> None:
        """The result is what an agent yields."""
        stream = self.result_chunks()
        async for chunk in chunks:
            await stream.write(chunk)

    async def close(self) -> None:
        """The agent is through: a result that was being streamed has all its pieces."""
        if self._stream is not None:
            await self._stream.close()

    @property
    def streamed(self) -> tuple[str, int] | None:
        """Id and size of a result that was streamed."""
        return None if self._stream is None else (self._stream.result_id, self._stream.size)

    async def _say(self, kind: str, body: dict[str, Any]) -> None:
        job = self._job
        job.emit(kind, body)
        if job.feeds or job.outbox:
            await job.room()


def _present(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _number(value: Any) -> Any:
    """A decimal as a number where that says the same, else as exact text; other numbers are what they are."""
    if not isinstance(value, Decimal):
        return value
    nearest = float(value)
    return nearest if Decimal(repr(nearest)) == value else f"{value:f}"


def _failed(call_id: str, error: FaultError | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(error, FaultError):
        fault: Fault = error.fault
        if fault.vocabulary != "arcp":
            fault, _ = translate(fault, to="arcp")
        return {"call_id": call_id, "error": dialect.encode(fault)}
    if not isinstance(error.get("code"), str) or not isinstance(error.get("message"), str):
        raise TypeError("an error has a code and a message (and retryable, details): pass those, or raise it")
    return {"call_id": call_id, "error": dict(error)}
