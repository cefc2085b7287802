"""
An MCP server that wraps your own API: the API's failures reach the model as what they are.

    python examples/api_as_mcp_tools.py

It needs `pip install 'amends[http,mcp,server]' fastapi`. The API runs in this process; in a real program it has an address.
"""

import asyncio
import logging

import httpx2
from fastapi import FastAPI
from mcp.server.mcpserver import MCPServer
from pydantic import BaseModel

from amends import FaultError, for_llm
from amends.bindings.fastapi import install
from amends.bindings.httpx import AsyncTransport
from amends.bindings.mcp import Client, guard
from amends.errors import ConflictError, NotFoundError, RateLimitedError

logging.disable()

# The API

api = FastAPI()
install(api, base_url="https://trains.example")
searches: list[str] = []


class Booking(BaseModel):
    train: str
    seats: int


@api.get("/trains/{train}")
async def find(train: str) -> dict[str, int]:
    searches.append(train)
    if len(searches) == 1:
        raise RateLimitedError("One search at a time", retry_after=0.1)
    if train != "10:12":
        raise NotFoundError(f"There is no train {train}", suggestions=["Trains leave at 09:12 and 10:12"])
    return {"free": 12}


@api.post("/bookings")
async def book(booking: Booking) -> dict[str, str]:
    raise ConflictError(f"The {booking.train} is full", suggestions=["Take the 11:12"])


# The MCP server over it. own=True: the API is part of our system, so its verdicts are passed on as they are.

server = MCPServer("trains")
guard(server)
http = httpx2.AsyncClient(
    base_url="https://trains.example",
    transport=AsyncTransport(httpx2.ASGITransport(app=api, raise_app_exceptions=False), own=True),
)


@server.tool()
async def free_seats(train: str) -> dict[str, int]:
    """Return the number of free seats."""
    return dict((await http.get(f"/trains/{train}")).json())


@server.tool()
async def book_seats(train: str, seats: int) -> dict[str, str]:
    """Book seats."""
    return dict((await http.post("/bookings", json={"train": train, "seats": seats})).json())


# What a model reads


async def main() -> None:
    async with Client(server) as client:
        print((await client.call_tool("free_seats", {"train": "10:12"})).structured_content, len(searches))
        for tool, arguments in (
            ("free_seats", {"train": "23:59"}),
            ("book_seats", {"train": "10:12", "seats": 2}),
        ):
            try:
                await client.call_tool(tool, arguments)
            except FaultError as error:
                print(for_llm(error.fault).splitlines()[0])
    await http.aclose()


asyncio.run(main())
# > {'free': 12} 2
# > Failed: REFERENCE_NOT_FOUND. Recovery: correctable (change the request). It had no effect.
# > Failed: CONFLICT. Recovery: correctable (change the request). It had no effect.
