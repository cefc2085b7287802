"""Challenges of a 401 or 403: `WWW-Authenticate` is in the fault, and `reject(...).http` sends it."""

import asyncio

import httpx2
import mcp.client.auth
from mcp.server.mcpserver import MCPServer

from amends import extract
from amends.bindings.mcp import Client, reject
from amends.carriers import challenge
from amends.errors import UnauthenticatedError

HEADER = 'Bearer realm="shop", error="invalid_token", error_description="It \\"expired\\"", scope=orders:read'


def test_the_parameters_are_in_the_fault():
    """Of a 401 and a 403, beside the details of the body; values are data only."""
    asked = {"error": "invalid_token", "error_description": 'It "expired"', "scope": "orders:read"}
    for status in (401, 403):
        response = {"status": status, "headers": {"WWW-Authenticate": HEADER}, "body": None}
        assert extract(response).details == {**asked, "code": "invalid_token"}
        body = {"status": status, "title": "No", "detail": "Sign in", "details": {"scope": "own", "order": 7}}
        assert extract({**response, "body": body}).details == {**asked, "order": 7, "code": "invalid_token"}
    other = extract({"status": 400, "headers": {"WWW-Authenticate": HEADER}})
    assert other.details == {"code": "invalid_token"}
    for wrong in (None, 7, "", "Basic", "=" * 100_000, 'Bearer scope="\x00"', 'a="' * 50_000):
        assert challenge.read(wrong) == {}
    assert challenge.read(challenge.write(asked)) == asked
    assert challenge.write({"scope": "a\r\nSet-Cookie: x"}) is None


async def test_a_rejection_sends_the_challenge():
    """A client reads from it where and for what to sign in."""
    details = {"scope": "orders:read", "resource_metadata": "https://shop.example/.well-known/oauth"}
    rejection = reject(lambda request: UnauthenticatedError("Sign in", details=details))
    app = rejection.http(MCPServer("shop").streamable_http_app())
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as client:
        response = await client.post("http://shop/mcp", json={})
    assert response.status_code == 401
    assert challenge.read(response.headers["www-authenticate"]) == details
    assert details.items() <= extract(response).details.items()


class SlowSignIn(mcp.client.auth.OAuthClientProvider):
    """Waits for a person, longer than `connecting`."""

    def __init__(self):
        self.waited = False

    async def async_auth_flow(self, request):
        await asyncio.sleep(0.05)
        self.waited = True
        yield request


async def test_an_interactive_sign_in_is_not_cut_off():
    """`connecting` limits the server, not the person."""
    from tests.http.serving import serve

    auth = SlowSignIn()
    with serve(MCPServer("shop").streamable_http_app(), lifespan="on") as url:
        async with (
            httpx2.AsyncClient(auth=auth) as http,
            Client(f"{url}/mcp", http_client=http, connecting=0.01) as client,
        ):
            await client.list_tools()
    assert auth.waited
