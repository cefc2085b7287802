"""
The record of an effect in a transaction of the user's own: a psycopg 3 connection, or a SQLAlchemy session or connection.

The record is inserted before the effect, and both are committed together by the user, or neither. A concurrent transaction
with the same key waits at the insert until the first one ends. The work is inside a savepoint, so that a failure undoes the
record even if the user commits afterwards.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from amends.durable.keys import same_request
from amends.effects import errors
from amends.effects.current import running_as
from amends.effects.flow import Request, hand_out, reopening, wire_key
from amends.effects.outcomes import encode_result
from amends.effects.records import TABLE, EffectRecord

__all__ = ["run_inside", "run_inside_plain"]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(EffectRecord).decode

_INSERT = """
    INSERT INTO amends_effects (tbl, key, value) VALUES (:tbl, :key, :value)
    ON CONFLICT (tbl, key) DO UPDATE
    SET expires = NULL, value = excluded.value, revision = nextval('amends_effects_revision')
    WHERE amends_effects.expires <= clock_timestamp() RETURNING revision
"""
_SELECT = "SELECT value FROM amends_effects WHERE tbl = :tbl AND key = :key FOR UPDATE"
_WRITE = """
    UPDATE amends_effects SET value = :value, revision = nextval('amends_effects_revision'),
    expires = clock_timestamp() + :expires * interval '1 second' WHERE tbl = :tbl AND key = :key
"""

Statement: TypeAlias = tuple[str, dict[str, Any]]
Steps: TypeAlias = Generator[Statement | None, Any, Any]
"""Statements to run; None marks the place of the call. Each is answered with its rows, or the result of the call."""


def _steps(request: Request) -> Steps:
    where = {"tbl": TABLE, "key": request.name}
    record = replace(request.fresh, transactional=True)
    if not (yield _INSERT, {**where, "value": _encode(record)}):
        rows = yield _SELECT, where
        found = _decode(bytes(rows[0][0])) if rows else None
        if found is None:
            raise errors.running(request.name, 0)
        if not same_request(found.fingerprint, record.fingerprint):
            raise errors.key_reused(request.name)
        if found.state != "done":
            # A call without a transaction began it.
            raise errors.in_doubt(request.name, found)
        again = None if request.again is None else reopening(request)(found)
        if again is None:
            return hand_out(request, found, waited=False)
        record = again
    result = yield None
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


def run_inside_plain(request: Request, connection: Any, call: Callable[[], Any]) -> Any:
    """Run an effect inside the transaction of a psycopg connection, or of a SQLAlchemy session or connection."""
    steps, execute = _steps(request), _executor(connection)
    with _savepoint(connection):
        try:
            step = next(steps)
            while True:
                if step is None:
                    with running_as(wire_key(request, request.fresh)):
                        value = call()
                else:
                    value = execute(step).fetchall() if step[0] is not _WRITE else execute(step) and None
                step = steps.send(value)
        except StopIteration as end:
            return end.value


async def run_inside(request: Request, connection: Any, call: Callable[[], Awaitable[Any]]) -> Any:
    """As `run_inside_plain`, for an async connection or session."""
    steps, execute = _steps(request), _executor(connection)
    async with _async_savepoint(connection):
        try:
            step = next(steps)
            while True:
                if step is None:
                    with running_as(wire_key(request, request.fresh)):
                        value = await call()
                else:
                    cursor = await execute(step)
                    rows = cursor.fetchall() if step[0] is not _WRITE else None
                    value = await rows if inspect.isawaitable(rows) else rows
                step = steps.send(value)
        except StopIteration as end:
            return end.value


def _is_psycopg(connection: Any) -> bool:
    return type(connection).__module__.partition(".")[0] == "psycopg" or any(
        base.__module__.partition(".")[0] == "psycopg" for base in type(connection).__mro__
    )


def _executor(connection: Any) -> Callable[[Statement], Any]:
    if _is_psycopg(connection):
        return lambda step: connection.execute(re.sub(r":(\w+)", r"%(\1)s", step[0]), step[1])
    if hasattr(connection, "begin_nested"):
        from sqlalchemy import text

        return lambda step: connection.execute(text(step[0]), step[1])
    raise TypeError(
        "an effect is written inside the transaction of a psycopg 3 connection or a SQLAlchemy session, "
        f"not of {type(connection).__name__}"
    )


@contextmanager
def _savepoint(connection: Any) -> Generator[None]:
    if _is_psycopg(connection):
        if not connection.autocommit:
            # Begins the user's transaction if it has not begun; otherwise the block below would commit.
            connection.execute("SELECT 1")
        with connection.transaction():
            yield
    else:
        with connection.begin_nested():
            yield


@asynccontextmanager
async def _async_savepoint(connection: Any) -> Any:
    if _is_psycopg(connection):
        if not connection.autocommit:
            await connection.execute("SELECT 1")
        async with connection.transaction():
            yield
    else:
        async with connection.begin_nested():
            yield
