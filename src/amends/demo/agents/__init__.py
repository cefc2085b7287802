"""
Three agents with the same job: the official clients alone, the same clients with tenacity, and amends.

Each has a coroutine per step, which takes a `StepContext` and returns the step's result or raises.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from a2a.types.a2a_pb2 import Message

__all__ = ["Endpoints", "StepContext", "StepFunction", "cellar_command", "menu_message"]


class Endpoints(msgspec.Struct, frozen=True):
    """The addresses of the services, and the token for the ARCP runtime."""

    http: str
    mcp: str
    a2a: str
    arcp: str
    token: str


class StepContext(msgspec.Struct, frozen=True):
    """The input of a step: the endpoints, and the time that the agent asks for first."""

    endpoints: Endpoints
    time: str
    on_model_text: Callable[[str], None] = lambda text: None
    """Called with the text that a model has to read about a failure."""


StepFunction = Callable[[StepContext], Awaitable[object]]


def cellar_command(context: StepContext) -> list[str]:
    """Return the command line of the `wine` step."""
    module = "amends.demo.services.cellar"
    return [sys.executable, "-m", module, "--at", context.endpoints.http, "6", "--output", "json"]


def menu_message() -> Message:
    """Return the A2A message of the `menu` step."""
    from uuid import uuid4

    from a2a.types.a2a_pb2 import Message, Part, Role

    return Message(message_id=str(uuid4()), role=Role.ROLE_USER, parts=[Part(text="A menu for eight")])
