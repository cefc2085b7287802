"""A store in a Postgres database, for several machines: psycopg 3, LISTEN and NOTIFY, transactions with your own SQL."""

from __future__ import annotations

from amends.stores.postgres.schema import DDL
from amends.stores.postgres.store import PostgresStore, open_postgres

__all__ = ["DDL", "PostgresStore", "open_postgres"]
