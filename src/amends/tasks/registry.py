"""What all runs of one worker share: its agents, its clock, its policy, and the names of its tables."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from amends.core.policy import Policy
from amends.errors.task import AgentNotFoundError, CapabilityNotFoundError
from amends.logs import logger
from amends.recovery.policies import TASK
from amends.stores.contract import Queue
from amends.stores.errors import StoreClosedError, StoreError
from amends.tasks.agent import Agent
from amends.tasks.capability import Capability, Policies, policies_of
from amends.tasks.entries import Submitted
from amends.tasks.late_results import LateResults
from amends.tasks.plan import Step
from amends.tasks.state import TaskState

__all__ = ["Registry"]

_log = logger("amends.tasks")
_SYNCHRONIZED = 30.0
"""Seconds for which the difference of the clocks is used."""
_TOLERANCE = 0.25
"""Seconds. A smaller difference of the clocks is not corrected: it may be the time that the store took to answer."""


@dataclass(slots=True)
class Registry:
    """The agents of a worker by name, and the settings of its runs."""

    worker: str
    space: str = "tasks"
    """The name of the table and the queue, and the prefix of the logs' names."""
    policy: Policy = TASK
    local_clock: Callable[[], float] = time.time
    """Wall-clock seconds of this machine."""
    offset: float = 0.0
    """Seconds by which the clock of the store's queue is ahead of that of this machine."""
    synchronized: float = -math.inf
    """When the clock of the queue was last read, by the monotonic clock."""
    takeovers: int = 10
    """The number of workers that may be lost while running a task before it is given up; the task may be the cause."""
    agents: dict[str, Agent] = field(default_factory=dict)
    prefer: Mapping[str, str] = field(default_factory=dict)
    """For capabilities that several agents have: the agent that is used if a task names none."""
    late_results: LateResults = field(default_factory=LateResults)
    policies: Policies = field(init=False)

    def __post_init__(self) -> None:
        self.policies = policies_of(self.policy)

    def clock(self) -> float:
        """
        Seconds since 1970 by the clock that measures the delays of the queue.

        All times in the logs are by this clock, so the clocks of the workers' machines may differ.
        """
        return self.local_clock() + self.offset

    async def synchronize(self, queue: Queue) -> None:
        """Read the clock of the store's queue. On failure, the last difference is used further."""
        self.synchronized = time.monotonic()
        try:
            before = self.local_clock()
            now = await queue.now()
        except StoreClosedError:
            raise
        except StoreError:
            _log.warning("the clock of the store cannot be read", exc_info=True)
            return
        difference = now - (before + self.local_clock()) / 2
        self.offset = difference if abs(difference) > _TOLERANCE else 0.0

    @property
    def clock_is_old(self) -> bool:
        """Whether the clock of the queue was last read more than half a minute ago."""
        return time.monotonic() - self.synchronized > _SYNCHRONIZED

    def register(self, agents: Iterable[Agent]) -> None:
        """
        Add agents.

        Raises:
            ValueError: another agent has the same name, or one of the same capabilities, and `prefer` names neither.
        """
        for agent in agents:
            if self.agents.get(agent.name, agent) is not agent:
                raise ValueError(f"another agent has the name {agent.name!r}")
            for other in self.agents.values():
                shared = set() if other is agent else set(agent.capabilities) & set(other.capabilities)
                unnamed = sorted(shared - set(self.prefer))
                if unnamed:
                    raise ValueError(
                        f"the agents {other.name!r} and {agent.name!r} both have the capability {unnamed[0]!r}: name the one "
                        f"to use with Orchestrator(prefer={{{unnamed[0]!r}: {other.name!r}}})"
                    )
            self.agents[agent.name] = agent

    def offering(self, type: str, agent: str | None) -> Agent | None:
        """The named agent, if it has or may have the capability `type`; without a name, the first one that has it."""
        if agent is not None:
            named = self.agents.get(agent)
            return named if named is not None and (named.dynamic or type in named.capabilities) else None
        preferred = self.agents.get(self.prefer.get(type, ""))
        for found in (*([preferred] if preferred else []), *self.agents.values()):
            if type in found.capabilities:
                return found
        return None

    def agent_for(self, type: str, agent: str | None) -> Agent:
        """
        Return the agent that `offering` finds.

        Raises:
            FaultError: AGENT_NOT_FOUND, or CAPABILITY_NOT_FOUND if the named agent does not have the capability.
        """
        found = self.offering(type, agent)
        if found is not None:
            return found
        if agent is None:
            raise AgentNotFoundError(details={"capability": type})
        missing = CapabilityNotFoundError if agent in self.agents else AgentNotFoundError
        raise missing(details={"agent": agent, "capability": type})

    def lacking(self, steps: Iterable[Step]) -> list[Step]:
        """The steps whose capabilities none of these agents offers."""
        return [step for step in steps if self.offering(step.type, step.agent) is None]

    def suspects(self, state: TaskState) -> bool:
        """Whether so many workers were lost while running a task that it has to run by itself."""
        return state.takeovers + 1 >= self.takeovers and not state.alone and not state.undoing

    def assign(self, task: Submitted) -> Submitted:
        """
        Give each step of a new task an agent of this process, if it names none and one has its capability.

        What the code of this process declares about repeating the steps is added.
        """
        assigned = []
        for step in task.steps:
            agent = self.offering(step.type, step.agent)
            assigned.append(replace(step, agent=agent.name) if agent and step.agent is None else step)
        return replace(
            task,
            steps=tuple(assigned),
            agent=assigned[0].agent if task.single else None,
            promises=self.promises(assigned),
        )

    def promises(self, steps: Iterable[Step]) -> dict[str, str] | None:
        """What the code of this process declares about repeating steps (`Capability.promises`), as far as it knows them."""
        known = ((step.name, self.known_capability(step)) for step in steps)
        return {name: found.promises for name, found in known if found is not None} or None

    def known_capability(self, step: Step) -> Capability | None:
        """The capability of a step, if one of these agents has it, without looking it up at another service."""
        agent = self.offering(step.type, step.agent)
        return None if agent is None else agent.capabilities.get(step.type)

    async def find(self, type: str, agent: str | None) -> tuple[Agent, Capability]:
        """Return the agent and its capability. Raises what `agent_for` and `Agent.find` raise."""
        found = self.agent_for(type, agent)
        return found, await found.find(type)
