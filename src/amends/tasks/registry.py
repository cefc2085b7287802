"""What all runs of one worker share: its agents, its clock, its policy, and the names of its tables."""

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

__all__ = ["Registry"]


@dataclass(slots=True)
class Registry:
    """The agents of a worker by name, and the settings of its runs."""

    worker: str
    space: str = "tasks"
    """The name of the table and the queue, and the prefix of the logs' names."""
    policy: Policy = TASK
    clock: Callable[[], float] = time.time
    takeovers: int = 10
    """The number of workers that may be lost while running a task before it is given up; the task may be the cause."""
    agents: dict[str, Agent] = field(default_factory=dict)

    def register(self, agents: Iterable[Agent]) -> None:
        """
        Add agents.

        Raises:
            ValueError: another agent has the same name.
        """
        for agent in agents:
            if self.agents.setdefault(agent.name, agent) is not agent:
                raise ValueError(f"another agent has the name {agent.name!r}")

    def agent_for(self, type: str, agent: str | None) -> Agent:
        """
        Return the named agent, or the first one that offers `type`.

        Raises:
            FaultError: AGENT_NOT_FOUND, or CAPABILITY_NOT_FOUND if the named agent does not have the capability.
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
        """Whether one of these agents offers the step's capability."""
        try:
            self.agent_for(step.type, step.agent)
        except FaultError:
            return False
        return True

    async def find(self, type: str, agent: str | None) -> tuple[Agent, Capability]:
        """Return the agent and its capability. Raises what `agent_for` and `Agent.find` raise."""
        found = self.agent_for(type, agent)
        return found, await found.find(type)
