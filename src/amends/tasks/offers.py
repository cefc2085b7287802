"""
The agents and capabilities that the running workers of a store offer.

Each worker writes its offer to a table every few seconds, and the row expires when the worker stops. A task that no worker can do
is therefore refused when it is submitted, and a worker leaves a task to another one that has its agents.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence

import msgspec

from amends.durable.workers import Workers
from amends.errors.task import CapabilityNotFoundError
from amends.logs import logger
from amends.stores.contract import Queue, Store
from amends.stores.errors import StoreError
from amends.tasks.plan import Step
from amends.tasks.registry import Registry

__all__ = ["Offers"]

_log = logger("amends.tasks")
_EXPIRES = 30.0
"""Seconds after which a worker's row expires."""


class _Offer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The offer of one agent of one worker."""

    capabilities: list[str]
    dynamic: bool = False
    """Whether the agent may have further capabilities, which its service knows."""


_Offered = dict[str, _Offer]


class Offers:
    """The offers of the workers of one store."""

    def __init__(self, registry: Registry, store: Store) -> None:
        self._registry = registry
        kind: type[_Offered] = dict[str, _Offer]
        self._workers = Workers(store, f"{registry.space}.workers", kind, expires_in=_EXPIRES)

    async def announce(self) -> None:
        """Write this worker's offer, which expires after some seconds."""
        offered = {
            name: _Offer(sorted(agent.capabilities), agent.dynamic)
            for name, agent in self._registry.agents.items()
        }
        await self._workers.announce(self._registry.worker, offered)

    async def keep_announcing(self, queue: Queue) -> None:
        """Renew this worker's offer, and read the clock of the queue, until this is cancelled or the store is closed."""

        async def renew() -> None:
            await self.announce()
            await self._registry.synchronize(queue)

        try:
            await self._workers.keep_announcing(renew, log=_log)
        finally:
            with contextlib.suppress(StoreError, asyncio.CancelledError):
                await asyncio.shield(self._workers.withdraw(self._registry.worker))

    async def require_offered(self, steps: Sequence[Step], *, worker: bool) -> None:
        """
        Check that other workers offer these steps, which this process cannot do itself.

        Args:
            steps: the steps.
            worker: whether this process works on tasks. If it does not and no worker is running, nothing is checked.

        Raises:
            FaultError: AGENT_NOT_FOUND or CAPABILITY_NOT_FOUND, for a step that no worker offers.
        """
        others = await self._read_offers()
        if not others and not worker:
            return
        for step in steps:
            if any(_offers(other, step) for other in others):
                continue
            if any(step.agent in other for other in others):
                raise CapabilityNotFoundError(details={"agent": step.agent, "capability": step.type})
            self._registry.agent_for(step.type, step.agent)

    async def offered_elsewhere(self, steps: Iterable[Step]) -> bool:
        """Whether each of these steps is offered by some running worker."""
        others = await self._read_offers()
        return all(any(_offers(other, step) for other in others) for step in steps)

    async def _read_offers(self) -> list[_Offered]:
        return [row for row, _ in (await self._workers.alive()).values()]


def _offers(offered: _Offered, step: Step) -> bool:
    """Whether a worker can do a step, by the same rules as `Registry.agent_for`."""
    if step.agent is None:
        return any(step.type in offer.capabilities for offer in offered.values())
    offer = offered.get(step.agent)
    return offer is not None and (offer.dynamic or step.type in offer.capabilities)
