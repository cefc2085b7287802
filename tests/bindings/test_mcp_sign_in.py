"""A sign-in that fails: the client reports it and does not ask the user again."""

import httpx2
import pytest
from fastmcp.client.transports import StreamableHttpTransport
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.shared.auth import OAuthClientMetadata

from amends.bindings import fastmcp
from amends.bindings.mcp import Client
from amends.errors import UnauthenticatedError

URL = "http://shop.example/mcp"
METADATA = "http://shop.example/.well-known/oauth-protected-resource"

pytestmark = pytest.mark.usefixtures("quiet")


class Nothing(TokenStorage):
    async def get_tokens(self):
        return None

    async def get_client_info(self):
        return None

    async def set_tokens(self, tokens):
        raise AssertionError

    async def set_client_info(self, client_info):
        raise AssertionError


class Shop:
    """Needs a sign-in, and names another resource than itself, which no client may trust."""

    def __init__(self):
        self.requests = []

    def __call__(self, request):
        self.requests.append(request.url.path)
        if "protected-resource" in request.url.path:
            return httpx2.Response(
                200,
                json={"resource": "https://other.example", "authorization_servers": ["https://a.example"]},
            )
        return httpx2.Response(401, headers={"WWW-Authenticate": f'Bearer resource_metadata="{METADATA}"'})

    def client(self, **options):
        metadata = OAuthClientMetadata(redirect_uris=["http://localhost:1/back"])
        auth = OAuthClientProvider(server_url=URL, client_metadata=metadata, storage=Nothing())
        return httpx2.AsyncClient(auth=auth, transport=httpx2.MockTransport(self))


def official(shop, mode):
    return Client(URL, http_client=shop.client(), mode=mode)


def fast(shop, mode):
    transport = StreamableHttpTransport(URL, httpx_client_factory=shop.client)
    return fastmcp.Client(transport, mode=mode)


@pytest.mark.parametrize("make", [official, fast])
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_failed_sign_in_is_not_repeated(make, mode):
    """Neither as a retry nor as the handshake of an earlier protocol."""
    shop = Shop()
    with pytest.raises(UnauthenticatedError) as caught:
        async with make(shop, mode):
            pass
    assert caught.value.decision.action == "fix"
    assert len(shop.requests) == 2
