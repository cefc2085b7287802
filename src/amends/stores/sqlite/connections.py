"""The engine of a SQLite store: its open file, where its statements run, and what notifies of changes."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from typing import TypeVar

from amends.stores.clock import Clock
from amends.stores.errors import StoreClosedError
from amends.stores.signal import Signal
from amends.stores.sqlite.file import File
from amends.stores.sqlite.threads import Reader, Writer
from amends.stores.sqlite.transaction import SqliteTransaction

__all__ = ["Connections"]

T = TypeVar("T")


class Connections:
    """The writing and the reading connection of one open store, each with its thread."""

    def __init__(
        self, url: str, file: File, clock: Clock, writer: sqlite3.Connection, reader: sqlite3.Connection
    ) -> None:
        self._url, self._loop = url, asyncio.get_running_loop()
        self.clock = clock
        self.signal = Signal()
        self.place = os.path.realpath(file.path)
        """The path of the file: leases of all stores on it are the same."""
        self.closed = False
        self._writer = Writer(file, writer, "amends-sqlite-write", self.signal)
        self._reader = Reader(file, reader, "amends-sqlite-read")

    def read(self, work: Callable[[SqliteTransaction], T]) -> asyncio.Future[T]:
        """Run a read in the reader thread."""
        self._check_open()
        return self._reader.submit(
            lambda connection: work(SqliteTransaction(connection, self.clock, self.place))
        )

    def write(
        self, work: Callable[[SqliteTransaction], T], *, isolated: bool = False, synced: bool = True
    ) -> asyncio.Future[T]:
        """
        Run a write in the writer thread; the future has its result after the commit.

        Args:
            work: the write. It may share a transaction with others, so it must check before it writes, unless it is isolated.
            isolated: it may raise after a change.
            synced: see `Engine.write`.

        """
        self._check_open()
        filled: set[str] = set()
        return self._writer.submit(
            lambda connection: work(SqliteTransaction(connection, self.clock, self.place, filled)),
            isolated=isolated,
            filled=filled,
            synced=synced,
        )

    async def close(self) -> None:
        """Reject further work, finish the submitted work and close the file."""
        self.closed = True
        self.signal.notify()
        await self._reader.close()
        await self._writer.close()

    def _check_open(self) -> None:
        if self.closed:
            raise StoreClosedError(self._url)
        if asyncio.get_running_loop() is not self._loop:
            # The write would be made, and its result could not be returned.
            raise RuntimeError(
                f"the store {self._url} was opened in another event loop: open it in each loop"
            )
