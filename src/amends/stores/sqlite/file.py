"""Opening the file, and what SQLite's error codes mean for a caller."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from amends.stores.address import Address
from amends.stores.errors import (
    DamagedStoreError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
    UnsupportedError,
)

__all__ = ["File", "meaning", "translated"]

_SYNCHRONOUS = ("normal", "full", "extra")
# Pages of the write-ahead log, 8 MB of them, at which a commit moves them into the file itself: for a writer that did not
# come to do so between two commits.
_LONGEST = 2000


@dataclass(frozen=True, slots=True)
class File:
    """Where the file is and how its connections are set up."""

    path: str
    synchronous: str = "full"
    busy_timeout: float = 30.0

    @classmethod
    def at(cls, address: Address) -> File:
        """
        The file a URL names.

        Raises:
            ValueError: an option has a value it cannot have.
        """
        synchronous = address.options.get("synchronous", "full").lower()
        if synchronous not in _SYNCHRONOUS:
            # "off" is left out on purpose: with it a crash of the machine can destroy the file, not only its end.
            raise ValueError(f"synchronous is one of {', '.join(_SYNCHRONOUS)}, not {synchronous!r}")
        return cls(address.path, synchronous, float(address.options.get("busy_timeout", "30")))

    def connect(self, *, patient: bool = True) -> sqlite3.Connection:
        """
        A connection in WAL mode whose transactions are begun and ended by hand.

        One that is not `patient` is for the event loop: it never waits for a lock, and leaves moving the write-ahead log
        into the file to the others.

        Raises:
            StoreError: translated from what SQLite says.
        """
        if sqlite3.sqlite_version_info < (3, 35):
            raise UnsupportedError(f"SQLite {sqlite3.sqlite_version} is too old: 3.35 or newer is needed")
        if not Path(self.path).parent.is_dir():
            raise StoreUnavailableError(f"there is no folder {str(Path(self.path).parent)!r}: make it first")
        if Path(self.path).is_dir():
            raise StoreError(f"{self.path} is a folder: name a file in it, sqlite:///{self.path}/amends.db")
        try:
            connection = sqlite3.connect(
                self.path, timeout=self.busy_timeout, isolation_level=None, check_same_thread=False
            )
            try:
                mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
                if mode != "wal":
                    raise UnsupportedError(  # noqa: TRY301
                        f"SQLite answers {mode!r} to WAL mode for {self.path!r}: put the file on a local disk"
                    )
                connection.execute(f"PRAGMA synchronous = {self.synchronous}")
                connection.execute(f"PRAGMA wal_autocheckpoint = {_LONGEST if patient else 0}")
                if not patient:
                    connection.execute("PRAGMA busy_timeout = 0")
            except BaseException:
                connection.close()
                raise
        except sqlite3.Error as error:
            raise translated(error, self) from error
        return connection


def translated(error: sqlite3.Error, file: File) -> StoreError | sqlite3.Error:
    """What a caller can do about SQLite's error; the error itself where it is about the caller's own SQL."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")):
        return StoreUnavailableError(
            f"{file.path} stayed locked by another process for {file.busy_timeout:g} s: try again, or raise busy_timeout"
        )
    if name.startswith("SQLITE_FULL"):
        return StoreFullError(f"no space left for {file.path}: make room on its disk, then try again")
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return DamagedStoreError(f"{file.path} is no intact SQLite file ({name}): restore it from a backup")
    if name.startswith("SQLITE_IOERR"):
        # An error while reading or writing the disk: a commit may or may not have reached it.
        return StoreUnavailableError(f"the disk failed under {file.path} ({name}): look at the disk", "maybe")
    if name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
        return StoreUnavailableError(
            f"{file.path} cannot be opened for writing ({name}): look at its permissions"
        )
    return error


def meaning(error: sqlite3.Error, file: File) -> StoreError | sqlite3.Error:
    """The same, with SQLite's error as its cause, ready to be raised."""
    known = translated(error, file)
    if known is not error:
        known.__cause__ = error
    return known
