"""
Databases that really fail: SQLite on files, psycopg against a scripted backend that speaks PostgreSQL's protocol.

psycopg2, asyncpg, SQLAlchemy, redis and pymongo are not installed: stand-ins of the same class names take their place.
"""

import sqlite3
from pathlib import Path

import msgspec
import psycopg
import pytest

from amends import from_exception
from tests.foreign import servers
from tests.foreign.reading import of, told
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
def test_a_refused_statement_did_nothing(
    database: sqlite3.Connection, sql: str, code: str, name: str
) -> None:
    """By the result code, as exactly as the table has it; nothing of the statement is shown."""
    fault = of(lambda: database.execute(sql))
    assert told(fault) == (code, "correctable", "no")
    assert fault.details == {"sqlite": name}
    assert b"acme" not in msgspec.json.encode(fault)


def test_a_locked_database_may_be_tried_again(database: sqlite3.Connection, tmp_path: Path) -> None:
    """BUSY: somebody else writes, and nothing of ours was written."""
    database.execute("BEGIN IMMEDIATE")
    other = sqlite3.connect(tmp_path / "acme.db", timeout=0)
    assert told(of(lambda: other.execute("DELETE FROM t"))) == ("SERVICE_UNAVAILABLE", "transient", "no")
    other.close()


def test_a_snapshot_that_is_out_of_date_has_to_begin_again(
    database: sqlite3.Connection, tmp_path: Path
) -> None:
    """BUSY_SNAPSHOT: the same transaction from its beginning may succeed."""
    database.execute("PRAGMA journal_mode=WAL")
    other = sqlite3.connect(tmp_path / "acme.db", timeout=0, isolation_level=None)
    database.execute("BEGIN")
    database.execute("SELECT * FROM t").fetchall()
    other.execute("DELETE FROM t")
    assert told(of(lambda: database.execute("DELETE FROM t"))) == ("CONFLICT", "transient", "no")
    other.close()


def test_what_sqlite_cannot_open_write_or_read(database: sqlite3.Connection, tmp_path: Path) -> None:
    """Missing files, read-only ones, and ones that are no database."""
    assert told(of(lambda: sqlite3.connect(tmp_path / "no" / "file")))[0] == "NOT_FOUND"
    read_only = sqlite3.connect(f"file:{tmp_path}/acme.db?mode=ro", uri=True)
    fault = of(lambda: read_only.execute("DELETE FROM t"))
    assert told(fault) == ("PERMISSION_DENIED", "terminal", "no")
    read_only.close()
    (tmp_path / "text").write_text("no database at all" * 100)
    text = sqlite3.connect(tmp_path / "text")
    fault = of(lambda: text.execute("SELECT 1 FROM t"))
    assert told(fault) == ("INTERNAL_ERROR", "terminal", "maybe")
    assert fault.actor.value == "operator"
    text.close()


def test_an_interrupted_statement_is_cancelled(database: sqlite3.Connection) -> None:
    """INTERRUPT, from a progress handler."""
    database.set_progress_handler(lambda: 1, 1)
    fault = of(lambda: database.execute("SELECT * FROM t, t AS b").fetchall())
    assert told(fault) == ("CANCELLED", "terminal", "maybe")


def test_what_sqlite3_refuses_itself_has_no_code(database: sqlite3.Connection) -> None:
    """Wrong numbers of parameters never reach SQLite: the class speaks."""
    assert told(of(lambda: database.execute("SELECT ?"))) == ("VALIDATION_ERROR", "correctable", "no")


@pytest.mark.parametrize("name", ["SQLITE_NOVELTY", "BUSY", "", None, 5])
def test_an_unknown_result_code_leaves_it_to_the_class(name: object) -> None:
    """Somebody's own subclass may claim anything."""
    error = sqlite3.OperationalError("x")
    error.sqlite_errorname = name  # type: ignore[attr-defined]
    assert told(from_exception(error)) == ("SERVICE_UNAVAILABLE", "transient", "maybe")


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
    """A real psycopg reads a real error message off the wire; only its SQLSTATE counts."""
    with serving(servers.postgres(state.encode())) as port, psycopg.connect(dsn(port), autocommit=True) as it:
        fault = of(lambda: it.execute("SELECT secret FROM acme_billing"))
    assert told(fault) == expected
    assert fault.details == {"sqlstate": state}
    shown = msgspec.json.encode(fault)
    assert not any(leak in shown for leak in (b"acme", b"10.1.2.3", b"SELECT", b"relation"))


