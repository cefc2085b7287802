"""A repeat that meets its own first request, which is being worked on, is sent again with the same key: it is refused or replayed."""

import asyncio

import httpx
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from amends.bindings.httpx import AsyncTransport
from amends.bindings.starlette import install
from amends.demo.host import serving
from amends.gateway.config import UpstreamConfig
from amends.http.idempotency import Idempotent
from amends.testing import FakeClock
from tests.gateway.peers import serving as gateway_before

KEY = {"idempotency-key": "order-17"}


class Shop:
    """A service behind `Idempotent`. Its first order ends once a second one was told to wait."""

    def __init__(self):
        self.orders, self.statuses = 0, []
        self.refused = asyncio.Event()

        async def order(_):
            self.orders += 1
            await self.refused.wait()
            return JSONResponse({"order": self.orders}, 201)

        app = Starlette(routes=[Route("/orders", order, methods=["POST"])])
        install(app)
        self.inner = Idempotent(app, store="memory:")

    async def __call__(self, scope, receive, send):
        async def noted(message):
            if message["type"] == "http.response.start":
                self.statuses.append(message["status"])
                if message["status"] == 409:
                    self.refused.set()
            await send(message)

        await self.inner(scope, receive, noted if scope["type"] == "http" else send)


async def sent_twice(shop, caller):
    """Send an order twice at once, and return the answers; it was made once, and the repeat was told to wait."""
    async with asyncio.timeout(60):
        answers = await asyncio.gather(*(caller.post("/orders", json={}, headers=KEY) for _ in range(2)))
    assert shop.orders == 1
    assert 409 in shop.statuses
    return sorted((answer.status_code, answer.json().get("order")) for answer in answers)


async def test_a_client_parks():
    """The transport of a caller who set the key."""
    shop = Shop()
    async with serving(shop) as port:
        transport = AsyncTransport(upstream=None)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://127.0.0.1:{port}") as caller:
            with FakeClock():
                assert await sent_twice(shop, caller) == [(201, 1), (201, 1)]


async def test_the_gateway_makes_no_second_order():
    """For a service of which nothing is known."""
    shop = Shop()
    async with serving(shop) as port:
        upstream = UpstreamConfig(name="shop", url=f"http://127.0.0.1:{port}", prefix="")
        async with (
            gateway_before(upstream) as gateway,
            httpx.AsyncClient(base_url=gateway.url, timeout=30) as caller,
        ):
            first, second = await sent_twice(shop, caller)
            # It may pass the 409 on, which names the wait.
            assert (first, second[0]) == ((201, 1), second[0])
            assert second in {(201, 1), (409, None)}
