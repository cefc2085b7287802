# ruff: noqa: D102  (contract.py documents the methods)
"""
What a backend on one machine (memory, SQLite) has: the rows of one log, table or queue, and an engine that runs functions on them.

The methods of the rows do not wait. `local` has what callers use.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol, TypeVar

from amends.stores.clock import Clock
from amends.stores.contract import DeadMessage, Entry, Message, QueueSize, Row
from amends.stores.signal import Signal
from amends.stores.writers import LogWriter, QueueWriter, TableWriter

__all__ = ["PAGE", "Engine", "LogRows", "QueueRows", "Rows", "TableRows", "TakenMessage"]

T = TypeVar("T")

PAGE = 256
"""Entries, rows or messages that are read at once."""


class TakenMessage(NamedTuple):
    """What `QueueRows.take` returns: the message's number and epoch, and what the worker needs."""

    number: int
    key: str | None
    value: bytes
    attempt: int
    epoch: int


class LogRows(LogWriter, Protocol):
    """The entries of one log."""

    def drop(self) -> object: ...
    def read(self, start: int | None, limit: int) -> list[Entry]: ...
    def tail(self) -> Entry | None: ...
    def trim(self, before: int) -> int: ...
    def start_at(self, first: int) -> None: ...


class TableRows(TableWriter, Protocol):
    """The rows of one table."""

    def drop(self) -> object: ...
    def page(self, prefix: str, after: str | None) -> tuple[list[Row], str | None]: ...


class QueueRows(QueueWriter, Protocol):
    """The messages of one queue. A message that is held is named by its number and its epoch."""

    def drop(self) -> object: ...
    def restore(self, value: bytes, *, key: str | None, delay: float, attempts: int) -> bool: ...
    def take(self, lease: float, max_attempts: int | None) -> TakenMessage | float | None: ...
    def next_in(self) -> float | None: ...
    def now(self) -> float: ...
    def untake(self, number: int, epoch: int) -> None: ...
    def check_lease(self, number: int, epoch: int) -> None: ...
    def extend(self, number: int, epoch: int, lease: float) -> None: ...
    def done(self, number: int, epoch: int) -> None: ...
    def give_back(self, number: int, epoch: int, delay: float) -> None: ...
    def dead_letter(self, number: int, epoch: int, reason: str) -> None: ...
    def size(self) -> QueueSize: ...
    def page(self, after: int) -> list[Message]: ...
    def dead(self, limit: int) -> list[DeadMessage]: ...
    def restore_dead(self, letter: DeadMessage) -> None: ...
    def revive(self, id: str) -> bool: ...
    def discard(self, id: str) -> bool: ...


class Rows(Protocol):
    """All rows of a store. The methods raise ValueError or TypeError for what is no name."""

    def log(self, name: str) -> LogRows: ...
    def table(self, name: str) -> TableRows: ...
    def queue(self, name: str) -> QueueRows: ...


class Engine(Protocol):
    """Runs functions on the rows of a store."""

    clock: Clock
    signal: Signal
    """Notified of every change."""
    closed: bool

    @property
    def place(self) -> object:
        """Equal for all stores with the same rows."""

    def read(self, work: Callable[[Rows], T]) -> Awaitable[T]:
        """Run a function that changes nothing."""

    def write(self, work: Callable[[Rows], T], *, synced: bool = True) -> Awaitable[T]:
        """
        Run a function that checks before it writes; the result comes after the commit.

        With `synced=False` the commit may be lost if the machine stops, but not if the process does; a later commit that is
        not lost keeps it.
        """

    async def close(self) -> None: ...
