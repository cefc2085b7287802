# ruff: noqa: D102  (contract.py documents the methods)
"""The memory backend's store: its engine runs functions on plain data, and undoes the changes of one that raises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from amends.stores.address import Address
from amends.stores.clock import Clock
from amends.stores.contract import Transaction
from amends.stores.errors import StoreClosedError, UnsupportedError
from amends.stores.local import LocalStore, LocalTransaction
from amends.stores.memory.state import State
from amends.stores.signal import Signal
from amends.stores.traits import Traits

__all__ = ["MemoryStore", "open_memory"]

T = TypeVar("T")

_UNNAMED = Traits(scope="object", durable=False, transactions=True, sql=False, immediate=True, notifies=False)
_NAMED = replace(_UNNAMED, scope="process")
_named: dict[str, tuple[State, Signal]] = {}


def open_memory(address: Address, clock: Clock) -> MemoryStore:
    """A new store for `memory:`; for `memory:name` the store that the process shares under that name."""
    if not address.path:
        return MemoryStore(address.display_url, State(clock), Signal())
    state, signal = _named.setdefault(address.path, (State(clock), Signal()))
    return MemoryStore(address.display_url, state, signal, named=True)


class _Engine:
    """Runs each function at once, before another coroutine runs."""

    def __init__(self, url: str, state: State, signal: Signal) -> None:
        self._url = url
        self.place, self.signal, self.clock = state, signal, state.clock
        self.closed = False

    async def read(self, work: Callable[[State], T]) -> T:
        state = self._open()
        with state.lock:
            state.keep = False
            return work(state)

    async def write(self, work: Callable[[State], T]) -> T:
        state = self._open()
        with state.lock:
            state.undo.clear()
            state.keep = True
            try:
                result = work(state)
            except BaseException:
                while state.undo:
                    state.undo.pop()()
                raise
            self.signal.notify()
        return result

    def _open(self) -> State:
        if self.closed:
            raise StoreClosedError(self._url)
        return self.place

    async def close(self) -> None:
        self.closed = True
        self.signal.notify()


class MemoryStore(LocalStore):
    """A store in dictionaries."""

    def __init__(self, url: str, state: State, signal: Signal, *, named: bool = False) -> None:
        self._memory = _Engine(url, state, signal)
        super().__init__(url, self._memory)
        self.traits = _NAMED if named else _UNNAMED

    async def transaction(self, work: Callable[[Transaction], T]) -> T:
        return await self._memory.write(lambda state: work(_Transaction(state, state)))

    async def names(self) -> dict[str, list[str]]:
        return await self._memory.read(
            lambda state: {
                "logs": sorted(state.logs),
                "tables": sorted(state.tables),
                "queues": sorted(state.queues),
            }
        )

    async def check(self) -> list[str]:
        return await self._memory.read(lambda state: [])


class _Transaction(LocalTransaction):
    def sql(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[object, ...]]:
        raise UnsupportedError(
            "a memory store has no SQL: open a sqlite: store to run statements in its transaction"
        )
