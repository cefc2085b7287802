"""Making a client: from an address, from a card, from a client that the SDK made."""

import json

import pytest
from a2a.client import ClientConfig, ClientFactory
from a2a.client.interceptors import ClientCallInterceptor
from a2a.types.a2a_pb2 import GetExtendedAgentCardRequest
from google.protobuf.json_format import MessageToDict

from amends import Upstream
from amends.bindings.a2a import Client
from amends.errors import RateLimitedError, ServiceUnavailableError
from amends.recovery import NONE
from amends.testing import FakeClock
from tests.bindings.a2a_client.clients import ONCE
from tests.bindings.a2a_client.lines import answers
from tests.bindings.agents import card, config, events_of, failing, http_client, works
from tests.http.serving import serve


class Count(ClientCallInterceptor):
    def __init__(self):
        self.calls = 0

    async def before(self, args):
        self.calls += 1

    async def after(self, args):
        pass


async def test_from_an_address(server):
    """The card is fetched at the first call, with recovery; the HTTP client is closed afterwards."""
    document = json.dumps(MessageToDict(card(server.base))).encode()
    turns = [answers(503), answers(200, document, content_type="application/json")]
    fetched = []

    async def app(scope, receive, send):
        if scope["path"] == "/.well-known/agent-card.json":
            fetched.append(1)
            await turns.pop(0)(None, scope, receive, send)
        else:
            await server.line(scope, receive, send)

    count, more = Count(), Count()
    with serve(app) as base, FakeClock():
        async with Client(base, config=ClientConfig(streaming=False), interceptors=[count]) as client:
            assert await client.get_extended_agent_card(GetExtendedAgentCardRequest())
            await client.add_interceptor(more)
            assert await events_of(client)
            http = client._connection._http
        assert http.is_closed
    assert (len(fetched), count.calls, more.calls) == (2, 2, 1)
    async with Client(base, policy=NONE) as client:
        with pytest.raises(ServiceUnavailableError):
            await events_of(client)


REJECTED = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {
            "code": -32029,
            "message": "x",
            "data": {"adcp_error": {"code": "RATE_LIMITED", "retry_after": 9}},
        },
    }
).encode()


async def test_from_a_client_of_the_sdk(server, monkeypatch):
    """A failed task and a failed HTTP response are read from what the SDK yields and raises."""
    server.does(failing(RateLimitedError("Slow down", retry_after=2)))
    async with http_client() as http:
        inner = ClientFactory(config(ONCE, httpx_client=http)).create(card(server.base))
        client = Client(inner, policy=NONE, upstream=Upstream("agent"))
        with pytest.raises(RateLimitedError):
            await events_of(client)
        server.does(works).line.first = [answers(429, retry_after="9")]
        with pytest.raises(RateLimitedError) as caught:
            await events_of(Client(inner, policy=NONE))
        assert caught.value.fault.retry_after == 9
        closed: list[bool] = []

        async def close() -> None:
            closed.append(True)

        # What the SDK does with an HTTP client it was given differs between its versions.
        monkeypatch.setattr(inner, "close", close)
        await client.close()
        assert closed == [True]


async def test_from_a_client_of_the_sdk_with_its_config(server):
    """With the HTTP client, the data of a JSON-RPC error is read too, which the SDK drops."""
    async with http_client() as http:
        settings = config(ONCE, httpx_client=http)
        client = Client(ClientFactory(settings).create(card(server.base)), config=settings, policy=NONE)
        server.line.first = [answers(200, REJECTED, content_type="application/json")]
        with pytest.raises(RateLimitedError) as caught:
            await events_of(client)
    assert caught.value.fault.retry_after == 9


def test_invalid_arguments_are_refused():
    """An unknown choice, and interceptors that would be ignored."""
    with pytest.raises(ValueError, match="raise"):
        Client("http://x.invalid", raises="ignore")
    inner = ClientFactory().create(card())
    with pytest.raises(TypeError, match="interceptors"):
        Client(inner, interceptors=[Count()])
