"""A store in one SQLite file, shared by the processes of one machine."""

from __future__ import annotations

from amends.stores.sqlite.store import SqliteStore, open_sqlite
from amends.stores.sqlite.transaction import SqliteTransaction, transaction_on

__all__ = ["SqliteStore", "SqliteTransaction", "open_sqlite", "transaction_on"]
