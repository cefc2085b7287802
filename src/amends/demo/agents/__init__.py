"""
Three agents with the same job: the official clients alone, the same clients with tenacity, and amends.

Each asks a model, places an order over HTTP, places one with a tool of an MCP server, asks an A2A agent, and reports to the model.
An agent goes on when a step fails, and passes the reason to the model.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from a2a.types.a2a_pb2 import Message

__all__ = ["MODEL", "ORDER", "Agent", "StepFailedError", "job", "menu_message", "orders_url", "question"]

MODEL = "https://api.openai.com/v1/chat/completions"
ORDER = {"item": "trout", "quantity": 8}
KEY = "order-of-tonight"
"""The key of the order over HTTP; all agents send it, because the store honours keys."""


class StepFailedError(Exception):
    """A result that reports a failure, raised as most agent loops do."""


class Agent(msgspec.Struct, frozen=True):
    """The steps of an agent. Each returns a text for the model, or raises."""

    name: str
    ask: Callable[[list[dict[str, str]]], Awaitable[str]]
    order: Callable[[], Awaitable[object]]
    tool: Callable[[], Awaitable[object]]
    menu: Callable[[], Awaitable[object]]
    explain: Callable[[Exception], str]
    """Returns what the model reads about a failure."""


def orders_url() -> str:
    """Return the address of the store of orders."""
    return os.environ["ORDERS_URL"] + "/orders"


def question(messages: list[dict[str, str]]) -> dict[str, Any]:
    """Return the body of a call of the model."""
    return {"model": "gpt-4o", "messages": messages}


def menu_message() -> Message:
    """Return the A2A message of the menu."""
    from uuid import uuid4

    from a2a.types.a2a_pb2 import Message, Part, Role

    return Message(message_id=str(uuid4()), role=Role.ROLE_USER, parts=[Part(text="A menu for eight")])


async def job(agent: Agent, output: Callable[[str], None]) -> bool:
    """Do the job. Returns whether every step succeeded; what the user reads goes to `output`."""
    messages = [{"role": "user", "content": "Plan a dinner for eight."}]
    failed = False

    async def step(name: str, call: Awaitable[object]) -> None:
        nonlocal failed
        try:
            text = f"{name}: {await call}"
        except Exception as error:  # noqa: BLE001 - an exception of an agent's client is the result of the step
            failed = True
            text = f"{name} failed: {agent.explain(error)}"
            output(text)
        messages.append({"role": "user", "content": text})

    await step("plan", agent.ask(list(messages)))
    await step("order", agent.order())
    await step("wine", agent.tool())
    await step("menu", agent.menu())
    await step("report", agent.ask(list(messages)))
    return not failed
