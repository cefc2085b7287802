"""
Sessions that `submit --detach` left, so that `cancel` can go on with them.

A file per job below the user's state directory, readable by that user alone: a ticket is a credential.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

from amends.arcp.client import Ticket

__all__ = ["find", "forget", "keep"]

_SAFE = re.compile(r"[A-Za-z0-9_-]{1,100}", re.ASCII)


class _Kept(msgspec.Struct):
    url: str
    ticket: Ticket


def keep(job_id: str, url: str, ticket: Ticket) -> None:
    """Keep a session's ticket. Where nothing can be kept, the job can only not be cancelled from here."""
    path = _path(job_id)
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = path.with_suffix(".new")
        # Made for us alone from its first byte on, and put in place whole.
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(msgspec.json.encode(_Kept(url, ticket)))
        new.replace(path)
    except OSError:
        return


def find(job_id: str, url: str) -> Ticket | None:
    """The ticket of a job's session at this runtime, if there is one: a token is never shown to another."""
    path = _path(job_id)
    if path is None:
        return None
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=_Kept)
    except (OSError, msgspec.DecodeError):
        return None
    return kept.ticket if kept.url == url else None


def forget(job_id: str) -> None:
    """It is of no more use."""
    path = _path(job_id)
    if path is not None:
        path.unlink(missing_ok=True)


def _path(job_id: str) -> Path | None:
    if not _SAFE.fullmatch(job_id):
        return None
    base = os.environ.get("XDG_STATE_HOME")
    try:
        root = Path(base) if base else Path.home() / ".local" / "state"
    except RuntimeError:
        return None
    return root / "amends" / "runtime" / f"{job_id}.json"
