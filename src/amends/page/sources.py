"""Where the page reads: the recorder's store, which is opened at the first request and kept open."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Generic, TypeVar

from amends.recorder import Reader, Recorder, current_recorder, default_url, open_reader
from amends.stores.contract import Store

__all__ = ["Opened", "RecordSource"]

T = TypeVar("T")


class Opened(Generic[T]):
    """A value that is opened at its first use, in the event loop of the application, and kept until `close`."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._value: T | None = None

    async def get(self) -> T:
        """Return the value."""
        if self._value is not None:
            return self._value
        async with self._lock:
            value = self._value
            if value is None:
                value = self._value = await self._open(self._stack)
            return value

    async def close(self) -> None:
        """Close what was opened."""
        self._value = None
        await self._stack.aclose()

    async def _open(self, stack: AsyncExitStack) -> T:
        raise NotImplementedError


class RecordSource(Opened[Reader]):
    """The recorder's events: of a URL, a store, a reader or a recorder; None: those of this process's recorder."""

    def __init__(self, source: str | Store | Reader | Recorder | None) -> None:
        """
        Args:
            source: where the events are.

        """
        super().__init__()
        self._source = source

    async def _open(self, stack: AsyncExitStack) -> Reader:
        source = self._source
        if isinstance(source, Reader):
            return source
        if source is None:
            recorder = current_recorder()
            source = default_url() if recorder is None else recorder.url
        if isinstance(source, Recorder):
            source = source.url
        if isinstance(source, str):
            return await stack.enter_async_context(open_reader(source))
        return Reader(source)
