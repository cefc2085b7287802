"""
The tables of a store in Postgres, and the version of what is in them.

All names begin with `amends_`, in the first schema of the role's search path. Names and keys are any text, so they are bytes here;
an index entry has at most 2,704 bytes, so long ones are indexed by their beginning and a hash (`ref`).

- A log's row has its oldest and its last number. An append is one statement that updates this row and inserts the entry, so
  that of two writers the second waits, and a conditional append finds the number that the first one left. An INSERT … SELECT
  that only reads the row would let both pass.
- The revisions of all tables come from one sequence, so that those of a key only grow, also across deletions.
- `at` of a message is the time at which it is due while it waits (state 0), at which its lease ends while it is held (1), and at
  which it became a dead letter (2), by the database's clock.
"""

from __future__ import annotations

from hashlib import sha256
from secrets import token_hex
from typing import TYPE_CHECKING

from amends.stores.errors import DamagedStoreError, StoreUnavailableError
from amends.stores.versions import VERSION, other_version

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["DDL", "DEAD", "HELD", "NOW", "WAITING", "prepare", "ref"]

WAITING, HELD, DEAD = 0, 1, 2
NOW = "CAST(extract(epoch FROM clock_timestamp()) AS float8)"
"""The database's clock, in seconds since 1970."""

DDL = f"""
CREATE TABLE IF NOT EXISTS amends_meta (key text PRIMARY KEY, value text NOT NULL);
CREATE TABLE IF NOT EXISTS amends_names (ref bytea PRIMARY KEY, name bytea NOT NULL);
CREATE TABLE IF NOT EXISTS amends_logs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    ref bytea NOT NULL UNIQUE,
    oldest bigint NOT NULL,
    last bigint NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS amends_entries (
    log bigint NOT NULL,
    seq bigint NOT NULL,
    dedupe bytea,
    value bytea NOT NULL,
    PRIMARY KEY (log, seq)
);
CREATE UNIQUE INDEX IF NOT EXISTS amends_entries_dedupe ON amends_entries (log, sha256(dedupe)) WHERE dedupe IS NOT NULL;
CREATE SEQUENCE IF NOT EXISTS amends_revision;
CREATE TABLE IF NOT EXISTS amends_rows (
    tbl bytea NOT NULL,
    ref bytea NOT NULL,
    key bytea NOT NULL,
    revision bigint NOT NULL DEFAULT nextval('amends_revision'),
    expires timestamptz,
    value bytea NOT NULL,
    PRIMARY KEY (tbl, ref)
);
CREATE INDEX IF NOT EXISTS amends_rows_expires ON amends_rows (expires) WHERE expires IS NOT NULL;
CREATE TABLE IF NOT EXISTS amends_messages (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue bytea NOT NULL,
    state smallint NOT NULL,
    at float8 NOT NULL,
    attempts integer NOT NULL,
    epoch integer NOT NULL,
    key bytea,
    reason bytea,
    value bytea NOT NULL
);
CREATE INDEX IF NOT EXISTS amends_messages_next ON amends_messages (queue, state, at, id);
CREATE UNIQUE INDEX IF NOT EXISTS amends_messages_key ON amends_messages (queue, sha256(key))
    WHERE key IS NOT NULL AND state < {DEAD};
INSERT INTO amends_meta VALUES ('version', '{VERSION}') ON CONFLICT DO NOTHING;
INSERT INTO amends_meta VALUES ('place', gen_random_uuid()::text) ON CONFLICT DO NOTHING;
"""  # noqa: S608 - only our own numbers
"""What a store needs in its database. `amends store sql` prints it; it is executed at the first use, if the role may do that."""

_LOCK = 7_236_451_190
"""The advisory lock under which the tables are created: many processes may start at the same time."""
_LONGEST = 448
_BEYOND = b"\xff"
"""Sorts behind every text: UTF-8 has no such byte."""


def ref(text: str) -> bytes:
    """
    Return the bytes by which a name or key is found: its own, or its beginning and its hash if it is long.

    >>> ref("order-17"), len(ref("x" * 5000))
    (b'order-17', 481)
    """
    data = text.encode()
    if len(data) <= _LONGEST:
        return data
    return data[:_LONGEST] + _BEYOND + sha256(data).digest()


def bounds(prefix: str) -> tuple[bytes, bytes]:
    """Return the first and the last possible `ref` of the keys with a prefix."""
    data = prefix.encode()[:_LONGEST]
    return data, data + _BEYOND * 40


def prepare(connection: Connection[tuple[object, ...]]) -> str:
    """
    Create the tables if there are none, and return the id of the store.

    Raises:
        StoreUnavailableError: there are none, and the role may not create them.
        DamagedStoreError: another version of amends wrote them.

    """
    import psycopg

    place = _place(connection)
    if place is None:
        try:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                connection.execute(DDL.encode())
        except psycopg.errors.InsufficientPrivilege as error:
            raise StoreUnavailableError(
                "the role may not create the store's tables: run what `amends store sql` prints as a role that may"
            ) from error
        place = _place(connection)
    return place or token_hex(8)


def _place(connection: Connection[tuple[object, ...]]) -> str | None:
    """Return the id of the store, or None if there are no tables."""
    found = connection.execute("SELECT to_regclass('amends_meta'), to_regclass('amends_messages')").fetchone()
    if found is None or None in found:
        return None
    meta = {str(key): str(value) for key, value in connection.execute("SELECT key, value FROM amends_meta")}
    problem = other_version(meta.get("version"), "drop the tables amends_*")
    if problem is not None:
        raise DamagedStoreError(problem)
    return meta["place"]
