"""
Three agents with the same job: official clients as they come, the same under tenacity, and amends.

Each has a coroutine per step, which takes the `Errand` and returns the step's answer or raises.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

__all__ = ["Act", "Errand", "Places", "cellar", "message"]


class Places(msgspec.Struct, frozen=True):
    """Where the services are."""

    http: str
    mcp: str
    a2a: str
    arcp: str
    token: str


class Errand(msgspec.Struct, frozen=True):
    """What an agent is given: where everything is, and what it wishes for first."""

    places: Places
    time: str
    told: Callable[[str, str], None] = lambda step, words: None
    """Called with what a model has to read about a failure."""


Act = Callable[[Errand], Awaitable[Any]]


def cellar(errand: Errand) -> list[str]:
    """The command everybody runs."""
    words = [sys.executable, "-m", "amends.demo.services.cellar", "--at", errand.places.http, "6"]
    return [*words, "--output", "json"]


def message() -> Any:
    """What everybody says to the chef."""
    from uuid import uuid4

    from a2a.types.a2a_pb2 import Message, Part, Role

    return Message(message_id=str(uuid4()), role=Role.ROLE_USER, parts=[Part(text="A menu for eight")])
