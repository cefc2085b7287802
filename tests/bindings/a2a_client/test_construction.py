"""Ways to have a client: by address, by card, around one that is there."""

import json

import pytest
from a2a.client import ClientConfig, ClientFactory
from a2a.client.interceptors import ClientCallInterceptor
from a2a.types.a2a_pb2 import GetExtendedAgentCardRequest
from google.protobuf.json_format import MessageToDict

from amends import Upstream
from amends.bindings.a2a import Client
from amends.bindings.a2a.http_recorder import http_client_of
from amends.errors import RateLimitedError, ServiceUnavailableError
from amends.recovery import NONE
from amends.testing import FakeClock
from tests.bindings.a2a_client.asking import ONCE
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


async def test_by_address_with_the_card_fetched(desk):
    """The card is fetched at the first call, with recovery too; nothing of it is kept open afterwards."""
    document = json.dumps(MessageToDict(card(desk.base))).encode()
    turns = [answers(503), answers(200, document, content_type="application/json")]
    fetched = []

    async def app(scope, receive, send):
        if scope["path"] == "/.well-known/agent-card.json":
            fetched.append(1)
            await turns.pop(0)(None, scope, receive, send)
        else:
            await desk.line(scope, receive, send)

    count, more = Count(), Count()
    with serve(app) as base, FakeClock():
        async with Client(base, config=ClientConfig(streaming=False), interceptors=[count]) as client:
            assert await client.get_extended_agent_card(GetExtendedAgentCardRequest())
            await client.add_interceptor(more)
            assert await events_of(client)
            inside = client._connection._http
        assert inside.is_closed
    assert (len(fetched), count.calls, more.calls) == (2, 2, 1)
    async with Client(base, policy=NONE) as client:
        with pytest.raises(ServiceUnavailableError):
            await events_of(client)


async def test_around_a_client_that_is_there(desk):
    """The SDK's own, also with a tenant; what is lost by it is still heard."""
    desk.does(failing(RateLimitedError("Slow down", retry_after=2)))
    async with http_client() as http:
        factory = ClientFactory(config(ONCE, httpx_client=http))
        described = card(desk.base)
        inner = factory.create(described)
        assert http_client_of(inner) is http
        described.supported_interfaces[0].tenant = "t"
        assert http_client_of(factory.create(described)) is http
        client = Client(inner, policy=NONE, upstream=Upstream("agent"))
        with pytest.raises(RateLimitedError):
            await events_of(client)
        desk.does(works).line.first = [answers(429, retry_after="9")]
        with pytest.raises(RateLimitedError) as caught:
            await events_of(Client(inner, policy=NONE))
        assert caught.value.fault.retry_after == 9
        await client.close()
    assert http_client_of(object()) is None


def test_mistakes_are_told():
    """Options that would be ignored are refused."""
    with pytest.raises(ValueError, match="raise"):
        Client("http://x.invalid", errors="ignore")
    inner = ClientFactory().create(card())
    with pytest.raises(TypeError):
        Client(inner, config=ClientConfig())
