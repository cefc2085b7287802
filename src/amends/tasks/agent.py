"""
An agent: a name, and what it can do.

    calendar = Agent("calendar-agent", mcp={"google-calendar": "https://calendar.example/mcp"})

    @calendar.capability(requires=["google-calendar"], keyed=True)
    async def create_event(event: Event, ctx: Context) -> dict: ...

An agent somewhere else (`amends.tasks.remote`) is the same thing with capabilities that call over a wire, so whoever
hands out tasks sees one kind.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from amends.core.policy import Policy
from amends.errors.task import AgentBusyError, CapabilityNotFoundError
from amends.tasks.capability import Capability, Hook, input_type
from amends.tasks.connections import Connections
from amends.tasks.fallbacks import Fallback, read_fallbacks
from amends.tasks.inputs import checker

if TYPE_CHECKING:
    from amends.tasks.documents import Response

__all__ = ["Agent"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(slots=True)
class _Hands:
    """How many an agent works on at once, in this process."""

    most: int | None
    busy: int = 0
    usual: float = 1.0
    """Seconds a call usually takes: when it makes sense to come back."""


class Agent:
    """A named set of capabilities."""

    dynamic = False
    """Whether what it can do is known elsewhere, and has to be asked for there."""

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
    ) -> None:
        """
        Args:
            name: as in S3: "content-agent".
            mcp: MCP servers by name: whatever `amends.bindings.mcp.Client` connects to, or a function that
                returns an unopened client.
            concurrency: how many calls at once in this process; more are answered AGENT_BUSY.
            setup: sets up what is missing after MCP_NOT_CONNECTED; gets the fault if it takes one. False or an
                exception: it did not work.
            reauth: signs in again after MCP_AUTH_FAILED; the same.
            fallbacks: the path of a CLAUDE.md or AGENTS.md with a section "Fallback Behaviors", or such fallbacks.
            policy: how far recovery may go with this agent's calls; the orchestrator's without one.
            timeout: seconds for one call.

        Raises:
            FallbackError: the file's section cannot be understood; it names the file and the line.
        """
        if not name:
            raise ValueError("an agent has a name")
        if concurrency is not None and concurrency < 1:
            raise ValueError("concurrency counts calls at once: it is at least 1")
        self.name = name
        self.setup, self.reauth = setup, reauth
        self.policy, self.timeout = policy, timeout
        self.capabilities: dict[str, Capability] = {}
        self.connections = Connections(name, mcp or {})
        if isinstance(fallbacks, str | Path):
            fallbacks = read_fallbacks(fallbacks)
        self.fallbacks: tuple[Fallback, ...] = tuple(fallbacks or ())
        self._hands = _Hands(concurrency)

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
        **promises: Any,
    ) -> Any:
        """
        Declare that this agent can do something.

        Args:
            name: what it is called; the function's name without one.
            input: the type of its input, checked with msgspec; the annotation of the first parameter without one.
            requires: MCP servers of this agent that have to be connected.
            fallback: another way, or several in order, where it cannot be done.
            promises: `read_only`, `idempotent`, `keyed`, `undo`, `verify`, `timeout`, `policy` as in `Capability`.
        """
        if callable(name):
            self._add(name, name.__name__, input, (), (), {})
            return name
        fallbacks = () if fallback is None else (fallback,) if callable(fallback) else tuple(fallback)
        needed = tuple(requires)
        unknown = [each for each in needed if each not in self.connections.targets]
        if unknown:
            raise ValueError(f"{self.name} has no MCP server {unknown[0]!r}: name it in Agent(mcp=…)")

        def declare(function: F) -> F:
            self._add(function, name or function.__name__, input, needed, fallbacks, promises)
            return function

        return declare

    def _add(
        self,
        function: Callable[..., Any],
        name: str,
        kind: Any,
        requires: tuple[str, ...],
        fallbacks: tuple[Hook, ...],
        promises: dict[str, Any],
    ) -> None:
        if kind is inspect.Parameter.empty:
            kind = input_type(function)
        promises.setdefault("timeout", self.timeout)
        promises.setdefault("policy", self.policy)
        self.add(
            Capability(
                name=name,
                call=function,
                check=checker(kind),
                requires=requires,
                fallbacks=fallbacks,
                **promises,
            )
        )

    def add(self, capability: Capability) -> None:
        """Declare a capability that is there already."""
        if capability.name in self.capabilities:
            raise ValueError(f"{self.name} can {capability.name!r} already")
        self.capabilities[capability.name] = capability

    async def find(self, type: str) -> Capability:
        """
        The capability of that name. Agents elsewhere may look it up there.

        Raises:
            FaultError: CAPABILITY_NOT_FOUND, or why nobody can tell.
        """
        found = self.capabilities.get(type)
        if found is None:
            raise CapabilityNotFoundError(details={"agent": self.name, "capability": type})
        return found

    def offers(self, type: str) -> bool:
        """Whether it may have that capability, without asking anybody."""
        return type in self.capabilities

    async def close(self) -> None:
        """Close its connections."""
        await self.connections.close()

    async def working(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """
        `call`, counted among those this agent works on.

        Raises:
            FaultError: AGENT_BUSY, with the time after which it makes sense to come back.
        """
        hands = self._hands
        if hands.most is not None and hands.busy >= hands.most:
            raise AgentBusyError(details={"agent": self.name}, retry_after=round(max(0.05, hands.usual), 3))
        hands.busy += 1
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            return await call()
        finally:
            hands.busy -= 1
            hands.usual += 0.2 * (loop.time() - began - hands.usual)

    async def handle(self, request: Any) -> Response:
        """
        One task request of S3, tried once, as a response (T4): for agents that others hand tasks to directly.

        Never raises for what a request, an agent or an upstream can do wrong.
        """
        from amends.tasks.attempt import answer

        return await answer(self, request)
