"""
A2A servers and clients on `a2a-sdk` 1.x: protocol 1.0 and 0.3, JSON-RPC and REST, single responses and streams.

    from amends.bindings.a2a import Client, guard, reject

    handler = guard(DefaultRequestHandler(guard(MyExecutor()), InMemoryTaskStore(), card))

    async with Client("https://agent.example") as client:
        async for event in client.send_message(request):
            ...

`guard` turns every exception into a failed task with an AdCP error; `reject` rejects requests before they reach the
agent; `Client` raises typed errors and recovers by policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    import a2a as _sdk  # noqa: F401
except ImportError as missing:
    raise ImportError("amends.bindings.a2a needs an extra: pip install 'amends[a2a]'") from missing

if TYPE_CHECKING:
    from amends.bindings.a2a.client import Client
    from amends.bindings.a2a.reject import reject
    from amends.bindings.a2a.server import guard

__all__ = ["Client", "guard", "reject"]

# Importing the SDK's client or its server takes 0.3 s each, and most programs need only one of them.
_MODULES = {"Client": "client", "guard": "server", "reject": "reject"}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
