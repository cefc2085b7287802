"""Builtins, processes, groups, faults, and exceptions that fight back."""

import asyncio
import concurrent.futures
import errno
import json
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amends import Fault, FaultError, Recovery, extract, from_exception
from amends.errors import RateLimitedError
from amends.foreign.exceptions import MAX_PARTS
from tests.foreign.reading import of, told
from tests.foreign.standins import standin

UNKNOWN = ("INTERNAL_ERROR", "uncertain", "maybe")


def test_a_fault_is_handed_out_as_it_is() -> None:
    """What is typed already needs no reading."""
    error = RateLimitedError("busy", retry_after=5)
    assert from_exception(error) is error.fault
    error.fault = "acme"  # type: ignore[assignment]
    assert told(from_exception(error)) == UNKNOWN


@pytest.mark.parametrize(
    "exc",
    [
        ValueError("x"),
        TypeError("x"),
        KeyError("x"),
        Exception(),
        RuntimeError(),
        SystemExit(3),
        StopIteration(),
    ],
)
def test_our_own_mistakes_are_internal(exc: BaseException) -> None:
    """Nobody knows what they mean, nor what happened before."""
    fault = from_exception(exc)
    assert told(fault) == UNKNOWN
    assert fault == Fault(code="INTERNAL_ERROR", message=fault.message)


@pytest.mark.parametrize(
    ("exc", "expected"),
    [
        (ConnectionRefusedError(), ("SERVICE_UNAVAILABLE", "transient", "no")),
        (socket.gaierror(8, "x"), ("SERVICE_UNAVAILABLE", "transient", "no")),
        (ssl.SSLError(1, "x"), ("SERVICE_UNAVAILABLE", "transient", "no")),
        (ssl.SSLEOFError(), ("SERVICE_UNAVAILABLE", "transient", "maybe")),
        (ssl.SSLCertVerificationError(), ("SERVICE_UNAVAILABLE", "terminal", "no")),
        (ConnectionResetError(), ("SERVICE_UNAVAILABLE", "transient", "maybe")),
        (ConnectionAbortedError(), ("SERVICE_UNAVAILABLE", "transient", "maybe")),
        (BrokenPipeError(), ("SERVICE_UNAVAILABLE", "transient", "maybe")),
        (TimeoutError(), ("TIMEOUT", "transient", "maybe")),
        (PermissionError(), ("PERMISSION_DENIED", "terminal", "no")),
        (FileNotFoundError(), ("NOT_FOUND", "correctable", "no")),
        (FileExistsError(), ("CONFLICT", "correctable", "no")),
        (IsADirectoryError(), ("VALIDATION_ERROR", "correctable", "no")),
        (OSError(), UNKNOWN),
        (OSError(errno.EIO, "x"), UNKNOWN),
        (OSError(errno.ENOSPC, "x"), ("SERVICE_UNAVAILABLE", "transient", "maybe")),
        (OSError(errno.EHOSTUNREACH, "x"), ("SERVICE_UNAVAILABLE", "transient", "maybe")),
        (OSError(errno.EMFILE, "x"), ("SERVICE_UNAVAILABLE", "transient", "no")),
        (OSError(errno.EROFS, "x"), ("PERMISSION_DENIED", "terminal", "no")),
        (OSError(errno.ENOTEMPTY, "x"), ("CONFLICT", "correctable", "no")),
        (KeyboardInterrupt(), ("CANCELLED", "terminal", "maybe")),
        (asyncio.CancelledError(), ("CANCELLED", "terminal", "maybe")),
        (concurrent.futures.CancelledError(), ("CANCELLED", "terminal", "maybe")),
        (asyncio.IncompleteReadError(b"x", 5), ("SERVICE_UNAVAILABLE", "transient", "maybe")),
    ],
)
def test_builtins(exc: BaseException, expected: tuple[str, str, str]) -> None:
    """M3, by class and errno. A resolver's number and a TLS library's are no errnos, though they look like some."""
    assert told(from_exception(exc)) == expected


def test_the_name_of_an_errno_is_a_fact() -> None:
    """Real failures of the file system; the path is not shown."""
    fault = of(lambda: Path("acme" * 100).mkdir())
    assert (fault.code, fault.details) == ("VALIDATION_ERROR", {"errno": "ENAMETOOLONG"})
    assert told(of(lambda: Path("/acme/nowhere").read_text()))[0] == "NOT_FOUND"


def test_tls_reasons_of_a_connection_in_use() -> None:
    """OpenSSL's reason tells a broken record from a broken handshake."""
    error = ssl.SSLError(1, "x")
    error.reason = "DECRYPTION_FAILED_OR_BAD_RECORD_MAC"
    assert told(from_exception(error)) == ("SERVICE_UNAVAILABLE", "transient", "maybe")


