"""The live nodes of a store: this node's own row, and what the other nodes offer."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from amends.arcp.runtime.agents import Agents, Offer, merge_offers
from amends.arcp.runtime.entries import NodeRow
from amends.durable.workers import Workers
from amends.logs import logger
from amends.proof import Claim, Proof, rests_on

__all__ = ["Membership"]

_log = logger("amends.arcp")
_FRESH = 1.0
"""Seconds for which the rows of other nodes are used without reading them again."""


@dataclass(eq=False)
class Membership:
    """This node among the nodes that share a store."""

    _workers: Workers[NodeRow]
    id: str
    agents: Agents
    """The agents of this node."""
    _row: Callable[[], NodeRow]
    """Returns this node's current row."""
    exclusive: bool
    """Whether no other node uses this store, so that it need not be polled."""
    peers: dict[str, tuple[Offer, ...]] = field(default_factory=dict)
    """The other live nodes and the agents they offer."""
    _free_peers: set[str] = field(default_factory=set)
    """The other nodes that have a free place, as of their last heartbeat."""
    peer_jobs: list[dict[str, int]] = field(default_factory=list)
    """The jobs per principal that other nodes reported; see `quota`."""
    dead_peers: set[str] = field(default_factory=set)
    """Nodes whose rows have disappeared and that maintenance has not handled yet."""
    _read_at: float = 0.0
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    # -- this node

    async def announce(self) -> None:
        """Write this node's row: that it is alive, its agents and its counters."""
        await self._workers.announce(self.id, self._row())

    async def keep_announcing(self, after_lapse: Callable[[], Awaitable[None]]) -> None:
        """Renew this node's row three times per lease; see `Workers.keep_announcing`."""
        await self._workers.keep_announcing(self.announce, log=_log, after_lapse=after_lapse)

    async def withdraw(self) -> None:
        """Delete this node's row."""
        await self._workers.withdraw(self.id)

    def is_responsible(self, subject: str) -> bool:
        """Whether this node handles a queued job (or dead node): each live node handles a share of them."""
        return self.id == max((self.id, *self.peers), key=lambda one: zlib.crc32(f"{one}/{subject}".encode()))

    # -- all nodes

    async def refresh_peers(self) -> None:
        """Read from the store which other nodes are alive."""
        found: dict[str, tuple[Offer, ...]] = {}
        peer_jobs: list[dict[str, int]] = []
        free: set[str] = set()
        for id, (peer, _) in (await self._workers.alive()).items():
            if id != self.id:
                found[id] = peer.agents
                if peer.running < peer.room and not peer.draining:
                    free.add(id)
                if peer.busy:
                    peer_jobs.append(peer.busy)
        self.dead_peers |= self.peers.keys() - found.keys()
        self.peers, self.peer_jobs, self._free_peers = found, peer_jobs, free
        self._read_at = self._loop.time()

    def offers(self) -> dict[str, tuple[str, ...]]:
        """Return the agents of all nodes with their versions, as of the last `refresh_peers`."""
        return merge_offers([self.agents.offers(), *self.peers.values()])

    async def known_agents(self, reference: str | None = None) -> dict[str, tuple[str, ...]]:
        """Return `offers`, refreshed if it is older than a second or does not include the referenced agent."""
        offers = self.offers()
        if self.exclusive:
            return offers
        name, _, version = (reference or "").partition("@")
        here = name in offers and (not version or version in offers[name])
        if not here or self._loop.time() - self._read_at > _FRESH:
            await self.refresh_peers()
            offers = self.offers()
        return offers

    def has_free_peer(self, name: str, version: str) -> bool:
        """Whether another node has a free place for this version of an agent, as of its last heartbeat."""
        return any(
            offer.name == name and version in offer.versions
            for peer in self._free_peers
            for offer in self.peers.get(peer, ())
        )

    @rests_on(Claim.MAY_REPEAT, Proof.USER, Proof.RECORD)
    async def repeatable(self, name: str, version: str) -> bool:
        """Whether every node that has this version of an agent registered it as repeatable."""
        agent = self.agents.lookup(f"{name}@{version}")
        if agent is not None:
            return agent.repeatable
        offers = [offer for peer in self.peers.values() for offer in peer if offer.name == name]
        having = [offer for offer in offers if version in offer.versions]
        return bool(having) and all(version in offer.repeatable for offer in having)
