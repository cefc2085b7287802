"""An agent finishes its work against a failing shop, without duplicates or unnecessary calls."""

import asyncio
import sqlite3
from contextlib import closing

import httpx2
from fastapi import FastAPI, Request
from pydantic import BaseModel, Field

from amends import FaultError, stores
from amends.bindings.fastapi import install
from amends.bindings.httpx import AsyncTransport
from amends.bindings.limits import Limited
from amends.bindings.starlette import once
from amends.errors import ServiceUnavailableError
from amends.http.cancellation import Cancellable
from amends.http.idempotency import Idempotent
from amends.http.intent import declare, reached
from tests.http.serving import serve


class Order(BaseModel):
    item: str
    count: int = Field(ge=1)


class Shop:
    """A shop with one failure of each kind, and the tables of what was ordered and shipped."""

    def __init__(self, folder):
        self.file = f"{folder}/shop.db"
        self.seen = []
        self.trouble = ["unavailable", "lose"]
        self.slow = True
        with closing(sqlite3.connect(self.file)) as file, file:
            file.execute("CREATE TABLE orders (item TEXT, count INTEGER)")
            file.execute("CREATE TABLE shipments (item TEXT)")
        app = FastAPI()

        @app.post("/orders", status_code=201)
        async def order(order: Order, request: Request):
            if self.trouble[:1] == ["unavailable"]:
                self.trouble.pop(0)
                raise ServiceUnavailableError(
                    "The warehouse is being counted", retry_after=0.3, executed="no"
                )

            def place(tx):
                tx.sql("INSERT INTO orders VALUES (?, ?)", (order.item, order.count))
                return {"placed": order.item}

            return await once(request, place, status=201)

        @app.post("/shipments", status_code=201)
        async def ship(request: Request):
            declare(operation="ship", resource_id="shipment-book", state="picking")
            if self.slow:
                self.slow = False
                await asyncio.sleep(30)
            reached("packing")
            return await once(
                request, lambda tx: tx.sql("INSERT INTO shipments VALUES ('book')") or {"sent": True}
            )

        install(app)
        keyed = Idempotent(app, f"sqlite:///{self.file}", transactional=True)
        limited = Limited(keyed, "4/second", route=lambda scope: scope["path"] == "/orders")
        self.app = Cancellable(limited, f"sqlite:///{self.file}")

    async def __call__(self, scope, receive, send):
        """Record every call, and lose one response after its effect."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        lose = scope["path"] == "/orders" and self.trouble == ["lose"]
        status = []

        async def sent(message):
            if message["type"] == "http.response.start":
                status.append(message["status"])
                self.seen.append((scope["path"], message["status"]))
            if not (lose and status[0] == 201):
                await send(message)

        await self.app(scope, receive, sent)
        if lose and status == [201]:
            self.trouble.clear()
            await asyncio.sleep(2)

    def rows(self, table):
        with closing(sqlite3.connect(self.file)) as file, file:
            return file.execute(f"SELECT * FROM {table}").fetchall()


FIX = ("fix", "Send a whole number at /body/count")


async def agent(url):
    """Order a book and have it shipped, guided only by the problem documents."""
    transport = AsyncTransport(keyed=True)  # the shop documents that it honours keys
    async with httpx2.AsyncClient(transport=transport, base_url=url, timeout=1.5) as client:
        order = {"item": "book", "count": "one"}
        while True:
            try:
                placed = (await client.post("/orders", json=order)).json()
                break
            except FaultError as error:
                # P9: the decision is `fix`; the pointer names the field and the suggestion the change.
                if (error.decision.action, *error.fault.suggestions) != FIX:
                    raise
                order[error.fault.field.rpartition("/")[2]] = 1
        # The deadline cancels the first attempt, which had no effect; it is repeated under the same key.
        headers = {"Idempotency-Key": "ship-the-book", "Request-Timeout": "0.8"}
        sent = await client.post("/shipments", headers=headers)
        return placed, sent.json()


async def test_the_agent_finishes(tmp_path):
    """P9, P10, P11: a 422, a 503 with a wait, a lost response and a cancelled request; one effect each."""
    shop = Shop(tmp_path)
    with serve(shop) as url:
        placed, sent = await agent(url)
        # A burst above the rate limit is refused with a wait, and every call succeeds.
        async with httpx2.AsyncClient(transport=AsyncTransport(keyed=True), base_url=url) as client:
            burst = [client.post("/orders", json={"item": f"pen-{n}", "count": 1}) for n in range(6)]
            answers = await asyncio.gather(*burst)
    assert placed == {"placed": "book"}
    assert sent == {"sent": True}
    assert {answer.status_code for answer in answers} == {201}
    assert sorted(shop.rows("orders")) == sorted([("book", 1), *((f"pen-{n}", 1) for n in range(6))])
    assert shop.rows("shipments") == [("book",)]
    first = [status for path, status in shop.seen if path == "/orders"][:4]
    assert first == [422, 503, 201, 201], "fixed once, waited once, repeated once"
    assert [status for path, status in shop.seen if path == "/shipments"] == [408, 200]
    refused = [status for path, status in shop.seen if status == 429]
    assert len(refused) <= 6
    async with await stores.open(f"sqlite:///{shop.file}") as store:
        assert await store.check() == []