async def test_time_outs_of_asyncio() -> None:
    """wait_for and timeout raise the builtin."""
    with pytest.raises(TimeoutError) as caught:
        await asyncio.wait_for(asyncio.sleep(5), 0.01)
    assert told(from_exception(caught.value)) == ("TIMEOUT", "transient", "maybe")


def test_the_nearest_class_decides() -> None:
    """A subclass of one's own means what its base means."""
    own = type("Own", (ValueError, ConnectionRefusedError), {})
    assert told(from_exception(own("x"))) == ("SERVICE_UNAVAILABLE", "transient", "no")


# ------------------------------------------------------------------------------------------------------ processes


def run(code: str, **more: object) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, **more)  # type: ignore[call-overload]


def test_a_command_that_fails() -> None:
    """Its exit code is a fact; command, output and error output are not shown."""
    fault = of(run("import sys; print('acme'); print('acme', file=sys.stderr); sys.exit(3)"))
    assert told(fault) == UNKNOWN
    assert fault.details == {"exit": 3}
    assert b"acme" not in msgspec.json.encode(fault)
    assert told(of(run("import os; os.kill(os.getpid(), 9)"))) == UNKNOWN


def test_a_command_that_speaks_the_envelope() -> None:
    """S2: an answer to the caller, read as `extract` reads it."""
    said = {
        "ok": False,
        "error": {"code": "RATE_LIMITED", "message": "m", "retryable": True, "retry_after_ms": 1500},
    }
    fault = of(run(f"import sys; print({json.dumps(said)!r}); sys.exit(9)", text=True))
    assert (*told(fault), fault.retry_after) == ("RATE_LIMITED", "transient", "no", 1.5)
    assert fault.origin is not None


def test_commands_that_do_not_begin_or_do_not_end() -> None:
    """Not found: nothing ran. Killed by the clock: nobody knows. Exit 0 is no failure of the command."""
    assert told(of(lambda: subprocess.run(["acme-nothing"], check=False))) == (
        "NOT_FOUND",
        "correctable",
        "no",
    )
    late = of(run("import time; time.sleep(5)", timeout=0.05))
    assert told(late) == ("TIMEOUT", "transient", "maybe")
    assert told(from_exception(subprocess.CalledProcessError(0, "acme"))) == UNKNOWN


# --------------------------------------------------------------------------------------------------------- groups


def test_a_group_has_a_part_for_each() -> None:
    """Transient only if all are; the effect is the worst, the wait the longest."""
    parts = [ConnectionRefusedError(), RateLimitedError(retry_after=7), ExceptionGroup("", [TimeoutError()])]
    fault = from_exception(ExceptionGroup("acme", parts))
    assert (*told(fault), fault.retry_after) == ("SERVICE_UNAVAILABLE", "transient", "maybe", 7)
    assert [part.code for part in fault.errors] == ["SERVICE_UNAVAILABLE", "RATE_LIMITED", "TIMEOUT"]
    assert [part.code for part in fault.errors[2].errors] == ["TIMEOUT"]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([TimeoutError(), PermissionError()], ("PERMISSION_DENIED", "terminal", "maybe")),
        ([TimeoutError(), FileNotFoundError()], ("NOT_FOUND", "correctable", "maybe")),
        ([FileNotFoundError(), FileExistsError()], ("NOT_FOUND", "correctable", "no")),
        # M1's rule, though there is nothing to correct: the whole is not repeated.
        ([TimeoutError(), ValueError()], ("INTERNAL_ERROR", "correctable", "maybe")),
        # All agree that nobody knows.
        ([ValueError(), KeyError()], UNKNOWN),
        (
            [FaultError(executed="yes", recovery="transient"), TimeoutError()],
            ("INTERNAL_ERROR", "transient", "yes"),
        ),
    ],
)
def test_what_the_parts_say_about_the_whole(parts: list[Exception], expected: tuple[str, str, str]) -> None:
    """M1, nested: terminal if any is, correctable if not all agree."""
    assert told(from_exception(ExceptionGroup("", parts))) == expected


async def test_a_task_group_is_looked_into() -> None:
    """What a single failing task says, its group says."""

    async def refuse() -> None:
        raise ConnectionRefusedError

    with pytest.raises(ExceptionGroup) as caught:
        async with asyncio.TaskGroup() as group:
            group.create_task(refuse())
    assert told(from_exception(caught.value)) == ("SERVICE_UNAVAILABLE", "transient", "no")


def test_groups_are_bounded() -> None:
    """Neither width nor depth runs away."""
    assert len(from_exception(ExceptionGroup("", [ValueError()] * 5000)).errors) == MAX_PARTS
    deep: Exception = ConnectionRefusedError()
    for _ in range(200):
        deep = ExceptionGroup("", [deep])
    assert told(from_exception(deep)) == UNKNOWN
    wide = ExceptionGroup("", [ExceptionGroup("", [ValueError()] * 100)] * 100)
    assert sum(1 + len(part.errors) for part in from_exception(wide).errors) == MAX_PARTS


# -------------------------------------------------------------------------------------------------------- wrappers


