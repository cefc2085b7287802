"""What all runs of one worker share: its agents, its clock, its policy, and where things are kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from amends.core.policy import Policy
from amends.errors.base import FaultError
from amends.errors.task import AgentNotFoundError, CapabilityNotFoundError
from amends.recovery.policies import TASK
from amends.tasks.agent import Agent
from amends.tasks.capability import Capability
from amends.tasks.plan import Step

__all__ = ["House"]


@dataclass(slots=True)
class House:
    """What a worker has, and what its runs are given: agents by name, the clock, the policy."""

    worker: str
    space: str = "tasks"
    """The name of the table and the queue, and the beginning of the logs' names."""
    policy: Policy = TASK
    clock: Callable[[], float] = time.time
    takeovers: int = 10
    """Workers that may be lost with a task before it is given up: it may be what kills them."""
    agents: dict[str, Agent] = field(default_factory=dict)

    def register(self, agents: Iterable[Agent]) -> None:
        """
        Have these agents from now on.

        Raises:
            ValueError: another agent has the same name.
        """
        for agent in agents:
            if self.agents.setdefault(agent.name, agent) is not agent:
                raise ValueError(f"there is another agent called {agent.name!r}")

    def agent_for(self, type: str, agent: str | None) -> Agent:
        """
        The agent meant: the one named, or the one that offers `type`.

        Raises:
            FaultError: AGENT_NOT_FOUND, or CAPABILITY_NOT_FOUND where the agent is there and cannot do it.
        """
        if agent is not None:
            found = self.agents.get(agent)
            if found is None:
                raise AgentNotFoundError(details={"agent": agent, "capability": type})
            if not found.offers(type) and not found.dynamic:
                raise CapabilityNotFoundError(details={"agent": agent, "capability": type})
            return found
        for found in self.agents.values():
            if found.offers(type):
                return found
        raise AgentNotFoundError(details={"capability": type})

    def has(self, step: Step) -> bool:
        """Whether one of these agents can do it, as far as is known here."""
        try:
            self.agent_for(step.type, step.agent)
        except FaultError:
            return False
        return True

    async def find(self, type: str, agent: str | None) -> tuple[Agent, Capability]:
        """The agent and its capability. Raises like `agent_for`."""
        found = self.agent_for(type, agent)
        return found, await found.find(type)
