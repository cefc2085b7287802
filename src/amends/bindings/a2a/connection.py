"""The SDK's client inside ours: made at the first call, because the card of an address has to be fetched."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace as with_changes

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client import Client as SdkClient
from a2a.client.interceptors import ClientCallInterceptor
from a2a.types.a2a_pb2 import AgentCard

from amends.bindings.a2a.deadlines import Clock
from amends.bindings.a2a.faults import failure
from amends.bindings.a2a.http_recorder import HEARD, Heard, http_client_of, listen
from amends.core.policy import Policy

__all__ = ["Connection"]

_CONNECT = 10.0
"""Seconds to get a connection; nothing has been sent until then."""


class Connection:
    """How an agent is reached: by an address, a card, or a client that is there already."""

    def __init__(
        self,
        agent: str | AgentCard | SdkClient,
        config: ClientConfig | None,
        interceptors: Sequence[ClientCallInterceptor],
        policy: Policy,
        timeout: float,
    ) -> None:
        if isinstance(agent, SdkClient) and (config is not None or interceptors):
            raise TypeError("config and interceptors are for an address or a card: this client has its own")
        self._agent = agent
        self._config = config or ClientConfig()
        self._interceptors = list(interceptors)
        self._policy = policy
        self._timeout = timeout
        self._http: httpx.AsyncClient | None = None
        self._making = asyncio.Lock()
        self.made: SdkClient | None = None
        """The SDK's client, once there is one."""

    async def sdk(self) -> SdkClient:
        """
        The SDK's client.

        Raises:
            FaultError: the agent's card cannot be fetched.

        """
        if self.made is None:
            async with self._making:
                if self.made is None:
                    self.made = await self._make()
        return self.made

    def streams(self) -> bool:
        """Whether both sides stream."""
        config, card = getattr(self.made, "_config", self._config), getattr(self.made, "_card", None)
        return bool(config.streaming and (card is None or card.capabilities.streaming))

    async def close(self) -> None:
        """Close what was opened here, and a client that was given."""
        if self.made is not None and (
            self._config.httpx_client is None or isinstance(self._agent, SdkClient)
        ):
            await self.made.close()
        if self._http is not None:
            await self._http.aclose()

    async def _make(self) -> SdkClient:
        agent = self._agent
        if isinstance(agent, SdkClient):
            found = http_client_of(agent)
            if found is not None:
                listen(found)
            return agent
        http = self._config.httpx_client or self._http
        if http is None:
            http = self._http = httpx.AsyncClient(timeout=httpx.Timeout(self._timeout, connect=_CONNECT))
        listen(http)
        factory = ClientFactory(with_changes(self._config, httpx_client=http))
        card = agent if isinstance(agent, AgentCard) else await self._card(http, agent)
        return factory.create(card, self._interceptors)

    async def _card(self, http: httpx.AsyncClient, address: str) -> AgentCard:
        heard = Heard()
        before = HEARD.set(heard)
        try:
            async with asyncio.timeout(Clock(self._policy).left(self._timeout)):
                return await A2ACardResolver(http, address).get_agent_card()
        except Exception as exc:
            raise failure(exc, heard) from exc
        finally:
            HEARD.reset(before)
