"""Tests of the tables: they are complete, match the installed libraries, and import none of them."""

import importlib
import subprocess
import sys
from importlib.util import find_spec

import pytest

from amends.core.meanings import Meaning, fault_of
from amends.core.vocabularies.everyday import VOCABULARY
from amends.core.vocabulary import row_for
from amends.foreign import codes
from amends.foreign.classes import INSIDE, rows
from amends.foreign.readers import READERS
from amends.vendors.registry import exception_rows

MODULES = sorted({module for library in exception_rows() for module in library["modules"]})

ABSENT = {
    # Former names: no version has both these and their successors.
    *("mcp.shared.exceptions.McpError", "pydantic.error_wrappers.ValidationError"),
}


def installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:
        return False


# anyio's classes differ by version, and `__module__` of the others' classes is their package.
LOOSE = {"anyio", "openai._exceptions", "anthropic._exceptions"}


@pytest.mark.parametrize("module", [name for name in MODULES if name not in LOOSE and installed(name)])
def test_rows_name_classes_that_exist(module: str) -> None:
    """The test fails if a library renames its exceptions."""
    home = importlib.import_module(module)
    for name in rows():
        if name.rpartition(".")[0] == module and name not in ABSENT:
            cls = getattr(home, name.rpartition(".")[2])
            assert f"{cls.__module__}.{cls.__qualname__}" == name
            assert issubclass(cls, BaseException)


def test_every_row_has_a_code_and_a_known_reader() -> None:
    """Codes are everyday codes, readers are keys of READERS."""
    for row in rows().values():
        assert row.reader is None or row.reader == INSIDE or row.reader in READERS
        fault = fault_of(row.meaning)
        assert fault.message == row_for(fault.vocabulary, fault.code).message


@pytest.mark.parametrize(
    "table",
    [
        codes.ERRNO,
        codes.TLS,
        codes.SQLSTATE,
        codes.SQLITE,
        codes.GRPC,
        codes.JSONRPC,
        codes.MCP,
        codes.MYSQL,
        codes.AMQP,
        codes.KAFKA,
        codes.CURL,
    ],
)
def test_every_code_has_an_everyday_code(table: dict[object, Meaning]) -> None:
    """All tables refer to everyday codes."""
    for meaning in table.values():
        assert fault_of(meaning).code in VOCABULARY.rows


def test_codes_are_those_of_the_publishers() -> None:
    """errno's names, SQLite's result codes, gRPC's sixteen."""
    import errno
    import sqlite3

    assert all(hasattr(errno, name) for name in codes.ERRNO)
    # The standard library does not have names for the newest ones.
    assert {name for name in codes.SQLITE if not hasattr(sqlite3, f"SQLITE_{name}")} <= {
        "CONSTRAINT_DATATYPE"
    }
    assert len(codes.GRPC) == 16
    assert {len(state) for state in codes.SQLSTATE} == {2, 5}


def test_the_classes_of_sqlstates_without_a_meaning() -> None:
    """They are the warnings, and errors of code that runs in the database or outside it."""
    from psycopg.errors import _sqlcodes

    states = {cls.sqlstate for cls in _sqlcodes.values()}
    unknown = {state[:2] for state in states if codes.sqlstate(state) is None}
    assert unknown == {
        *("02", "03", "09", "0B", "0F", "0L", "0P", "0Z", "10", "20", "2F", "38", "39", "72", "F0", "HV"),
    }


def test_importing_loads_no_listed_library() -> None:
    """It loads no socket, ssl or asyncio either."""
    names = {module.partition(".")[0] for module in MODULES} - {"builtins", "msgspec"}
    banned = (names - {"json", "http", "urllib"}) | {
        "asyncio",
        "socket",
        "ssl",
        "http.client",
        "urllib.error",
    }
    code = f"import amends.foreign, sys; print([name for name in {sorted(banned)!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_classifying_loads_no_listed_library() -> None:
    """The same holds when an exception is classified."""
    code = (
        "import sys; from amends.foreign import from_exception, from_upstream\n"
        "class ConnectError(Exception): pass\n"
        "ConnectError.__module__ = 'httpx'\n"
        "assert from_exception(ConnectError()).executed == 'no'\n"
        "from_upstream(ConnectError())\n"
        "print([name for name in ('httpx', 'asyncio', 'socket', 'ssl', 'subprocess') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
