"""
An agent: a name and a set of capabilities.

    calendar = Agent("calendar-agent", mcp={"google-calendar": "https://calendar.example/mcp"})

    @calendar.capability(requires=["google-calendar"], keyed=True)
    async def create_event(event: Event, ctx: Context) -> dict: ...

Remote agents (`amends.tasks.remote`) are subclasses whose capabilities call another service, so the orchestrator uses
all agents in the same way.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, overload

from msgspec.structs import replace

from amends.core.enums import Executed
from amends.core.policy import Policy
from amends.core.wrong_calls import explains_wrong_calls
from amends.errors import CancelledError
from amends.errors.base import FaultError
from amends.errors.task import AgentBusyError, CapabilityNotFoundError
from amends.errors.task import TimeoutError as TaskTimeoutError
from amends.foreign.in_doubt import lost_call
from amends.logs import logger
from amends.serving.server_errors import is_about_a_part
from amends.serving.tracing import incoming
from amends.tasks.capability import Capability, Hook, input_type
from amends.tasks.connections import Connections
from amends.tasks.context import Context, Question
from amends.tasks.documents import Metadata, Request, Response, Status
from amends.tasks.events import TaskEvent, attempt_scope, publish_failure, publish_refusal
from amends.tasks.fallbacks import Fallback, read_fallbacks
from amends.tasks.faults import to_task_fault, unstorable_result
from amends.tasks.inputs import checker
from amends.tasks.invoke import THREADS, NoThreadError, Threads, invoke
from amends.tasks.retry_policy import check_retry_policy
from amends.tasks.values import UnstorableError, to_json_value

__all__ = ["Agent"]

F = TypeVar("F", bound=Callable[..., object])

_log = logger("amends.tasks")
_BUSY_SECONDS = 1.0
"""`retry_after` if all threads of the agent are in use."""


@dataclass(slots=True)
class _Slots:
    """The concurrency limit of an agent in this process, and its use."""

    limit: int | None
    used: int = 0
    average: float = 1.0
    """Seconds that a call takes on average; AGENT_BUSY suggests to wait that long."""


class Agent:
    """
    A named set of capabilities, which are functions with what may be assumed about calling them.

        trains = Agent("trains")

        @trains.capability("search", read_only=True)
        async def search(payload, ctx):
            return ["09:12"]
    """

    dynamic = False
    """Whether capabilities are looked up at another service, so that `capabilities` may be incomplete."""

    @explains_wrong_calls
    def __init__(
        self,
        name: str,
        *,
        mcp: Mapping[str, object] | None = None,
        concurrency: int | None = None,
        setup: Hook | None = None,
        reauth: Hook | None = None,
        fallbacks: str | Path | Iterable[Fallback] | None = None,
        policy: Policy | None = None,
        timeout: float | None = None,
        threads: int = THREADS,
        version: str | None = None,
    ) -> None:
        """
        Args:
            name: the name of the agent, for example "content-agent".
            mcp: MCP servers by name: whatever `amends.bindings.mcp.Client` connects to, or a function that
                returns an unopened client.
            concurrency: calls at once in this process; further calls fail with AGENT_BUSY.
            setup: called after MCP_NOT_CONNECTED to set up what is missing; gets the fault if it takes an argument.
                It failed if it returns False or raises an exception.
            reauth: called after MCP_AUTH_FAILED to sign in again, in the same way.
            fallbacks: the path of a CLAUDE.md or AGENTS.md with a section "Fallback Behaviors", or a list of fallbacks.
            policy: the recovery policy of this agent's calls; by default the orchestrator's.
            timeout: seconds for one call.
            threads: functions that are not async run in threads of the agent; this is their number. Further calls fail
                with AGENT_BUSY.
            version: the version of the agent's code, recorded in the logs of its tasks.

        Raises:
            FallbackError: the section of the file cannot be parsed; the message names the file and the line.
        """
        if not name:
            raise ValueError("an agent needs a name")
        if concurrency is not None and concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        self.name = name
        self.setup, self.reauth = setup, reauth
        self.policy, self.timeout, self.version = policy, timeout, version
        self.threads = Threads(threads, name)
        self.capabilities: dict[str, Capability] = {}
        self.connections = Connections(name, mcp or {})
        if isinstance(fallbacks, str | Path):
            fallbacks = read_fallbacks(fallbacks)
        self.fallbacks: tuple[Fallback, ...] = tuple(fallbacks or ())
        self._slots = _Slots(concurrency)

    def __repr__(self) -> str:
        return f"Agent({self.name!r}, capabilities={sorted(self.capabilities)})"

    @overload
    def capability(self, function: F, /) -> F: ...
    @overload
    def capability(
        self,
        name: str | None = None,
        /,
        *,
        input: object = ...,
        read_only: bool = ...,
        idempotent: bool = ...,
        keyed: bool = ...,
        requires: Iterable[str] = ...,
        fallback: Hook | Iterable[Hook] | None = ...,
        undo: Hook | None = ...,
        verify: Hook | None = ...,
        timeout: float | None = ...,
        policy: Policy | None = ...,
    ) -> Callable[[F], F]: ...
    def capability(
        self,
        name: Any = None,
        /,
        *,
        input: object = inspect.Parameter.empty,
        requires: Iterable[str] = (),
        fallback: Hook | Iterable[Hook] | None = None,
        **options: Any,
    ) -> Any:
        """
        Declare a capability of this agent.

        Args:
            name: the capability's name; by default the function's name.
            input: the type of the input, checked with msgspec, or a pydantic model; by default the annotation of the first parameter.
            requires: MCP servers of this agent that have to be connected.
            fallback: a function, or several in order, to call when the capability fails and is not tried again.
            options: `read_only`, `idempotent`, `keyed`, `undo`, `verify`, `timeout`, `policy` as in `Capability`.
        """
        if callable(name):
            if options or requires or fallback is not None or input is not inspect.Parameter.empty:
                raise TypeError("pass either a function or options: @agent.capability(timeout=…)")
            self._add(name, name.__name__, input, (), (), {})
            return name
        fallbacks = () if fallback is None else (fallback,) if callable(fallback) else tuple(fallback)
        needed = tuple(requires)
        unknown = [each for each in needed if each not in self.connections.targets]
        if unknown:
            raise ValueError(f"{self.name} has no MCP server {unknown[0]!r}: name it in Agent(mcp=…)")

        def declare(function: F) -> F:
            self._add(function, name or function.__name__, input, needed, fallbacks, options)
            return function

        return declare

    def _add(
        self,
        function: Hook,
        name: str,
        kind: object,
        requires: tuple[str, ...],
        fallbacks: tuple[Hook, ...],
        options: dict[str, Any],
    ) -> None:
        if kind is inspect.Parameter.empty:
            kind = input_type(function)
        options.setdefault("timeout", self.timeout)
        options.setdefault("policy", self.policy)
        self.add(
            Capability(
                name=name,
                call=function,
                check=checker(kind),
                requires=requires,
                fallbacks=fallbacks,
                **options,
            )
        )

    def add(self, capability: Capability) -> None:
        """
        Add a capability.

        Raises:
            ValueError: the agent has a capability of that name.
        """
        if capability.name in self.capabilities:
            raise ValueError(f"{self.name} already has a capability {capability.name!r}")
        self.capabilities[capability.name] = capability

    def relay(self, name: str, call: Hook, **options: Any) -> Capability:
        """Add or replace a capability that is one call of another service; `options` as in `Capability`."""
        options = {"timeout": self.timeout, "policy": self.policy, "relays": True, **options}
        made = self.capabilities[name] = Capability(name=name, call=call, **options)
        return made

    async def find(self, type: str) -> Capability:
        """
        Return the capability of that name. Remote agents may look it up at their service.

        Raises:
            FaultError: CAPABILITY_NOT_FOUND, or the reason why it could not be looked up.
        """
        found = self.capabilities.get(type)
        if found is None:
            raise CapabilityNotFoundError(details={"agent": self.name, "capability": type})
        return found

    async def close(self) -> None:
        """Close the agent's connections."""
        await self.connections.close()

    async def perform(
        self,
        capability: Capability,
        payload: object,
        ctx: Context,
        timeout: float | None = None,  # noqa: ASYNC109
        hold: Callable[[], Awaitable[None]] | None = None,
    ) -> object:
        """
        Call a capability once (T4) and return its result as it reads back from JSON.

        The input is checked and the required MCP servers are connected first.

        Args:
            capability: the capability.
            payload: the input.
            ctx: the context of the attempt.
            timeout: seconds for the attempt.
            hold: checks immediately before the call whether this worker may still make it.

        Raises:
            FaultError: the failure, in the task vocabulary.
            Question: the capability needs an answer.
        """
        limit = asyncio.timeout(timeout)
        try:
            value = payload if capability.check is None else capability.check(payload)
            async with limit:
                await self.connect(capability, ctx)
                result = await self._call(capability, value, ctx, hold)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # This task was not cancelled: the capability raised the CancelledError of something it awaited.
            raise FaultError.from_fault(to_task_fault(CancelledError(), self.name, capability.name)) from None
        except Exception as exc:
            raised: Exception = exc
            if limit.expired() and isinstance(exc, TimeoutError) and timeout is not None:
                raised = TaskTimeoutError(
                    details={"timeout_ms": round(timeout * 1000)},
                    executed=Executed.MAYBE if ctx.called else Executed.NO,
                )
            elif isinstance(exc, NoThreadError):
                ctx.called = False
                raised = AgentBusyError(details={"agent": self.name}, retry_after=_BUSY_SECONDS)
            fault = to_task_fault(raised, self.name, capability.name, relays=capability.relays)
            if not capability.repeatable and (lost := lost_call(raised)) is not None:
                fault = replace(fault, in_doubt=True, raised=fault.raised or lost)
            if not capability.relays and is_about_a_part(raised, fault):
                # The function may have had an effect before the call that failed, whatever the called service says about
                # that call (M3, "Failures from inside a handler").
                fault = replace(fault, executed=Executed.NO if capability.read_only else Executed.MAYBE)
            raise FaultError.from_fault(fault) from exc
        try:
            return to_json_value(result)
        except UnstorableError as problem:
            _log.error("%s/%s: the result cannot be stored: %s", self.name, capability.name, problem.reason)
            raise FaultError.from_fault(unstorable_result(self.name, capability.name, problem)) from None

    async def connect(self, capability: Capability, ctx: Context) -> None:
        """
        Connect the MCP servers that a capability requires, and put them into its context.

        Raises:
            FaultError: one of them cannot be connected.
        """
        if capability.requires:
            ctx.mcp = {
                name: await self.connections.connect(name, capability.name) for name in capability.requires
            }

    async def _call(
        self,
        capability: Capability,
        value: object,
        ctx: Context,
        hold: Callable[[], Awaitable[None]] | None,
    ) -> object:
        """Call the function within the agent's concurrency limit. Raises AGENT_BUSY if the agent is at its limit."""
        slots = self._slots
        if slots.limit is not None and slots.used >= slots.limit:
            raise AgentBusyError(details={"agent": self.name}, retry_after=round(max(0.05, slots.average), 3))
        slots.used += 1
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            if hold is not None:
                await hold()
            ctx.called = True
            return await invoke(
                capability.call, value, ctx, threads=self.threads, key=ctx.key or ctx.task, wait=False
            )
        finally:
            slots.used -= 1
            slots.average += 0.2 * (loop.time() - began - slots.average)

    async def handle(self, request: object) -> Response:
        """
        Handle one task request of the agent error contract with one attempt and return the response (T4).

        For agents that receive requests directly, without an orchestrator. Failures of the request, the agent or an
        upstream are returned in the response and never raised.
        """
        given = request.get("id") if isinstance(request, Mapping) else None
        id, type = (given if isinstance(given, str) else ""), ""
        metadata = Metadata(started=time.time(), agent=self.name)
        attempt: TaskEvent | None = None
        try:
            read = Request.read(request)
            id, type = read.id, read.type
            if read.retry_policy is not None:
                check_retry_policy(read.retry_policy)
            capability = await self.find(type)
            name, key = capability.name, read.idempotency_key or id
            ctx = Context(task=id, agent=self.name, capability=name, step_name=name, key=key)
            attempt = TaskEvent(
                kind="attempt",
                at=time.time(),
                task=id,
                agent=self.name,
                capability=name,
                step=name,
                attempt=1,
                trace=incoming(),
            )
            with attempt_scope(attempt):
                result = await self.perform(capability, read.payload, ctx, capability.timeout)
        except Question as asked:
            wanted: dict[str, object] = {"step": ctx.step_name, "kind": "answer", "question": asked.question}
            return Response(id=id, status=Status.INPUT_REQUIRED, input=wanted, metadata=metadata)
        except Exception as exc:  # noqa: BLE001 - a remote agent may raise anything while a capability is looked up
            fault = exc.fault if isinstance(exc, FaultError) else to_task_fault(exc, self.name, type)
            ended = replace(metadata, completed=time.time())
            if attempt is None:
                publish_refusal(fault, at=time.time(), task=id, agent=self.name, capability=type or None)
            else:
                publish_failure(attempt, fault, at=time.time())
            return Response(id=id, status=Status.FAILED, error=fault, metadata=ended)
        ended = replace(metadata, completed=time.time())
        return Response(id=id, status=Status.COMPLETED, result=result, metadata=ended)