def test_postgres_that_is_not_there() -> None:
    """No connection, no effect: psycopg says so by the connection it could not establish."""
    with servers.refused() as port:
        fault = of(lambda: psycopg.connect(dsn(port)))
    assert told(fault) == ("SERVICE_UNAVAILABLE", "transient", "no")


def test_postgres_that_never_answers() -> None:
    """A connection attempt that took too long (libpq counts whole seconds, two at least)."""
    fault = from_exception(psycopg.errors.ConnectionTimeout("10.1.2.3"))
    assert told(fault) == ("TIMEOUT", "transient", "no")


def test_postgres_that_goes_away() -> None:
    """The connection is lost in the middle of a statement."""
    with serving(servers.postgres(None)) as port, psycopg.connect(dsn(port), autocommit=True) as it:
        fault = of(lambda: it.execute("DELETE FROM t"))
    assert told(fault) == ("SERVICE_UNAVAILABLE", "transient", "maybe")


@pytest.mark.parametrize("state", ["ABCDE", "4000", "tok-1", 40001, None])
def test_a_sqlstate_nobody_knows_leaves_it_to_the_class(state: object) -> None:
    """Somebody's own state, and what is none."""
    error = type("Own", (psycopg.OperationalError,), {"sqlstate": state})()
    fault = from_exception(error)
    assert told(fault) == ("SERVICE_UNAVAILABLE", "transient", "maybe")
    assert fault.details is None


def test_the_older_drivers() -> None:
    """psycopg2 keeps its SQLSTATE in `pgcode`, asyncpg in `sqlstate`."""
    older = standin("psycopg2.OperationalError", pgcode="40P01")
    newer = standin(
        "asyncpg.exceptions.DeadlockDetectedError", standin("asyncpg.exceptions._base.PostgresError")
    )
    newer.sqlstate = "40P01"
    assert told(from_exception(older())) == told(from_exception(newer())) == ("CONFLICT", "transient", "no")


# ----------------------------------------------------------------------------------------------- around drivers


def test_sqlalchemy_is_looked_through() -> None:
    """`orig` is the driver's exception; without one the wrapper's class speaks."""
    dbapi = standin("sqlalchemy.exc.DBAPIError", standin("sqlalchemy.exc.SQLAlchemyError"))
    wrapper = standin("sqlalchemy.exc.OperationalError", standin("sqlalchemy.exc.DatabaseError", dbapi))
    around = wrapper("SELECT 1 FROM acme")
    around.orig = type("Deadlock", (psycopg.OperationalError,), {"sqlstate": "40P01"})()
    assert told(from_exception(around)) == ("CONFLICT", "transient", "no")
    around.orig = None
    assert told(from_exception(around)) == ("SERVICE_UNAVAILABLE", "transient", "maybe")
    pool = standin("sqlalchemy.exc.TimeoutError", standin("sqlalchemy.exc.SQLAlchemyError"))
    assert told(from_exception(pool("QueuePool limit"))) == ("TIMEOUT", "transient", "no")


RedisError = standin("redis.exceptions.RedisError")
RedisConnectionError = standin("redis.exceptions.ConnectionError", RedisError)


def _as_redis_does(cause: Exception) -> None:
    """redis raises its own error while handling the socket's, without `from`."""
    try:
        raise cause
    except OSError as error:
        raise RedisConnectionError(f"Error connecting to cache.acme: {error}")  # noqa: B904


def test_redis_says_by_its_context_whether_anything_was_sent() -> None:
    """The socket's error was caught in the frame that raised redis's own: it is the reason."""
    refused = of(lambda: _as_redis_does(ConnectionRefusedError()))
    assert told(refused) == ("SERVICE_UNAVAILABLE", "transient", "no")
    reset = of(lambda: _as_redis_does(ConnectionResetError()))
    assert told(reset) == ("SERVICE_UNAVAILABLE", "transient", "maybe")


def _closed_by_server() -> None:
    raise RedisConnectionError("Connection closed by server")


def test_somebody_elses_failure_in_the_context_proves_nothing() -> None:
    """While a refused connection is being handled, another one breaks in the middle: it may have happened."""

    def call() -> None:
        try:
            raise ConnectionRefusedError
        except ConnectionRefusedError:
            _closed_by_server()

    assert told(of(call)) == ("SERVICE_UNAVAILABLE", "transient", "maybe")
    # Never raised, or raised with nothing around it: no context at all.
    assert told(from_exception(RedisConnectionError())) == ("SERVICE_UNAVAILABLE", "transient", "maybe")
    assert told(of(_closed_by_server)) == ("SERVICE_UNAVAILABLE", "transient", "maybe")


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
    assert told(from_exception(standin(name, base)("acme"))) == expected
