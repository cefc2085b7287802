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
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, overload

from amends.core.policy import Policy
from amends.errors.task import AgentBusyError, CapabilityNotFoundError
from amends.tasks.attempt import handle_request
from amends.tasks.capability import Capability, Hook, input_type
from amends.tasks.connections import Connections
from amends.tasks.documents import Response
from amends.tasks.fallbacks import Fallback, read_fallbacks
from amends.tasks.inputs import checker
from amends.tasks.threads import LIMIT, Threads

__all__ = ["Agent"]

F = TypeVar("F", bound=Callable[..., Any])


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

    def __init__(
        self,
        name: str,
        *,
        mcp: Mapping[str, Any] | None = None,
        concurrency: int | None = None,
        setup: Hook | None = None,
        reauth: Hook | None = None,
        fallbacks: str | Path | Iterable[Fallback] | None = None,
        policy: Policy | None = None,
        timeout: float | None = None,
        threads: int = LIMIT,
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
        input: Any = ...,
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
        input: Any = inspect.Parameter.empty,
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
        function: Callable[..., Any],
        name: str,
        kind: Any,
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

    def offers(self, type: str) -> bool:
        """Whether the agent is known to have that capability, without looking it up."""
        return type in self.capabilities

    async def close(self) -> None:
        """Close the agent's connections."""
        await self.connections.close()

    async def run_limited(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """
        Run `call` within the agent's concurrency limit.

        Raises:
            FaultError: AGENT_BUSY with `retry_after`, if the agent is at its limit.
        """
        slots = self._slots
        if slots.limit is not None and slots.used >= slots.limit:
            raise AgentBusyError(details={"agent": self.name}, retry_after=round(max(0.05, slots.average), 3))
        slots.used += 1
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            return await call()
        finally:
            slots.used -= 1
            slots.average += 0.2 * (loop.time() - began - slots.average)

    async def handle(self, request: Any) -> Response:
        """
        Handle one task request of the agent error contract with one attempt and return the response (T4).

        For agents that receive requests directly, without an orchestrator. Failures of the request, the agent or an
        upstream are returned in the response and never raised.
        """
        return await handle_request(self, request)
