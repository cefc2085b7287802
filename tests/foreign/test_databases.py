"""
Tests with databases that really fail: SQLite on files, psycopg against a scripted PostgreSQL backend.

psycopg2, asyncpg, SQLAlchemy, redis and pymongo are not installed: stand-ins with the same class names are used.
"""

import sqlite3
from pathlib import Path

import msgspec
import psycopg
import pytest

from amends import from_exception
from tests.foreign import servers
from tests.foreign.faults import facts, raised_fault
from tests.foreign.servers import HOST, serving
from tests.foreign.standins import standin

# ------------------------------------------------------------------------------------------------------- SQLite


@pytest.fixture
def database(tmp_path: Path):
    connection = sqlite3.connect(tmp_path / "acme.db", timeout=0, isolation_level=None)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL CHECK (n < 10), u UNIQUE)")
    connection.execute("INSERT INTO t VALUES (1, 1, 'acme')")
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("sql", "code", "name"),
    [
        ("INSERT INTO t VALUES (2, 1, 'acme')", "CONFLICT", "SQLITE_CONSTRAINT"),
        ("INSERT INTO t VALUES (1, 1, 'other')", "CONFLICT", "SQLITE_CONSTRAINT"),
        ("INSERT INTO t VALUES (2, NULL, 'other')", "VALIDATION_ERROR", "SQLITE_CONSTRAINT_NOTNULL"),
        ("INSERT INTO t VALUES (2, 99, 'other')", "VALIDATION_ERROR", "SQLITE_CONSTRAINT_CHECK"),
        ("SELECT * FROM acme", "VALIDATION_ERROR", "SQLITE_ERROR"),
    ],
)
def test_a_refused_statement_had_no_effect(
    database: sqlite3.Connection, sql: str, code: str, name: str
) -> None:
    """The result code decides; the fault shows nothing of the statement."""
    fault = raised_fault(lambda: database.execute(sql))
    assert facts(fault) == (code, "correctable", "no")
    assert fault.details == {"sqlite": name}
    assert b"acme" not in msgspec.json.encode(fault)


def test_a_locked_database_is_transient(database: sqlite3.Connection, tmp_path: Path) -> None:
    """BUSY: another connection writes, and this one has written nothing."""
    database.execute("BEGIN IMMEDIATE")
    other = sqlite3.connect(tmp_path / "acme.db", timeout=0)
    assert facts(raised_fault(lambda: other.execute("DELETE FROM t"))) == (
        "SERVICE_UNAVAILABLE",
        "transient",
        "no",
    )
    other.close()


def test_an_outdated_snapshot_is_transient(database: sqlite3.Connection, tmp_path: Path) -> None:
    """BUSY_SNAPSHOT: repeating the transaction from its beginning may succeed."""
    database.execute("PRAGMA journal_mode=WAL")
    other = sqlite3.connect(tmp_path / "acme.db", timeout=0, isolation_level=None)
    database.execute("BEGIN")
    database.execute("SELECT * FROM t").fetchall()
    other.execute("DELETE FROM t")
    assert facts(raised_fault(lambda: database.execute("DELETE FROM t"))) == ("CONFLICT", "transient", "no")
    other.close()


def test_files_that_sqlite_cannot_open_write_or_read(database: sqlite3.Connection, tmp_path: Path) -> None:
    """A missing file, a read-only one, and one that is no database."""
    assert facts(raised_fault(lambda: sqlite3.connect(tmp_path / "no" / "file")))[0] == "NOT_FOUND"
    read_only = sqlite3.connect(f"file:{tmp_path}/acme.db?mode=ro", uri=True)
    fault = raised_fault(lambda: read_only.execute("DELETE FROM t"))
    assert facts(fault) == ("PERMISSION_DENIED", "terminal", "no")
    read_only.close()
    (tmp_path / "text").write_text("no database at all" * 100)
    text = sqlite3.connect(tmp_path / "text")
    fault = raised_fault(lambda: text.execute("SELECT 1 FROM t"))
    assert facts(fault) == ("INTERNAL_ERROR", "terminal", "maybe")
    assert fault.actor.value == "operator"
    text.close()


def test_an_interrupted_statement_is_cancelled(database: sqlite3.Connection) -> None:
    """INTERRUPT, from a progress handler."""
    database.set_progress_handler(lambda: 1, 1)
    fault = raised_fault(lambda: database.execute("SELECT * FROM t, t AS b").fetchall())
    assert facts(fault) == ("CANCELLED", "terminal", "maybe")


