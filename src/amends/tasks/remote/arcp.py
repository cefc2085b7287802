"""An ARCP runtime as an agent: its agents are the capabilities, and its jobs are kept by the step's key."""

from __future__ import annotations

import math
from typing import Any

from amends.errors.base import FaultError
from amends.errors.task import CapabilityNotFoundError
from amends.tasks.agent import Agent, Capability
from amends.tasks.context import Context
from amends.tasks.held import Held

__all__ = ["ArcpAgent"]

_OVER = frozenset({"HEARTBEAT_LOST", "RESUME_WINDOW_EXPIRED", "UNAUTHENTICATED"})
"""What a session that is over says: the next call opens a new one."""


class ArcpAgent(Agent):
    """
    An agent behind ARCP.

        summaries = ArcpAgent("summary-runtime", "wss://runtime.example/arcp", token="…")

    A capability is the name of an agent on the runtime. Each step is a job under its own idempotency key, so a try after a
    crash finds the job of the one before instead of starting another.
    """

    dynamic = True

    def __init__(self, name: str, runtime: Any, *, token: str | None = None, **options: Any) -> None:
        """
        Args:
            name: the agent's name.
            runtime: a URL or a `Runtime`, as `amends.arcp.connect` takes it.
            token: the bearer token.
            options: as for `Agent`.
        """
        super().__init__(name, **options)
        self._runtime, self._token = runtime, token
        self._held: Held | None = None

    async def find(self, type: str) -> Capability:
        """The runtime's agent of that name."""
        found = self.capabilities.get(type)
        if found is None:
            offered = (await self.client()).agents
            if offered and type.partition("@")[0] not in offered:
                raise CapabilityNotFoundError(details={"agent": self.name, "capability": type})
            found = self.capabilities[type] = Capability(
                name=type, call=_Call(self, type), keyed=True, timeout=self.timeout, policy=self.policy
            )
        return found

    async def client(self) -> Any:
        """An open session."""
        if self._held is None or not self._held.alive:
            from amends.arcp import connect

            self._held = Held(lambda: connect(self._runtime, token=self._token))
        try:
            return await self._held.ready()
        except BaseException:
            self._held = None
            raise

    def drop(self) -> None:
        """Let go of a session that is over."""
        held, self._held = self._held, None
        if held is not None:
            held.stop()

    async def close(self) -> None:
        """Close the session."""
        held, self._held = self._held, None
        if held is not None:
            held.stop()
            await held.ended()
        await super().close()


class _Call:
    def __init__(self, agent: ArcpAgent, type: str) -> None:
        self._agent, self._type = agent, type

    async def __call__(self, payload: Any, ctx: Context) -> Any:
        client = await self._agent.client()
        left = ctx.time_left
        try:
            job = await client.submit(
                self._type,
                payload,
                idempotency_key=ctx.key,
                max_runtime_sec=None if left is None else max(1, math.ceil(left)),
            )
            return await job.done
        except FaultError as error:
            if error.fault.code in _OVER:
                self._agent.drop()
            raise
