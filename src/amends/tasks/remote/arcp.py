"""An ARCP runtime as an agent of the orchestrator. The runtime's agents are the capabilities."""

from __future__ import annotations

import math
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

from amends.core.crosswalk import ORIGINAL
from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault
from amends.errors.base import FaultError
from amends.errors.task import CapabilityNotFoundError
from amends.tasks.agent import Agent
from amends.tasks.capability import Capability
from amends.tasks.context import Context
from amends.tasks.persistent_client import PersistentClient

if TYPE_CHECKING:
    from amends.arcp import Client, Runtime

__all__ = ["ArcpAgent"]

_EXPIRED = "RESUME_WINDOW_EXPIRED"
_SESSION_OVER = frozenset({"HEARTBEAT_LOST", "UNAUTHENTICATED", _EXPIRED})
"""Codes after which the session cannot be used any more; the next call opens a new one."""


class ArcpAgent(Agent):
    """
    An agent that is called over ARCP.

        summaries = ArcpAgent("summary-runtime", "wss://runtime.example/arcp", token="…")

    A capability is the name of an agent of the runtime. Each step is one job with the step's idempotency key, so an attempt after
    a crash finds the earlier attempt's job instead of starting another one.
    """

    dynamic = True

    def __init__(
        self, name: str, runtime: Runtime | str, *, token: str | None = None, **options: Any
    ) -> None:
        """
        Args:
            name: the agent's name.
            runtime: a URL or a `Runtime`, as for `amends.arcp.connect`.
            token: the bearer token.
            options: as for `Agent`.
        """
        super().__init__(name, **options)
        self._runtime, self._token = runtime, token
        self._persistent = PersistentClient(self._session)

    def _session(self) -> AbstractAsyncContextManager[Client]:
        from amends.arcp import connect

        return connect(self._runtime, token=self._token)

    async def find(self, type: str) -> Capability:
        """Return the capability for the runtime's agent of that name."""
        found = self.capabilities.get(type)
        if found is None:
            offered = (await self._persistent.get()).agents
            if offered and type.partition("@")[0] not in offered:
                raise CapabilityNotFoundError(details={"agent": self.name, "capability": type})
            found = self.relay(type, partial(self.submit, type), keyed=True)
        return found

    async def submit(self, agent: str, payload: object, ctx: Context) -> object:
        """
        Submit one job, wait for it, and return its result.

        Raises:
            FaultError: the failure of the job or the runtime.
        """
        client, left = await self._persistent.get(), ctx.time_left
        try:
            job = await client.submit(
                agent,
                payload,
                idempotency_key=ctx.key,
                max_runtime_sec=None if left is None else max(1, math.ceil(left)),
            )
            return await job.done
        except FaultError as error:
            if error.fault.code in _SESSION_OVER:
                self._persistent.drop(client)
            if error.fault.code == _EXPIRED:
                raise self._session_expired(error.fault) from error
            raise

    def _session_expired(self, fault: Fault) -> FaultError:
        """AGENT_UNAVAILABLE instead of the expired session: the next attempt opens another one and finds the job by its key."""
        return FaultError.from_fault(
            Fault(
                code="AGENT_UNAVAILABLE",
                vocabulary="task",
                recovery=Recovery.TRANSIENT,
                executed=Executed.MAYBE,
                details={
                    "agent": self.name,
                    ORIGINAL: {"vocabulary": fault.vocabulary, "code": fault.code},
                },
            )
        )

    async def close(self) -> None:
        """Close the session."""
        await self._persistent.close()
        await super().close()