def test_an_error_of_the_module_has_no_result_code(database: sqlite3.Connection) -> None:
    """A wrong number of parameters does not reach SQLite, so the class decides."""
    assert facts(raised_fault(lambda: database.execute("SELECT ?"))) == (
        "VALIDATION_ERROR",
        "correctable",
        "no",
    )


@pytest.mark.parametrize("name", ["SQLITE_NOVELTY", "BUSY", "", None, 5])
def test_the_class_decides_if_the_result_code_is_unknown(name: object) -> None:
    """A subclass may have any code."""
    error = sqlite3.OperationalError("x")
    error.sqlite_errorname = name  # type: ignore[attr-defined]
    assert facts(from_exception(error)) == ("SERVICE_UNAVAILABLE", "transient", "maybe")


# --------------------------------------------------------------------------------------------------- PostgreSQL


def dsn(port: int) -> str:
    return f"host={HOST} port={port} user=acme dbname=billing sslmode=disable gssencmode=disable"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("40001", ("CONFLICT", "transient", "no")),
        ("40P01", ("CONFLICT", "transient", "no")),
        ("40003", ("INTERNAL_ERROR", "uncertain", "maybe")),
        ("23505", ("CONFLICT", "correctable", "no")),
        ("23502", ("VALIDATION_ERROR", "correctable", "no")),
        ("22012", ("VALIDATION_ERROR", "correctable", "no")),
        ("42P01", ("NOT_FOUND", "correctable", "no")),
        ("42601", ("VALIDATION_ERROR", "correctable", "no")),
        ("42501", ("PERMISSION_DENIED", "terminal", "no")),
        ("28P01", ("UNAUTHENTICATED", "correctable", "no")),
        ("08006", ("SERVICE_UNAVAILABLE", "transient", "maybe")),
        ("08004", ("SERVICE_UNAVAILABLE", "transient", "no")),
        ("53100", ("SERVICE_UNAVAILABLE", "transient", "maybe")),
        ("53300", ("SERVICE_UNAVAILABLE", "transient", "no")),
        ("55P03", ("CONFLICT", "transient", "no")),
        ("57014", ("CANCELLED", "terminal", "maybe")),
        ("57P01", ("SERVICE_UNAVAILABLE", "transient", "maybe")),
        ("XX001", ("INTERNAL_ERROR", "terminal", "maybe")),
    ],
)
def test_postgres_by_sqlstate(state: str, expected: tuple[str, str, str]) -> None:
    """psycopg reads an error message from a socket; only its SQLSTATE counts."""
    with serving(servers.postgres(state.encode())) as port, psycopg.connect(dsn(port), autocommit=True) as it:
        fault = raised_fault(lambda: it.execute("SELECT secret FROM acme_billing"))
    assert facts(fault) == expected
    assert fault.details == {"code": state, "sqlstate": state}
    shown = msgspec.json.encode(fault)
    assert not any(leak in shown for leak in (b"acme", b"10.1.2.3", b"SELECT", b"relation"))


def test_postgres_that_refuses_connections() -> None:
    """The exception's connection was never established, so there was no effect."""
    with servers.refused() as port:
        fault = raised_fault(lambda: psycopg.connect(dsn(port)))
    assert facts(fault) == ("SERVICE_UNAVAILABLE", "transient", "no")


def test_postgres_that_never_answers() -> None:
    """The connection attempt timed out (libpq counts whole seconds, at least two)."""
    fault = from_exception(psycopg.errors.ConnectionTimeout("10.1.2.3"))
    assert facts(fault) == ("TIMEOUT", "transient", "no")


def test_postgres_that_closes_the_connection() -> None:
    """The connection is lost in the middle of a statement."""
    with serving(servers.postgres(None)) as port, psycopg.connect(dsn(port), autocommit=True) as it:
        fault = raised_fault(lambda: it.execute("DELETE FROM t"))
    assert facts(fault) == ("SERVICE_UNAVAILABLE", "transient", "maybe")


@pytest.mark.parametrize("state", ["ABCDE", "4000", "tok-1", 40001, None])
def test_the_class_decides_if_the_sqlstate_is_unknown(state: object) -> None:
    """An unknown SQLSTATE, and a value that is none."""
    error = type("Own", (psycopg.OperationalError,), {"sqlstate": state})()
    fault = from_exception(error)
    assert facts(fault) == ("SERVICE_UNAVAILABLE", "transient", "maybe")
    assert fault.details is None


