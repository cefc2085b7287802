"""
The Agent Runtime Control Protocol (ARCP): a runtime for agents, and a client.

    async with amends.arcp.connect(runtime_or_url, token="…") as client:
        handle = await client.submit("summarise", {"url": "…"}, idempotency_key="…")
        result = await handle.done

`amends.arcp.errors` needs no extra; WebSockets need `amends[arcp]`.
"""

from __future__ import annotations

from importlib import import_module

# Type checkers treat this name as true; see `amends`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amends.arcp.client import Client, Event, Handle, Settings, Ticket, connect
    from amends.arcp.runtime import (
        Context,
        Credential,
        CredentialProvider,
        Grant,
        Limits,
        RotatingCredentialProvider,
        Runtime,
    )

__all__ = [
    "Client",
    "Context",
    "Credential",
    "CredentialProvider",
    "Event",
    "Grant",
    "Handle",
    "Limits",
    "RotatingCredentialProvider",
    "Runtime",
    "Settings",
    "Ticket",
    "connect",
]

_OF_CLIENT = frozenset({"Client", "Event", "Handle", "Settings", "Ticket", "connect"})


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'amends.arcp' has no attribute {name!r}")
    # Imported when it is first used.
    module = "client" if name in _OF_CLIENT else "runtime"
    value = getattr(import_module(f"amends.arcp.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
