"""The tool of all agents: it places an order over HTTP."""

import os
import sys

import httpx2

WITH_AMENDS = sys.argv[1:] == ["amends"]
PROMPT = "Order one tea."
MODEL = "gpt-4o"
PARAMETERS = {
    "type": "object",
    "properties": {"item": {"type": "string"}, "quantity": {"type": "integer"}},
    "required": ["item", "quantity"],
    "additionalProperties": False,
}


PLACED = []
"""Results of orders that were placed."""


def finish() -> None:
    """End the program: with exit code 1 if no order was placed, whatever the model says."""
    sys.exit(0 if PLACED else 1)


def create_order(item: str, quantity: int) -> str:
    """
    Place an order.

    Args:
        item: what to order
        quantity: how many

    """
    url, order = os.environ["ORDERS_URL"] + "/orders", {"item": item, "quantity": quantity}
    if WITH_AMENDS:
        from amends.bindings.httpx import Transport

        with httpx2.Client(transport=Transport(keyed=True), timeout=5) as client:
            PLACED.append(client.post(url, json=order).text)
            return PLACED[-1]
    response = httpx2.post(url, json=order, timeout=5)
    response.raise_for_status()
    PLACED.append(response.text)
    return response.text


def openai_options():
    """Return the options with which a client of OpenAI uses amends; none for a plain one."""
    if not WITH_AMENDS:
        return {}
    from amends.bindings.httpx import Transport

    return {
        "http_client": httpx2.Client(transport=Transport(raises="nothing", vendor="openai"), timeout=10),
        "max_retries": 0,
    }


def async_openai_options():
    """Return the same for an asynchronous client."""
    if not WITH_AMENDS:
        return {}
    from amends.bindings.httpx import AsyncTransport

    client = httpx2.AsyncClient(transport=AsyncTransport(raises="nothing", vendor="openai"), timeout=10)
    return {"http_client": client, "max_retries": 0}