def test_psycopg2_and_asyncpg() -> None:
    """psycopg2 keeps its SQLSTATE in `pgcode`, asyncpg in `sqlstate`."""
    older = standin("psycopg2.OperationalError", pgcode="40P01")
    newer = standin(
        "asyncpg.exceptions.DeadlockDetectedError", standin("asyncpg.exceptions._base.PostgresError")
    )
    newer.sqlstate = "40P01"
    assert facts(from_exception(older())) == facts(from_exception(newer())) == ("CONFLICT", "transient", "no")


# ----------------------------------------------------------------------------------------------- around drivers


def test_sqlalchemy_wraps_the_exception_of_the_driver() -> None:
    """`orig` is the driver's exception; without one the wrapper's class decides."""
    dbapi = standin("sqlalchemy.exc.DBAPIError", standin("sqlalchemy.exc.SQLAlchemyError"))
    wrapper = standin("sqlalchemy.exc.OperationalError", standin("sqlalchemy.exc.DatabaseError", dbapi))
    around = wrapper("SELECT 1 FROM acme")
    around.orig = type("Deadlock", (psycopg.OperationalError,), {"sqlstate": "40P01"})()
    assert facts(from_exception(around)) == ("CONFLICT", "transient", "no")
    around.orig = None
    assert facts(from_exception(around)) == ("SERVICE_UNAVAILABLE", "transient", "maybe")
    pool = standin("sqlalchemy.exc.TimeoutError", standin("sqlalchemy.exc.SQLAlchemyError"))
    assert facts(from_exception(pool("QueuePool limit"))) == ("TIMEOUT", "transient", "no")


RedisError = standin("redis.exceptions.RedisError")
RedisConnectionError = standin("redis.exceptions.ConnectionError", RedisError)


def _raise_as_redis(cause: Exception) -> None:
    """Raise redis's own error while handling the socket's, without `from`."""
    try:
        raise cause
    except OSError as error:
        raise RedisConnectionError(f"Error connecting to cache.acme: {error}")  # noqa: B904


def test_the_context_of_a_redis_error_counts() -> None:
    """The frame that raised redis's error caught the socket's error, so that is the reason."""
    refused = raised_fault(lambda: _raise_as_redis(ConnectionRefusedError()))
    assert facts(refused) == ("SERVICE_UNAVAILABLE", "transient", "no")
    reset = raised_fault(lambda: _raise_as_redis(ConnectionResetError()))
    assert facts(reset) == ("SERVICE_UNAVAILABLE", "transient", "maybe")


def _closed_by_server() -> None:
    raise RedisConnectionError("Connection closed by server")


def test_an_unrelated_exception_in_the_context_is_ignored() -> None:
    """A connection breaks while another, refused one is handled: its call may have had its effect."""

    def call() -> None:
        try:
            raise ConnectionRefusedError
        except ConnectionRefusedError:
            _closed_by_server()

    assert facts(raised_fault(call)) == ("SERVICE_UNAVAILABLE", "transient", "maybe")
    # Without a context: never raised, or raised outside any handler.
    assert facts(from_exception(RedisConnectionError())) == ("SERVICE_UNAVAILABLE", "transient", "maybe")
    assert facts(raised_fault(_closed_by_server)) == ("SERVICE_UNAVAILABLE", "transient", "maybe")


@pytest.mark.parametrize(
    ("name", "base", "expected"),
    [
        (
            "redis.exceptions.BusyLoadingError",
            RedisConnectionError,
            ("SERVICE_UNAVAILABLE", "transient", "no"),
        ),
        (
            "redis.exceptions.AuthenticationError",
            RedisConnectionError,
            ("UNAUTHENTICATED", "correctable", "no"),
        ),
        ("redis.exceptions.WatchError", RedisError, ("CONFLICT", "transient", "no")),
        ("redis.exceptions.Novel", RedisError, ("INTERNAL_ERROR", "uncertain", "maybe")),
        ("pymongo.errors.ServerSelectionTimeoutError", Exception, ("SERVICE_UNAVAILABLE", "transient", "no")),
        ("pymongo.errors.DuplicateKeyError", Exception, ("CONFLICT", "correctable", "no")),
        ("pymongo.errors.NetworkTimeout", Exception, ("TIMEOUT", "transient", "maybe")),
    ],
)
def test_redis_and_mongo_by_class(name: str, base: type, expected: tuple[str, str, str]) -> None:
    """The nearest class along the MRO that has a row decides."""
    assert facts(from_exception(standin(name, base)("acme"))) == expected
