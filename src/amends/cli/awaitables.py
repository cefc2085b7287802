"""Runs `async def` commands: frameworks that do not know them return their coroutine as the result."""

from __future__ import annotations

from typing import Any

__all__ = ["run_awaitable"]


def run_awaitable(value: object) -> Any:
    """
    Run an awaitable on a new event loop and return its result; return any other value unchanged.

    Inside a running event loop the awaitable itself is returned, for the caller to await.
    """
    if not hasattr(type(value), "__await__"):
        return value
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_result(value))
    return value


async def _result(awaitable: Any) -> object:
    return await awaitable
