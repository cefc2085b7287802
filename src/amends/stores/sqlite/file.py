"""Open the SQLite file, and translate SQLite's error codes."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep

from amends.stores.address import Address
from amends.stores.errors import (
    DamagedStoreError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
    UnsupportedError,
)

__all__ = ["File", "store_error", "translate"]

_SYNCHRONOUS = ("normal", "full", "extra")
# The size of the write-ahead log in pages (8 MB) at which a commit checkpoints it, for a writer thread that found no
# time between two commits.
_AUTOCHECKPOINT = 2000


@dataclass(frozen=True, slots=True)
class File:
    """The path of the file and the settings of its connections."""

    path: str
    synchronous: str = "full"
    busy_timeout: float = 30.0
    _opened: list[tuple[Path, int, int]] = field(default_factory=list, compare=False)
    """The absolute path, device and inode of the file when it was opened; see `replaced`."""

    @classmethod
    def at(cls, address: Address) -> File:
        """
        The file that a URL names.

        Raises:
            ValueError: an option has an invalid value.
        """
        synchronous = address.options.get("synchronous", "full").lower()
        if synchronous not in _SYNCHRONOUS:
            # "off" is excluded on purpose: with it, a crash of the machine can corrupt the file, not only lose its end.
            raise ValueError(f"synchronous must be one of {', '.join(_SYNCHRONOUS)}, not {synchronous!r}")
        return cls(address.path, synchronous, address.seconds("busy_timeout", 30.0, zero=True))

    def remember(self) -> None:
        """Remember which file is open."""
        path = Path(self.path).absolute()
        found = path.stat()
        self._opened[:] = [(path, found.st_dev, found.st_ino)]

    def replaced(self) -> StoreError | None:
        """An error if another file, or none, has the path of the open file: what is written to the open file is lost."""
        ((path, device, inode),) = self._opened
        try:
            found = path.stat()
        except FileNotFoundError:
            what = "deleted"
        except OSError:
            return None
        else:
            if (found.st_dev, found.st_ino) == (device, inode):
                return None
            what = "replaced by another file"
        return StoreUnavailableError(
            f"{self.path} was {what} while it was open: restart the processes that use it", "maybe"
        )

    def connect(self) -> sqlite3.Connection:
        """
        Open a connection in WAL mode without implicit transactions.

        Raises:
            StoreError: SQLite failed, or the path cannot be used.
        """
        if sqlite3.sqlite_version_info < (3, 35):
            raise UnsupportedError(f"SQLite {sqlite3.sqlite_version} is too old: use 3.35 or newer")
        if not Path(self.path).parent.is_dir():
            raise StoreUnavailableError(
                f"there is no folder {str(Path(self.path).parent)!r}: create it first"
            )
        if Path(self.path).is_dir():
            raise StoreError(f"{self.path} is a folder: name a file in it, sqlite:///{self.path}/amends.db")
        # A store may hold tokens and credentials. SQLite gives the files beside it the same mode.
        with suppress(OSError):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            connection = sqlite3.connect(
                self.path, timeout=self.busy_timeout, isolation_level=None, check_same_thread=False
            )
            try:
                mode = self._set_wal_mode(connection)
                if mode != "wal":
                    raise UnsupportedError(  # noqa: TRY301
                        f"SQLite returned {mode!r} when asked for WAL mode on {self.path!r}: put the file on a local disk"
                    )
                connection.execute(f"PRAGMA synchronous = {self.synchronous}")
                connection.execute(f"PRAGMA wal_autocheckpoint = {_AUTOCHECKPOINT}")
            except BaseException:
                connection.close()
                raise
        except sqlite3.Error as error:
            raise translate(error, self) from error
        return connection

    def _set_wal_mode(self, connection: sqlite3.Connection) -> str:
        """Set WAL mode and return the mode. SQLite does not wait for another process that is creating the file, so this does."""
        end = monotonic() + self.busy_timeout
        while True:
            try:
                return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or monotonic() >= end:
                    raise
            sleep(0.01)


def translate(error: sqlite3.Error, file: File) -> StoreError | sqlite3.Error:
    """The store's exception for an SQLite error; the error itself if it concerns the caller's own SQL."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")):
        return StoreUnavailableError(
            f"{file.path} was locked by another process for {file.busy_timeout:g} s: try again, or raise busy_timeout"
        )
    if name.startswith("SQLITE_FULL"):
        return StoreFullError(f"no space left for {file.path}: free space on its disk, then try again")
    if isinstance(error, sqlite3.OperationalError) and not name:
        # Raised by Python's module, not by SQLite: a text in the file is not valid UTF-8.
        return DamagedStoreError(f"{file.path} has a row that cannot be decoded: run `amends store check`")
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return DamagedStoreError(
            f"{file.path} is not an intact SQLite file ({name}): restore it from a backup"
        )
    if name.startswith("SQLITE_IOERR"):
        # An error while reading or writing the disk: the commit may or may not have reached it.
        return StoreUnavailableError(f"I/O error on {file.path} ({name}): check the disk", "maybe")
    if name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
        return StoreUnavailableError(
            f"{file.path} cannot be opened for writing ({name}): check its permissions"
        )
    return error


def store_error(error: sqlite3.Error, file: File) -> StoreError | sqlite3.Error:
    """`translate`, with SQLite's error set as the cause."""
    known = translate(error, file)
    if known is not error:
        known.__cause__ = error
    return known
