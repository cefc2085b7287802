"""A client that waits as long as the server asks and never orders twice. Run: python examples/client.py"""

import asyncio
from typing import Any

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from amends import FaultError
from amends.bindings.httpx import AsyncTransport
from amends.bindings.starlette import install
from amends.errors import NotFoundError, RateLimitedError
from amends.http.idempotency import Idempotent

calls: list[str] = []
orders: list[Any] = []


async def order(request: Request) -> JSONResponse:
    calls.append(request.headers["idempotency-key"])
    if len(calls) == 1:
        raise RateLimitedError("One order at a time", retry_after=0.2)
    orders.append(await request.json())
    return JSONResponse({"number": len(orders)}, 201)


async def find(request: Request) -> JSONResponse:
    raise NotFoundError("There is no such order", suggestions=["Orders are numbered from 1"])


shop = Starlette(routes=[Route("/orders", order, methods=["POST"]), Route("/orders/0", find)])
install(shop)
shop.add_middleware(Idempotent, store="memory:")


async def main() -> None:
    transport = AsyncTransport(httpx2.ASGITransport(app=shop))
    async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as client:
        response = await client.post("/orders", json={"item": "book"})
        print(response.json(), len(calls), len(set(calls)), len(orders))
        try:
            await client.get("/orders/0")
        except FaultError as error:
            print(type(error).__name__, error.decision.action, error.fault.suggestions[0])


asyncio.run(main())
# > {'number': 1} 2 1 1
# > NotFoundError fix Orders are numbered from 1
