"""The same job with amends: one line per client, and a model for the one decision that needs it."""

from __future__ import annotations

from amends import Fault, Policy, for_llm
from amends.demo.agents import StepContext, StepFunction, cellar_command, menu_message
from amends.errors.adcp import ValidationError

__all__ = ["STEP_FUNCTIONS"]

POLICY = Policy(attempts=5, max_wait=20, deadline=30)


async def prices(context: StepContext) -> object:
    """Send a GET. The transport waits as long as the server asks."""
    import httpx2

    from amends.bindings.httpx import AsyncTransport

    transport = AsyncTransport(policy=POLICY)
    async with httpx2.AsyncClient(base_url=context.endpoints.http, transport=transport) as client:
        return (await client.get("/prices")).json()


async def order(context: StepContext) -> object:
    """
    Send a POST. The transport sends an idempotency key, so a retry after the lost response makes no second order.

    `keyed=True`: the service says that it honours keys. Without it, a lost response is not repeated.
    """
    import httpx2

    from amends.bindings.httpx import AsyncTransport

    transport = AsyncTransport(policy=POLICY, keyed=True)
    async with httpx2.AsyncClient(base_url=context.endpoints.http, transport=transport) as client:
        return (await client.post("/orders", json={"trout": 8})).json()


async def wine(context: StepContext) -> object:
    """Run a command. The runner reads its envelope and retries a call that certainly had no effect."""
    from amends.process import arun

    return (await arun(cellar_command(context), policy=POLICY)).stdout.decode()


async def table(context: StepContext) -> object:
    """Call a tool. The client waits out the rate limit; for an invalid argument a model chooses another one."""
    from amends.bindings.mcp import Client

    arguments = {"guests": 8, "time": context.time}
    async with Client(context.endpoints.mcp, policy=POLICY) as client:
        try:
            result = await client.call_tool("find_table", arguments)
        except ValidationError as error:
            arguments["time"] = _ask_model(error.fault, context)
            result = await client.call_tool("find_table", arguments)
    return result.structured_content


def _ask_model(fault: Fault, context: StepContext) -> str:
    """Simulate a model that reads the fenced text and returns an allowed value."""
    context.on_model_text(for_llm(fault))
    return str((fault.details or {})["allowed"][0])


async def menu(context: StepContext) -> object:
    """Send a message. A failed task raises a typed error, whose wait is respected; the request only reads."""
    from a2a.types.a2a_pb2 import SendMessageRequest

    from amends.bindings.a2a import Client

    async with Client(context.endpoints.a2a, policy=POLICY, repeatable=True) as client:
        request = SendMessageRequest(message=menu_message())
        return [str(event) async for event in client.send_message(request)]


async def charge(context: StepContext) -> object:
    """Submit a job. The client resumes the lost session, and the job's result arrives once."""
    from amends.arcp import connect

    async with connect(context.endpoints.arcp, token=context.endpoints.token) as client:
        handle = await client.submit("deposit", {"amount": "50"}, idempotency_key="deposit-of-tonight")
        return await handle.done


STEP_FUNCTIONS: dict[str, StepFunction] = {
    function.__name__: function for function in (prices, order, wine, table, menu, charge)
}
