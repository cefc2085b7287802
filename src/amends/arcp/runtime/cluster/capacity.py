"""How many jobs this node may run, and which queues it has to read."""

from __future__ import annotations

import asyncio

from amends.arcp.runtime.limits import Limits

__all__ = ["Capacity"]


class Capacity:
    """The places for running jobs on one node."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.running = 0
        """Places that are taken: running jobs, and jobs that are about to run."""
        self.draining = False
        """Whether the node stops and takes no more jobs."""
        self.backlog: set[str] = set()
        """Agents whose queues are known to have jobs."""
        self.queue_wakeup = asyncio.Event()
        """Set when the queues should be read."""
        self.being_written: set[str] = set()
        """Jobs that are being written to the store by this node."""

    @property
    def full(self) -> bool:
        """Whether no place is free."""
        return self.running >= self._limits.running

    def has_room(self, agent: str) -> bool:
        """Whether a new job of this agent can start here at once, without overtaking jobs in its queue."""
        return not self.full and not self.draining and agent not in self.backlog

    def reserve(self) -> None:
        """Reserve a place for a running job."""
        self.running += 1

    def release(self) -> None:
        """Free the place of a job."""
        self.running -= 1
        if self.backlog:
            self.queue_wakeup.set()

    def add_to_backlog(self, agent: str) -> None:
        """Record that the queue of an agent has a job."""
        self.backlog.add(agent)
        self.queue_wakeup.set()
