"""
The record of an effect in a transaction of the user's own: a psycopg 3 connection, or a SQLAlchemy session or connection.

The record is inserted before the effect, and both are committed together by the user, or neither. A concurrent transaction
with the same key waits at the insert until the first one ends. The work is inside a savepoint, so that a failure undoes the
record even if the user commits afterwards.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Protocol, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from amends.durable.keys import same_request
from amends.effects import errors
from amends.effects.flow import Request, hand_out, reopening, wire_key
from amends.effects.outcomes import encode_result
from amends.effects.records import TABLE, EffectRecord
from amends.recovery.effect_context import running_as
from amends.stores.postgres.schema import ref

__all__ = ["run_inside", "run_inside_plain"]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(EffectRecord).decode

_INSERT = """
    INSERT INTO amends_rows (tbl, ref, key, value) VALUES (:tbl, :ref, :key, :value)
    ON CONFLICT (tbl, ref) DO UPDATE
    SET expires = NULL, value = excluded.value, revision = nextval('amends_revision')
    WHERE amends_rows.expires <= clock_timestamp() RETURNING revision
"""
_SELECT = "SELECT value FROM amends_rows WHERE tbl = :tbl AND ref = :ref FOR UPDATE"
_WRITE = """
    UPDATE amends_rows SET value = :value, revision = nextval('amends_revision'),
    expires = clock_timestamp() + :expires * interval '1 second' WHERE tbl = :tbl AND ref = :ref
"""

R = TypeVar("R")
Statement: TypeAlias = tuple[str, dict[str, object]]
Steps: TypeAlias = Generator[Statement | EffectRecord, object, object]
"""Statements to run, and the record of the call at its place. Each is answered with its rows, or the result of the call."""


class _Rows(Protocol):
    def fetchall(self) -> object: ...


def _steps(request: Request) -> Steps:
    where: dict[str, object] = {"tbl": ref(TABLE), "ref": ref(request.name)}
    record = replace(request.fresh, transactional=True)
    if not (yield _INSERT, {**where, "key": request.name.encode(), "value": _encode(record)}):
        stored = _first_value((yield _SELECT, where))
        if stored is None:
            raise errors.running(request.name, 0)
        found = _decode(stored)
        if not same_request(found.fingerprint, record.fingerprint):
            raise errors.key_reused(request.name)
        if found.state != "done":
            # A call without a transaction began it.
            raise errors.in_doubt(request.name, found)
        again = None if request.again is None else reopening(request)(found)
        if again is None:
            return hand_out(request, found, waited=False)
        record = again
    result = yield record
    done = replace(
        record,
        state="done",
        outcome=encode_result(result),
        ended=request.now(),
        delivered=True,
        previous=None,
    )
    yield _WRITE, {**where, "value": _encode(done), "expires": request.expires_in}
    return result


def _first_value(rows: object) -> bytes | None:
    """Return the first value of the first row."""
    if not isinstance(rows, Sequence) or not rows:
        return None
    return bytes(rows[0][0])


def run_inside_plain(request: Request, connection: object, call: Callable[[], R]) -> object:
    """Run an effect inside the transaction of a psycopg connection, or of a SQLAlchemy session or connection."""
    steps = _steps(request)
    with _savepoint(connection) as execute:
        try:
            step = next(steps)
            while True:
                value: object = None
                if isinstance(step, EffectRecord):
                    with running_as(wire_key(request, step)):
                        value = call()
                else:
                    done = execute(step)
                    value = done.fetchall() if step[0] is not _WRITE else None
                step = steps.send(value)
        except StopIteration as end:
            return end.value


async def run_inside(request: Request, connection: object, call: Callable[[], Awaitable[R]]) -> object:
    """As `run_inside_plain`, for an async connection or session."""
    steps = _steps(request)
    async with _async_savepoint(connection) as execute:
        try:
            step = next(steps)
            while True:
                value: object = None
                if isinstance(step, EffectRecord):
                    with running_as(wire_key(request, step)):
                        value = await call()
                else:
                    done = await execute(step)
                    rows = done.fetchall() if step[0] is not _WRITE else None
                    value = await rows if inspect.isawaitable(rows) else rows
                step = steps.send(value)
        except StopIteration as end:
            return end.value


@contextmanager
def _savepoint(connection: object) -> Generator[Callable[[Statement], _Rows]]:
    """Enter a savepoint, and return what executes a statement in it."""
    if _is_of("psycopg", connection):
        from psycopg import Connection, Cursor
        from psycopg.rows import tuple_row

        if isinstance(connection, Connection):
            if not connection.autocommit:
                # Begins the user's transaction if it has not begun; otherwise the block below would commit.
                connection.execute("SELECT 1")
            with connection.transaction():
                # A cursor of our own, because the user may have set another kind of rows or placeholders.
                cursor = Cursor(connection, row_factory=tuple_row)
                yield lambda step: cursor.execute(_placeholders(step[0]), step[1])
            return
    elif _is_of("sqlalchemy", connection):
        from sqlalchemy import Connection as CoreConnection
        from sqlalchemy import text
        from sqlalchemy.orm import Session, scoped_session

        if isinstance(connection, Session | scoped_session | CoreConnection):
            with connection.begin_nested():
                yield lambda step: connection.execute(text(step[0]), step[1])
            return
    raise _wrong(connection, "")


@asynccontextmanager
async def _async_savepoint(connection: object) -> AsyncGenerator[Callable[[Statement], Awaitable[_Rows]]]:
    """As `_savepoint`, for an async connection or session."""
    if _is_of("psycopg", connection):
        from psycopg import AsyncConnection, AsyncCursor
        from psycopg.rows import tuple_row

        if isinstance(connection, AsyncConnection):
            if not connection.autocommit:
                await connection.execute("SELECT 1")
            async with connection.transaction():
                cursor = AsyncCursor(connection, row_factory=tuple_row)
                yield lambda step: cursor.execute(_placeholders(step[0]), step[1])
            return
    elif _is_of("sqlalchemy", connection):
        from sqlalchemy import text
        from sqlalchemy.ext.asyncio import AsyncConnection as AsyncCoreConnection
        from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session

        if isinstance(connection, AsyncSession | async_scoped_session | AsyncCoreConnection):
            async with connection.begin_nested():
                yield lambda step: connection.execute(text(step[0]), step[1])
            return
    raise _wrong(connection, "async ")


def _is_of(package: str, connection: object) -> bool:
    return any(base.__module__.partition(".")[0] == package for base in type(connection).__mro__)


def _placeholders(statement: str) -> bytes:
    """Return a statement with psycopg's placeholders."""
    return re.sub(r":(\w+)", r"%(\1)s", statement).encode()


def _wrong(connection: object, kind: str) -> TypeError:
    return TypeError(
        f"an effect is written inside the {kind}transaction of a psycopg 3 connection or a SQLAlchemy session, "
        f"not of {type(connection).__name__}"
    )
