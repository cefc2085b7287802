"""How a client reaches its runtime: by URL, in this process, or by a function of the caller."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from amends.arcp.transports.connection import Connection, ConnectionLost, Serves

__all__ = ["Addresses", "Dial", "UrlDial", "dial_of"]

Dial = Callable[[], Awaitable[Connection]]
"""Connects to the runtime; every call returns a new connection."""


class UrlDial:
    """Dials a URL; its name appears in the faults of connections that fail."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        """
        Check the URL; nothing is connected yet.

        Raises:
            ImportError: the extra `arcp` is not installed.

        """
        from amends.arcp.transports import websocket

        self._dial = websocket.dial
        self._url = url
        self._options = options
        self.name = websocket.shown_url(url)
        """The URL without parts that may be secret."""

    async def __call__(self) -> Connection:
        """Open a connection."""
        return await self._dial(self._url, **self._options)


class Addresses:
    """
    The addresses of several nodes of one runtime. Each attempt begins behind the address that was used last.

    A node that is paused accepts connections and never answers, so a lost session goes on at another node first.
    """

    def __init__(self, dials: list[UrlDial]) -> None:
        self._dials = dials
        self._next = 0

    def __len__(self) -> int:
        return len(self._dials)

    def in_turn(self) -> Iterator[UrlDial]:
        """Yield each address once; the one after the last that is taken comes first the next time."""
        for _ in self._dials:
            dial = self._dials[self._next]
            self._next = (self._next + 1) % len(self._dials)
            yield dial

    async def __call__(self) -> Connection:
        """Open a connection to the next address."""
        return await next(self.in_turn())()


def dial_of(target: Any, options: dict[str, Any]) -> Dial:
    """
    The dial function for a target of `connect`.

    Raises:
        TypeError: the target is neither a URL or a list of them, nor a runtime, nor a function.

    """
    if isinstance(target, str):
        return UrlDial(target, options)
    if isinstance(target, list | tuple):
        if not target or not all(isinstance(url, str) for url in target):
            raise TypeError(f"connect takes a list of URLs, with at least one, not {target!r}")
        dials = [UrlDial(url, options) for url in dict.fromkeys(target)]
        return dials[0] if len(dials) == 1 else Addresses(dials)
    if hasattr(target, "serve"):
        return _in_process(target)
    if callable(target):
        return target  # type: ignore[no-any-return]
    raise TypeError("connect takes a URL, a list of URLs, a Runtime, or a function that returns a Connection")


def _in_process(runtime: Serves) -> Dial:
    """Dial a runtime of this process, over an in-memory connection."""
    serving: set[asyncio.Task[None]] = set()

    async def dial() -> Connection:
        from amends.arcp.transports.memory import pair

        if not getattr(runtime, "running", True):
            raise ConnectionLost("the runtime in this process was stopped")
        near, far = pair()
        task = asyncio.create_task(runtime.serve(far))
        # Without a reference the task could be garbage-collected while it runs.
        serving.add(task)
        task.add_done_callback(serving.discard)
        return near

    return dial
