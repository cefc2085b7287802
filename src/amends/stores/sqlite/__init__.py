"""A store in one SQLite file, shared by the processes of one machine."""

from __future__ import annotations

from amends.stores.sqlite.store import SqliteStore, open_sqlite
from amends.stores.sqlite.transaction import SqliteTransaction, joined

__all__ = ["SqliteStore", "SqliteTransaction", "joined", "open_sqlite"]
