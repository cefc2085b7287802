"""
The proof that a process has ended: a lock on a file beside the store, which the kernel releases at the end of the process.

Every process that uses a store holds the lock of a file of its own while it lives, and its leases name that file. Who gets the
lock of another file knows that its process has ended: a process that is stopped still holds its lock. Process ids and
host names prove nothing, because both are used again.

A process that forks shares its lock with its children. It then counts as alive for as long as one of them lives, and its
leases end by time.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from contextlib import suppress
from pathlib import Path
from threading import Lock

from amends.proof import Claim, Proof, rests_on
from amends.stores.contract import Store

try:
    import fcntl
except ImportError:  # Windows: leases end by time
    _LOCKS = False
else:
    _LOCKS = True

__all__ = ["FOLDER", "LockOwner", "owner_of"]

FOLDER = ".owners"
"""The end of the name of the folder beside a store's file."""
_OLD = 86400.0
"""Seconds after which the file of a process that has ended is deleted. Its leases have ended long before."""
_ID = re.compile(r"[0-9a-f]{32}")

_lock = Lock()
_owners: dict[str, LockOwner] = {}


class LockOwner:
    """
    This process as the holder of leases in one store.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first, second = LockOwner(folder), LockOwner(folder)
    ...     alive = second.ended(first.id)
    ...     first.close()
    ...     alive, second.ended(first.id)
    (False, True)
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """
        Args:
            folder: where the locked files are; it is made if it is missing.

        Raises:
            OSError: the file cannot be made or locked.

        """
        self._folder, self.pid = Path(folder), os.getpid()
        self._folder.mkdir(mode=0o700, exist_ok=True)
        while True:
            self.id = secrets.token_hex(16)
            self._file: int | None = os.open(
                self._folder / self.id, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
            )
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # another process looked whether we had ended, and deletes the file
                os.close(self._file)
            except OSError:
                os.close(self._file)
                raise
            else:
                break
        self._forget_old()

    @rests_on(Claim.LEASE_ENDED, Proof.PROCESS)
    def ended(self, id: str) -> bool:
        """Return whether the process with this id is proved to have ended. False if that is not known."""
        if id == self.id or _ID.fullmatch(id) is None:
            return False
        return self._ended(self._folder / id)

    def _ended(self, path: Path) -> bool:
        try:
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0))
        except OSError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        finally:
            os.close(file)
        return True

    def _forget_old(self) -> None:
        """Delete the files of processes that ended long ago."""
        before = time.time() - _OLD
        with suppress(OSError):
            for path in self._folder.iterdir():
                with suppress(OSError):
                    if _ID.fullmatch(path.name) and path.stat().st_mtime < before and self._ended(path):
                        path.unlink()

    def close(self) -> None:
        """Release the lock: this process counts as ended."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


def owner_of(store: Store) -> LockOwner | None:
    """
    Return this process as the holder of leases in a store, or None where no lock can prove its end.

    That takes a store in a file of this machine.
    """
    path: object = getattr(store, "path", None)
    if not _LOCKS or store.traits.scope != "machine" or not isinstance(path, Path):
        return None
    folder = f"{path}{FOLDER}"
    with _lock:
        owner = _owners.get(folder)
        # A process that was forked has its parent's lock; it needs one of its own.
        if owner is None or owner.pid != os.getpid() or not (Path(folder) / owner.id).exists():
            try:
                owner = LockOwner(folder)
            except OSError:
                return None
            _owners[folder] = owner
        return owner
