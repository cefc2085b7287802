"""
Who can do what: the living workers of a store, each with its agents.

A worker says it every few seconds, and what it said is forgotten when it stops saying it. So a task that nobody could do is
refused at once, and one that another worker can do is left to that one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Sequence

import msgspec

from amends.errors.task import CapabilityNotFoundError
from amends.stores.contract import Store
from amends.stores.errors import StoreClosedError, StoreError
from amends.tasks.plan import Step
from amends.tasks.registry import House

__all__ = ["Offers"]

_log = logging.getLogger("amends.tasks")
_EXPIRES = 30.0
"""Seconds for which a worker's word holds."""


class _Offer(msgspec.Struct, frozen=True, omit_defaults=True):
    """One agent of one worker."""

    capabilities: list[str]
    dynamic: bool = False
    """Whether it may have more, which is known where it is."""


_Offered = dict[str, _Offer]
_decoder = msgspec.json.Decoder(_Offered)


class Offers:
    """What the workers of one store offer."""

    def __init__(self, house: House, store: Store) -> None:
        self._house = house
        self._table = store.table(f"{house.space}.workers")

    async def announce(self) -> None:
        """Say what this worker offers, for a while."""
        offered = {
            name: _Offer(sorted(agent.capabilities), agent.dynamic)
            for name, agent in self._house.agents.items()
        }
        await self._table.put(self._house.worker, msgspec.json.encode(offered), expires_in=_EXPIRES)

    async def keep_announcing(self) -> None:
        """Say it for as long as this goes on, and take it back then."""
        try:
            while True:
                await asyncio.sleep(_EXPIRES / 3)
                try:
                    await self.announce()
                except StoreClosedError:
                    return
                except Exception as error:  # noqa: BLE001 - silent, it would count as gone while it works
                    _log.warning("what a worker offers could not be said; it is said again", exc_info=error)
        finally:
            with contextlib.suppress(StoreError, asyncio.CancelledError):
                await asyncio.shield(self._table.delete(self._house.worker))

    async def refuse(self, steps: Sequence[Step], *, worker: bool) -> None:
        """
        Refuse steps that nobody could do: they cannot be done here, nor by any living worker.

        Args:
            steps: those that cannot be done here.
            worker: whether this process works itself. If not, and nobody is up yet, the first worker will see.

        Raises:
            FaultError: AGENT_NOT_FOUND or CAPABILITY_NOT_FOUND.
        """
        others = await self._announced()
        if not others and not worker:
            return
        for step in steps:
            if any(_offers(other, step) for other in others):
                continue
            if any(step.agent in other for other in others):
                raise CapabilityNotFoundError(details={"agent": step.agent, "capability": step.type})
            self._house.agent_for(step.type, step.agent)

    async def elsewhere(self, steps: Iterable[Step]) -> bool:
        """Whether every one of these steps can be done by some living worker."""
        others = await self._announced()
        return all(any(_offers(other, step) for other in others) for step in steps)

    async def _announced(self) -> list[_Offered]:
        found = []
        async for row in self._table.scan():
            with contextlib.suppress(msgspec.MsgspecError):
                found.append(_decoder.decode(row.value))
        return found


def _offers(offered: _Offered, step: Step) -> bool:
    """Whether a worker can do a step, by the same rules as it would itself: `House.agent_for`."""
    if step.agent is None:
        return any(step.type in offer.capabilities for offer in offered.values())
    offer = offered.get(step.agent)
    return offer is not None and (offer.dynamic or step.type in offer.capabilities)