def test_wrappers_are_looked_through() -> None:
    """tenacity raises its own error from the last one; a wrapper of nothing known says nothing."""
    retry_error = standin("tenacity.RetryError")
    around = retry_error("acme")
    around.__cause__ = ConnectionRefusedError()
    assert told(from_exception(around)) == ("SERVICE_UNAVAILABLE", "transient", "no")
    around.__cause__ = ValueError()
    assert told(from_exception(around)) == UNKNOWN
    around.__cause__ = RateLimitedError(retry_after=3)
    assert from_exception(around).retry_after == 3


def test_wrappers_that_wrap_themselves() -> None:
    """A circle of causes ends."""
    one, other = standin("tenacity.RetryError")(), standin("tenacity.RetryError")()
    one.__cause__, other.__cause__, one.reason = other, one, one
    assert told(from_exception(one)) == UNKNOWN


# --------------------------------------------------------------------------------------------------------- hostile


class Trap(Exception):
    """Answers every question with an exception."""

    def __getattribute__(self, name: str) -> object:
        raise RuntimeError("acme")

    def __str__(self) -> str:
        raise RuntimeError("acme")

    __repr__ = __str__


class TrapMeta(type):
    def __getattribute__(cls, name: str) -> object:
        raise RuntimeError("acme")


@pytest.mark.parametrize(
    "base", [Exception, OSError, ssl.SSLError, ExceptionGroup, FaultError, subprocess.CalledProcessError]
)
def test_an_exception_that_fights_back_is_still_one(base: type) -> None:
    """Whatever its attributes raise, it has failed and the table speaks."""
    trap = type("Caught", (Trap, base), {})
    args = {ExceptionGroup: ("x", [ValueError()]), subprocess.CalledProcessError: (1, "x")}.get(base, ())
    fault = from_exception(trap.__new__(trap, *args))
    assert fault.message
    assert b"acme" not in msgspec.json.encode(fault)


def test_a_class_that_fights_back() -> None:
    """Its name cannot even be read."""
    trap = TrapMeta("Trapped", (Exception,), {})
    assert told(from_exception(BaseException.__new__(trap))) == UNKNOWN


@pytest.mark.parametrize(
    "members",
    [
        {"response": SimpleNamespace(status_code="429", headers={})},
        {"response": SimpleNamespace(status_code=200, headers={})},
        {"response": 7},
        {"response": "acme"},
        {"status": True, "headers": {}},
        {"args": 7},
        {"model_dump": lambda self, **more: {"code": "ACME", "message": "acme"}},
        {"content": ["acme"], "isError": True},
        {"code": -32602},
        {"returncode": "acme"},
        {"errno": []},
        {"request": SimpleNamespace(headers=7)},
    ],
)
def test_what_only_looks_like_an_answer_is_none(members: dict[str, object]) -> None:
    """Odd attributes of an unknown class change nothing."""
    assert told(from_exception(standin("acme.Own", **members)())) == UNKNOWN


def test_a_wrapper_with_odd_arguments() -> None:
    """What should be a tuple is not."""
    assert told(from_exception(standin("tenacity.RetryError", args=7)())) == UNKNOWN


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
ATTRIBUTES = st.sampled_from(
    (
        *("response", "status", "status_code", "headers", "code", "data", "message", "error", "sqlstate"),
        *(
            "errno",
            "reason",
            "orig",
            "os_error",
            "returncode",
            "stdout",
            "stderr",
            "cmd",
            "timeout",
            "errors",
        ),
        *("request", "sqlite_errorname", "pgcode", "pgconn", "absolute_path", "validator", "lineno", "colno"),
    )
)
CLASSES = st.sampled_from(
    (
        *(
            "acme.Own",
            "sqlite3.Error",
            "psycopg.OperationalError",
            "grpc.RpcError",
            "msgspec.ValidationError",
        ),
        *("pydantic_core._pydantic_core.ValidationError", "jsonschema.exceptions.ValidationError"),
        *("ssl.SSLError", "json.decoder.JSONDecodeError", "requests.exceptions.ConnectionError"),
        "botocore.exceptions.ClientError",
    )
)


@settings(max_examples=60)
@given(name=CLASSES, members=st.dictionaries(ATTRIBUTES, JUNK, max_size=8), args=st.lists(JUNK, max_size=3))
def test_nothing_raises(name: str, members: dict[str, object], args: list[object]) -> None:
    """Any attributes of any class give a fault that can be written."""
    fault = from_exception(standin(name, **members)(*args))
    assert isinstance(fault.recovery, Recovery)
    msgspec.json.encode(fault)


def test_a_carried_answer_is_what_extract_reads() -> None:
    """One reading of a response, wherever it was found."""
    response = SimpleNamespace(status_code=503, headers={"Retry-After": "4"}, content=b'{"title": "t"}')
    assert from_exception(standin("acme.Own", response=response)()) == extract(response)
