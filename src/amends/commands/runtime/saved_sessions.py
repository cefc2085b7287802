"""
Saves the sessions of `submit --detach`, so that `cancel` can resume them.

There is one file per job in the user's state directory. Only the user can read it, because a ticket is a credential.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

from amends.arcp.client import Ticket

__all__ = ["find", "forget", "keep", "saved_jobs"]

_SAFE = re.compile(r"[A-Za-z0-9_-]{1,100}", re.ASCII)


class _SavedSession(msgspec.Struct):
    url: str
    ticket: Ticket


def keep(job_id: str, url: str, ticket: Ticket) -> None:
    """Save a session's ticket. An error is ignored: then the job cannot be cancelled from this machine."""
    path = _path(job_id)
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = path.with_suffix(".new")
        # The file is created with mode 0600 and renamed when it is complete. One that is left over may have another mode.
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(msgspec.json.encode(_SavedSession(url, ticket)))
        new.replace(path)
    except OSError:
        return


def find(job_id: str, url: str) -> Ticket | None:
    """Return the saved ticket of a job's session, or None. A ticket is only returned for the URL it was saved with."""
    path = _path(job_id)
    if path is None:
        return None
    try:
        saved = msgspec.json.decode(path.read_bytes(), type=_SavedSession)
    except (OSError, msgspec.DecodeError):
        return None
    return saved.ticket if saved.url == url else None


def forget(job_id: str) -> None:
    """Delete the saved session of a job."""
    path = _path(job_id)
    if path is not None:
        path.unlink(missing_ok=True)


def saved_jobs() -> list[str]:
    """Return the ids of the jobs that have a saved session, the newest first."""
    directory = _directory()
    if directory is None:
        return []
    try:
        files = [(path.stat().st_mtime, path.stem) for path in directory.glob("*.json")]
    except OSError:
        return []
    return [job_id for _, job_id in sorted(files, reverse=True)]


def _path(job_id: str) -> Path | None:
    directory = _directory()
    return directory / f"{job_id}.json" if directory is not None and _SAFE.fullmatch(job_id) else None


def _directory() -> Path | None:
    base = os.environ.get("XDG_STATE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".local" / "state") / "amends" / "runtime"
    except RuntimeError:
        return None
