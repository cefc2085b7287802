"""
The stores of a ledger: an open store belongs to one event loop, but a ledger is used from all of them, and from threads.

- A coroutine uses the handle of its event loop, which is opened at its first call there.
- A plain function uses a handle on an event loop in a thread of its own. A memory store never waits, so the calling thread
  uses it directly.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import TypeVar
from weakref import WeakKeyDictionary

from amends.durable.keys import Keys
from amends.durable.lock_owner import owner_of
from amends.durable.loop_thread import LoopThread
from amends.effects.flow import EffectClaim, EffectKeys
from amends.effects.records import TABLE, EffectRecord
from amends.stores import Clock, Store, StoreError
from amends.stores import open as open_store
from amends.stores.address import parse
from amends.stores.clock import SystemClock
from amends.stores.coded import Codec
from amends.stores.memory import MemoryStore

__all__ = ["Handles", "run_at_once"]

T = TypeVar("T")

_PATIENCE = 30.0
"""Seconds that a plain function waits for its store, beyond the lease."""


class Handles:
    """Opens the store of a ledger where it is used."""

    def __init__(self, where: Store | str, *, expires_in: float, lease: float, clock: Clock | None) -> None:
        self._where, self._expires_in, self.lease, self._clock = where, expires_in, lease, clock
        self.clock: Clock = (
            (clock or SystemClock()) if isinstance(where, str) else getattr(where, "clock", SystemClock())
        )
        self._own_loop: asyncio.AbstractEventLoop | None = None
        if isinstance(where, str):
            parse(where)
        else:
            with suppress(RuntimeError):
                self._own_loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, EffectKeys] = WeakKeyDictionary()
        self._process = os.getpid()
        self._thread = LoopThread(lease + _PATIENCE, "amends-effects")
        self._active: dict[int, EffectClaim] = {}
        self._renewer: Future[None] | None = None
        self._memory: EffectKeys | None = None
        self.codec: Codec | None = getattr(where, "codec", None)
        """Encodes the values of the store, if it was given open with one."""
        if not isinstance(where, str) and isinstance(getattr(where, "inner", where), MemoryStore):
            self._memory = self._keys_in(where)

    @property
    def in_postgres(self) -> bool:
        """Whether the ledger is in a Postgres database."""
        where = self._where if isinstance(self._where, str) else self._where.url
        return parse(where).scheme == "postgres"

    async def keys(self, *, in_thread: bool = False) -> EffectKeys:
        """
        Return the keys on the running event loop, which may be that of the thread for plain functions.

        Raises:
            StoreError: the store cannot be opened.

        """
        if self._memory is not None:
            return self._memory
        if not isinstance(self._where, str):
            return await self._given_keys(self._where, in_thread)
        loop = asyncio.get_running_loop()
        if self._process != os.getpid():
            # The connections of the parent process cannot be used here.
            self._loops, self._process = WeakKeyDictionary(), os.getpid()
        found = self._loops.get(loop)
        if found is None:
            found = self._keys_in(await self._open(self._where))
            if isinstance(found.store, MemoryStore):
                with self._lock:
                    if self._memory is None:
                        self._memory = found
                return self._memory
            first = self._loops.setdefault(loop, found)
            if first is not found:
                # Another caller opened it in the meantime.
                await found.store.close()
                return first
            await self._close_stale()
        return found

    async def _given_keys(self, given: Store, in_thread: bool) -> EffectKeys:
        """Return the keys in a store that was given open; for another event loop than its own it is opened by its URL."""
        loop = asyncio.get_running_loop()
        if self._own_loop is None and not in_thread:
            self._own_loop = loop
        if loop is self._own_loop and loop not in self._loops:
            self._loops[loop] = self._keys_in(given)
        found = self._loops.get(loop)
        if found is None:
            found = self._loops[loop] = self._keys_in(await self._open(getattr(given, "full_url", given.url)))
        return found

    async def _open(self, url: str) -> Store:
        return await open_store(url, clock=self._clock, codec=self.codec)

    def _keys_in(self, store: Store) -> EffectKeys:
        return Keys(
            store,
            TABLE,
            EffectRecord,
            expires_in=self._expires_in,
            lease=self.lease,
            keep_unsettled=True,
            owner=owner_of(store),
        )

    async def _close_stale(self) -> None:
        """Close the handles of event loops that have ended."""
        for loop, keys in list(self._loops.items()):
            if loop.is_closed():
                del self._loops[loop]
                with suppress(StoreError, RuntimeError):
                    await keys.store.close()

    # -------------------------------------------------------------------------------------------- plain functions

    def run(self, work: Callable[[EffectKeys], Awaitable[T]]) -> T:
        """Await a function of the keys from a plain function."""
        if self._memory is None and isinstance(self._where, str) and self._where.startswith("memory:"):
            self._thread.run(self.keys())
        if self._memory is not None:
            return run_at_once(work(self._memory))
        return self._thread.run(self._with_keys(work))

    async def _with_keys(self, work: Callable[[EffectKeys], Awaitable[T]]) -> T:
        return await work(await self.keys(in_thread=True))

    def start(self, work: Coroutine[object, object, T]) -> Future[T]:
        """Start a coroutine on the event loop in the thread."""
        return self._thread.start(work)

    @contextmanager
    def renewing(self, claim: EffectClaim) -> Generator[None]:
        """Renew the lease of the claim while a plain function runs."""
        with self._lock:
            self._active[id(claim)] = claim
            if self._renewer is None or self._renewer.done() or self._process != os.getpid():
                self._renewer = self._thread.start(self._renew())
        try:
            yield
        finally:
            with self._lock:
                self._active.pop(id(claim), None)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self.lease / 3)
            for claim in list(self._active.values()):
                with suppress(StoreError):
                    await (await self.keys(in_thread=True)).renew(claim)

    # --------------------------------------------------------------------------------------------------- closing

    async def aclose(self) -> None:
        """Close the handle of the running event loop, and the thread of plain functions."""
        keys = self._loops.pop(asyncio.get_running_loop(), None)
        if keys is not None and keys.store is not self._where:
            await keys.store.close()
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Close the handle of plain functions and end their thread."""
        if self._thread.started:
            with suppress(StoreError, TimeoutError):
                self._thread.run(self._close_here())
            self._thread.stop()
        self._renewer = None

    async def _close_here(self) -> None:
        keys = self._loops.pop(asyncio.get_running_loop(), None)
        if keys is not None and keys.store is not self._where:
            await keys.store.close()


def run_at_once(work: Awaitable[T]) -> T:
    """Run a coroutine that awaits a memory store, which never suspends."""
    steps = work.__await__()
    try:
        next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
    steps.close()
    raise RuntimeError("a coroutine on a memory store suspended; it must complete without waiting")
