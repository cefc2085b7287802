"""An ARCP runtime as an agent: its agents are the capabilities, and its jobs are kept by the step's key."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from amends.core.crosswalk import ORIGINAL
from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault
from amends.errors.base import FaultError
from amends.errors.task import CapabilityNotFoundError
from amends.tasks.agent import Agent
from amends.tasks.capability import Capability
from amends.tasks.context import Context
from amends.tasks.persistent_client import Kept

__all__ = ["ArcpAgent"]

_FORGOTTEN = "RESUME_WINDOW_EXPIRED"
_OVER = frozenset({"HEARTBEAT_LOST", "UNAUTHENTICATED", _FORGOTTEN})
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
        self._kept = Kept(self._session)

    def _session(self) -> Any:
        from amends.arcp import connect

        return connect(self._runtime, token=self._token)

    async def find(self, type: str) -> Capability:
        """The runtime's agent of that name."""
        found = self.capabilities.get(type)
        if found is None:
            offered = (await self._kept.client()).agents
            if offered and type.partition("@")[0] not in offered:
                raise CapabilityNotFoundError(details={"agent": self.name, "capability": type})
            found = self.capabilities[type] = Capability(
                name=type,
                call=partial(self.submit, type),
                keyed=True,
                timeout=self.timeout,
                policy=self.policy,
            )
        return found

    async def submit(self, agent: str, payload: Any, ctx: Context) -> Any:
        """
        One job, and what comes of it.

        Raises:
            FaultError: what the job or the runtime said.
        """
        client, left = await self._kept.client(), ctx.time_left
        try:
            job = await client.submit(
                agent,
                payload,
                idempotency_key=ctx.key,
                max_runtime_sec=None if left is None else max(1, math.ceil(left)),
            )
            return await job.done
        except FaultError as error:
            if error.fault.code in _OVER:
                self._kept.drop(client)
            if error.fault.code == _FORGOTTEN:
                raise self._forgotten(error.fault) from error
            raise

    def _forgotten(self, fault: Fault) -> FaultError:
        """The session is our own affair: for whoever wants the job, the runtime was away, and its key finds it again."""
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
        await self._kept.close()
        await super().close()
