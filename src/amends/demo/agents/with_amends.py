"""The same job with amends: one line per client, and a hook for what only a model can decide."""

from __future__ import annotations

from typing import Any

from amends import Fault, Policy, for_llm
from amends.demo.agents import Act, Errand, cellar, message
from amends.errors.adcp import ValidationError

__all__ = ["ACTS"]

POLICY = Policy(attempts=5, max_wait=20, deadline=30)


async def prices(errand: Errand) -> Any:
    """The transport waits as long as it was asked to."""
    import httpx2

    from amends.bindings.httpx import AsyncTransport

    transport = AsyncTransport(policy=POLICY)
    async with httpx2.AsyncClient(base_url=errand.places.http, transport=transport) as client:
        return (await client.get("/prices")).json()


async def order(errand: Errand) -> Any:
    """The transport sends a key, so the lost answer can be asked for again without a second order."""
    import httpx2

    from amends.bindings.httpx import AsyncTransport

    transport = AsyncTransport(policy=POLICY)
    async with httpx2.AsyncClient(base_url=errand.places.http, transport=transport) as client:
        return (await client.post("/orders", json={"trout": 8})).json()


async def wine(errand: Errand) -> Any:
    """The runner reads the envelope, and repeats what surely did not happen."""
    from amends.process import arun

    return (await arun(cellar(errand), policy=POLICY)).stdout.decode()


async def table(errand: Errand) -> Any:
    """The client waits where waiting helps; what has to change first, a model is asked for."""
    from amends.bindings.mcp import Client

    wish = {"guests": 8, "time": errand.time}
    async with Client(errand.places.mcp, policy=POLICY) as client:
        try:
            result = await client.call_tool("find_table", wish)
        except ValidationError as error:
            wish["time"] = _model(error.fault, errand)
            result = await client.call_tool("find_table", wish)
    return result.structured_content


def _model(fault: Fault, errand: Errand) -> str:
    """Stands in for a model: it reads the fenced text, and answers with a value that is allowed."""
    errand.told("table", for_llm(fault))
    return str((fault.details or {})["allowed"][0])


async def menu(errand: Errand) -> Any:
    """A failed task is a typed error, and its wait is kept. A menu may be asked for twice: it only reads."""
    from a2a.types.a2a_pb2 import SendMessageRequest

    from amends.bindings.a2a import Client

    async with Client(errand.places.a2a, policy=POLICY, repeatable=True) as client:
        request = SendMessageRequest(message=message())
        return [str(event) async for event in client.send_message(request)]


async def charge(errand: Errand) -> Any:
    """The session is taken up again where it broke, and the job's result arrives once."""
    from amends.arcp import connect

    async with connect(errand.places.arcp, token=errand.places.token) as client:
        handle = await client.submit("deposit", {"amount": "50"}, idempotency_key="deposit-of-tonight")
        return await handle.done


ACTS: dict[str, Act] = {act.__name__: act for act in (prices, order, wine, table, menu, charge)}
