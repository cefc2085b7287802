"""The SDK's client of one agent. It is made at the first call, because the card of an address has to be fetched."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client import Client as SdkClient
from a2a.client.interceptors import ClientCallInterceptor
from a2a.types.a2a_pb2 import AgentCard
from msgspec import structs

from amends.bindings.a2a.deadlines import Deadline
from amends.bindings.a2a.faults import failure
from amends.bindings.a2a.http_recorder import Recording, install_recorder
from amends.core.enums import Executed
from amends.core.policy import Policy
from amends.errors.base import FaultError

__all__ = ["Connection"]

_CONNECT = 10.0
"""Seconds for opening an HTTP connection."""


class Connection:
    """The way to an agent: its address, its card, or a client that the SDK made."""

    def __init__(
        self,
        agent: str | AgentCard | SdkClient,
        config: ClientConfig | None,
        interceptors: Sequence[ClientCallInterceptor],
        policy: Policy,
        timeout: float,
    ) -> None:
        if isinstance(agent, SdkClient) and interceptors:
            raise TypeError(
                "interceptors are for an address or a card: add them to the client that the SDK made"
            )
        self._agent = agent
        self._config = config or ClientConfig()
        self._interceptors = list(interceptors)
        self._policy = policy
        self._timeout = timeout
        self._http: httpx.AsyncClient | None = None
        self._lock = asyncio.Lock()
        self._sdk: SdkClient | None = None

    async def sdk(self) -> SdkClient:
        """
        Return the SDK's client; make it at the first call.

        Raises:
            FaultError: the agent's card cannot be fetched or used; `executed` is no.

        """
        if self._sdk is None:
            async with self._lock:
                if self._sdk is None:
                    self._sdk = await self._make()
        return self._sdk

    async def close(self) -> None:
        """Close the HTTP client that was made here, or the SDK's client that was given."""
        if self._sdk is not None and (
            self._config.httpx_client is None or isinstance(self._agent, SdkClient)
        ):
            await self._sdk.close()
        if self._http is not None:
            await self._http.aclose()

    async def _make(self) -> SdkClient:
        agent = self._agent
        if isinstance(agent, SdkClient):
            if self._config.httpx_client is not None:
                install_recorder(self._config.httpx_client)
            return agent
        http = self._config.httpx_client or self._http
        if http is None:
            http = self._http = httpx.AsyncClient(timeout=httpx.Timeout(self._timeout, connect=_CONNECT))
        install_recorder(http)
        factory = ClientFactory(replace(self._config, httpx_client=http))
        recording = Recording()
        try:
            with recording:
                card = agent if isinstance(agent, AgentCard) else await self._fetch_card(http, agent)
            return factory.create(card, self._interceptors)
        except Exception as exc:
            # No message was sent.
            fault = structs.replace(failure(exc, recording).fault, executed=Executed.NO)
            raise FaultError.from_fault(fault) from exc

    async def _fetch_card(self, http: httpx.AsyncClient, address: str) -> AgentCard:
        async with asyncio.timeout(Deadline(self._policy).seconds_left(self._timeout)):
            return await A2ACardResolver(http, address).get_agent_card()
