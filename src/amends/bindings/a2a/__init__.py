"""
A2A, both sides, on `a2a-sdk` 1.x: protocol 1.0 and 0.3, JSON-RPC and REST, blocking and streaming.

    from amends.bindings.a2a import Client, guard, reject

    handler = guard(DefaultRequestHandler(guard(MyExecutor()), InMemoryTaskStore(), card))

    async with Client("https://agent.example") as client:
        async for event in client.send_message(request):
            ...

`guard` makes every exception a failed task that says what its caller can do (S4); `reject` turns requests away before
they reach the agent; `Client` raises typed errors and recovers by policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    import a2a as _sdk  # noqa: F401
except ImportError as missing:
    raise ImportError("amends.bindings.a2a needs an extra: pip install 'amends[a2a]'") from missing

if TYPE_CHECKING:
    from amends.bindings.a2a.client import Client
    from amends.bindings.a2a.reject import reject
    from amends.bindings.a2a.server import guard

__all__ = ["Client", "guard", "reject"]

# Each half of the SDK takes a third of a second to import, and most programs need one.
_HOMES = {"Client": "client", "guard": "server", "reject": "reject"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
