"""HTTP endpoints as capabilities: JSON in, JSON out, problem details for failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from amends.core.named_options import NamedOptions
from amends.core.wrong_calls import explains_wrong_calls
from amends.errors.base import FaultError
from amends.recovery.classify import fault_in_response
from amends.recovery.policies import NONE
from amends.tasks.agent import Agent
from amends.tasks.capability import Hook
from amends.tasks.context import Context
from amends.tasks.remote.reported_failures import redirect_fault, reported_failure

__all__ = ["Endpoint", "HttpAgent"]

_READ = frozenset({"GET", "HEAD"})
_IDEMPOTENT = frozenset({"PUT", "DELETE"})
_LIMIT = 16 * 1024 * 1024


class Endpoint(msgspec.Struct, frozen=True, kw_only=True, metaclass=NamedOptions):
    """
    One endpoint, and what may be assumed about calling it beyond its HTTP method. `HttpAgent` takes them.

        pay = Endpoint(url="https://payments.example/v1/charges", keyed=True, timeout=20)
        agent = HttpAgent("payment-agent", {"pay": pay})
    """

    url: str
    method: str = "POST"
    keyed: bool = False
    """The service honours `Idempotency-Key`: the step's key is sent, and calls may be repeated."""
    read_only: bool = False
    """A call changes nothing, although its method is not GET or HEAD."""
    undo: Hook | None = None
    verify: Hook | None = None
    timeout: float | None = None


class HttpAgent(Agent):
    """
    An agent that is called over HTTP.

        weather = HttpAgent("weather-agent", {"forecast": Endpoint(url="https://…/forecast", method="GET")})

    The payload is the JSON body, or the query of a GET. A failed response is read like `amends.extract` does, and so is a
    failure that a successful response reports. A GET follows redirects; for other methods a redirect is a failure.
    """

    @explains_wrong_calls
    def __init__(
        self,
        name: str,
        endpoints: Mapping[str, Endpoint],
        *,
        headers: Callable[[], Mapping[str, str]] | None = None,
        client: Any = None,
        timeout: float = 30.0,
        **options: Any,
    ) -> None:
        """
        Args:
            name: the agent's name.
            endpoints: its capabilities.
            headers: returns headers for a call, such as credentials; called for each call.
            client: an `httpx2.AsyncClient` to use; it is not closed, and should not retry.
            timeout: seconds for one call, unless the endpoint has its own.
            options: as for `Agent`.
        """
        super().__init__(name, timeout=timeout, **options)
        self._headers = headers
        self._client = client
        self._own = client is None
        for capability, endpoint in endpoints.items():
            method = endpoint.method.upper()
            self.relay(
                capability,
                partial(self.call, endpoint),
                read_only=endpoint.read_only or method in _READ,
                idempotent=method in _IDEMPOTENT,
                keyed=endpoint.keyed,
                undo=endpoint.undo,
                verify=endpoint.verify,
                timeout=endpoint.timeout or timeout,
            )

    async def call(self, endpoint: Endpoint, payload: object, ctx: Context) -> object:
        """
        Send one request and return the content of the response.

        Raises:
            FaultError: the failure in the response, or the failure to get one.
        """
        method = endpoint.method.upper()
        headers = {"Accept": "application/json, application/problem+json"}
        if endpoint.keyed:
            headers["Idempotency-Key"] = ctx.key
        if self._headers is not None:
            headers.update(self._headers())
        body: dict[str, Any] = {}
        if method in _READ and isinstance(payload, dict):
            body["params"] = payload
        elif payload is not None and method not in _READ:
            headers["Content-Type"] = "application/json"
            body["content"] = msgspec.json.encode(payload)
        # A redirect of another method would be sent again as a GET, without the body.
        response = await self._open_client().request(
            method, endpoint.url, headers=headers, follow_redirects=method in _READ, **body
        )
        return _content(response)

    def _open_client(self) -> Any:
        if self._client is None:
            from amends.bindings import httpx as binding

            library = vars(binding)["library"]  # httpx2, or httpx if only that is installed
            transport = binding.AsyncTransport(policy=NONE, keys=False)
            # No time-out here: the one of the capability covers the whole call.
            self._client = library.AsyncClient(transport=transport, timeout=None)
        return self._client

    async def close(self) -> None:
        """Close the connections, unless the client was passed in."""
        await super().close()
        if self._own and self._client is not None:
            client, self._client = self._client, None
            await client.aclose()


def _content(response: Any) -> Any:
    """The content of a successful response: JSON if its content type is, else text. Raises the fault of a failed one."""
    fault = fault_in_response(response)
    if fault is not None:
        raise FaultError.from_fault(fault)
    if 300 <= response.status_code < 400:
        raise FaultError.from_fault(redirect_fault(response.status_code))
    if not response.content:
        return None
    content_type = response.headers.get("content-type", "")
    if "json" not in content_type:
        return response.text[:_LIMIT]
    document: object = msgspec.json.decode(response.content[:_LIMIT])
    reported = reported_failure(document, content_type)
    if reported is not None:
        raise FaultError.from_fault(reported)
    return document
