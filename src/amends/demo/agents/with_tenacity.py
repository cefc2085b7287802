"""
The plain clients with tenacity, configured as well as it can be for services that nobody described to it.

429, 502, 503 and 504 and lost connections are repeated up to five times, after the time of `Retry-After` or growing waits; other
refusals, such as those of validation, are not. A tool or a task that may have begun is not repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from amends.demo.agents import Agent, plain

__all__ = ["AGENT"]

T = TypeVar("T")
_REPEATED = frozenset({408, 429, 500, 502, 503, 504})
_ATTEMPTS = 5


async def _retrying(function: Callable[..., Awaitable[T]], *arguments: Any, safe: bool) -> T:
    import httpx2
    from tenacity import (
        AsyncRetrying,
        RetryCallState,
        retry_if_exception,
        stop_after_attempt,
        wait_exponential,
    )

    def repeatable(error: BaseException) -> bool:
        if isinstance(error, httpx2.HTTPStatusError):
            return error.response.status_code in _REPEATED
        if isinstance(error, httpx2.TransportError | ValueError):
            return safe or isinstance(error, httpx2.ConnectError)
        return False

    growing = wait_exponential(multiplier=0.5, max=8)

    def wait(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        header = (
            error.response.headers.get("retry-after", "") if isinstance(error, httpx2.HTTPStatusError) else ""
        )
        return float(header) if header.isdecimal() else growing(state)

    retrying = AsyncRetrying(
        stop=stop_after_attempt(_ATTEMPTS),
        wait=wait,
        retry=retry_if_exception(repeatable),
        reraise=True,
        sleep=asyncio.sleep,
    )
    return await retrying(function, *arguments)


async def ask(messages: list[dict[str, str]]) -> str:
    """Call the model; it only computes, so a lost answer is repeated."""
    return await _retrying(plain.ask, messages, safe=True)


async def order() -> object:
    """Place the order; its key makes a repeat safe."""
    return await _retrying(plain.order, safe=True)


async def tool() -> object:
    """Call the tool."""
    return await _retrying(plain.tool, safe=False)


async def menu() -> object:
    """Send the message."""
    return await _retrying(plain.menu, safe=False)


AGENT = Agent("with tenacity", ask, order, tool, menu, plain.explain)
