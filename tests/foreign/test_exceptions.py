"""Tests of builtin exceptions, processes, groups, FaultErrors, and exceptions whose attributes raise."""

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

import httpx
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amends import Fault, FaultError, Recovery, extract, from_exception
from amends.errors import QuotaExceededError, RateLimitedError
from amends.foreign.exceptions import MAX_PARTS
from tests.foreign.faults import facts, raised_fault
from tests.foreign.standins import standin

UNKNOWN = ("INTERNAL_ERROR", "uncertain", "maybe")


def test_the_fault_of_a_fault_error_is_returned_unchanged() -> None:
    """A FaultError needs no classification."""
    error = RateLimitedError("busy", retry_after=5)
    assert from_exception(error) is error.fault
    error.fault = "acme"  # type: ignore[assignment]
    assert facts(from_exception(error)) == UNKNOWN


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
def test_unlisted_exceptions_are_internal_errors(exc: BaseException) -> None:
    """Nothing is known about their effect."""
    fault = from_exception(exc)
    assert facts(fault) == UNKNOWN
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
    """M3, by class and errno. Numbers of the resolver and of TLS libraries are not taken for errnos."""
    assert facts(from_exception(exc)) == expected


def test_details_have_the_name_of_the_errno() -> None:
    """Real failures of the file system; the path is not shown."""
    fault = raised_fault(lambda: Path("acme" * 100).mkdir())
    assert (fault.code, fault.details) == ("VALIDATION_ERROR", {"errno": "ENAMETOOLONG"})
    assert facts(raised_fault(lambda: Path("/acme/nowhere").read_text()))[0] == "NOT_FOUND"


def test_tls_reasons_of_an_established_connection() -> None:
    """OpenSSL's reason distinguishes a broken record from a failed handshake."""
    error = ssl.SSLError(1, "x")
    error.reason = "DECRYPTION_FAILED_OR_BAD_RECORD_MAC"
    assert facts(from_exception(error)) == ("SERVICE_UNAVAILABLE", "transient", "maybe")


async def test_time_outs_of_asyncio() -> None:
    """`wait_for` raises the builtin TimeoutError."""
    with pytest.raises(TimeoutError) as caught:
        await asyncio.wait_for(asyncio.sleep(5), 0.01)
    assert facts(from_exception(caught.value)) == ("TIMEOUT", "transient", "maybe")


def test_the_nearest_class_decides() -> None:
    """A subclass has the meaning of its nearest listed base."""
    own = type("Own", (ValueError, ConnectionRefusedError), {})
    assert facts(from_exception(own("x"))) == ("SERVICE_UNAVAILABLE", "transient", "no")


# ------------------------------------------------------------------------------------------------------ processes


def run(code: str, **more: object) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, **more)  # type: ignore[call-overload]


def test_a_command_that_fails() -> None:
    """The details have the exit code; command, output and error output are not shown."""
    fault = raised_fault(run("import sys; print('acme'); print('acme', file=sys.stderr); sys.exit(3)"))
    assert facts(fault) == UNKNOWN
    assert fault.details == {"exit": 3}
    assert b"acme" not in msgspec.json.encode(fault)
    assert facts(raised_fault(run("import os; os.kill(os.getpid(), 9)"))) == UNKNOWN


def test_a_command_that_prints_the_envelope() -> None:
    """The CLI envelope on stdout is read as `extract` reads it."""
    envelope = {
        "ok": False,
        "error": {"code": "RATE_LIMITED", "message": "m", "retryable": True, "retry_after_ms": 1500},
    }
    fault = raised_fault(run(f"import sys; print({json.dumps(envelope)!r}); sys.exit(9)", text=True))
    assert (*facts(fault), fault.retry_after) == ("RATE_LIMITED", "transient", "no", 1.5)
    assert fault.origin is not None


def test_commands_that_do_not_start_or_do_not_end() -> None:
    """Not found: no effect. Timed out: unknown. Exit code 0: unknown, because the command did not fail."""
    assert facts(raised_fault(lambda: subprocess.run(["acme-nothing"], check=False))) == (
        "NOT_FOUND",
        "correctable",
        "no",
    )
    late = raised_fault(run("import time; time.sleep(5)", timeout=0.05))
    assert facts(late) == ("TIMEOUT", "transient", "maybe")
    assert facts(from_exception(subprocess.CalledProcessError(0, "acme"))) == UNKNOWN


# --------------------------------------------------------------------------------------------------------- groups


def test_a_group_has_a_part_for_each_exception() -> None:
    """It is transient only if all are; `executed` is the worst, the wait the longest."""
    parts = [ConnectionRefusedError(), RateLimitedError(retry_after=7), ExceptionGroup("", [TimeoutError()])]
    fault = from_exception(ExceptionGroup("acme", parts))
    assert (*facts(fault), fault.retry_after) == ("SERVICE_UNAVAILABLE", "transient", "maybe", 7)
    assert [part.code for part in fault.errors] == ["SERVICE_UNAVAILABLE", "RATE_LIMITED", "TIMEOUT"]
    assert [part.code for part in fault.errors[2].errors] == ["TIMEOUT"]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([TimeoutError(), PermissionError()], ("PERMISSION_DENIED", "terminal", "maybe")),
        ([TimeoutError(), FileNotFoundError()], ("NOT_FOUND", "correctable", "maybe")),
        ([FileNotFoundError(), FileExistsError()], ("NOT_FOUND", "correctable", "no")),
        # M1's rule, although nothing can be corrected: the group is not repeated.
        ([TimeoutError(), ValueError()], ("INTERNAL_ERROR", "correctable", "maybe")),
        # All are uncertain.
        ([ValueError(), KeyError()], UNKNOWN),
        (
            [FaultError(executed="yes", recovery="transient"), TimeoutError()],
            ("INTERNAL_ERROR", "transient", "yes"),
        ),
    ],
)
def test_the_recovery_of_a_group(parts: list[Exception], expected: tuple[str, str, str]) -> None:
    """M1, nested: terminal if any part is, correctable if not all agree."""
    assert facts(from_exception(ExceptionGroup("", parts))) == expected


async def test_a_task_group_with_one_failure() -> None:
    """It has the meaning of the single exception."""

    async def refuse() -> None:
        raise ConnectionRefusedError

    with pytest.raises(ExceptionGroup) as caught:
        async with asyncio.TaskGroup() as group:
            group.create_task(refuse())
    assert facts(from_exception(caught.value)) == ("SERVICE_UNAVAILABLE", "transient", "no")


def test_groups_are_bounded() -> None:
    """Width and depth of groups are limited."""
    assert len(from_exception(ExceptionGroup("", [ValueError()] * 5000)).errors) == MAX_PARTS
    deep: Exception = ConnectionRefusedError()
    for _ in range(200):
        deep = ExceptionGroup("", [deep])
    assert facts(from_exception(deep)) == UNKNOWN
    wide = ExceptionGroup("", [ExceptionGroup("", [ValueError()] * 100)] * 100)
    assert sum(1 + len(part.errors) for part in from_exception(wide).errors) == MAX_PARTS


# -------------------------------------------------------------------------------------------------------- wrappers


def test_the_inner_exception_of_a_wrapper_decides() -> None:
    """tenacity raises its own error from the last one. An unlisted inner exception changes nothing."""
    retry_error = standin("tenacity.RetryError")
    around = retry_error("acme")
    around.__cause__ = ConnectionRefusedError()
    assert facts(from_exception(around)) == ("SERVICE_UNAVAILABLE", "transient", "no")
    around.__cause__ = ValueError()
    assert facts(from_exception(around)) == UNKNOWN
    around.__cause__ = RateLimitedError(retry_after=3)
    assert from_exception(around).retry_after == 3


def test_wrappers_that_wrap_themselves() -> None:
    """A cycle of causes ends."""
    one, other = standin("tenacity.RetryError")(), standin("tenacity.RetryError")()
    one.__cause__, other.__cause__, one.reason = other, one, one
    assert facts(from_exception(one)) == UNKNOWN


# --------------------------------------------------------------------------------------------------------- hostile


class Trap(Exception):
    """Raises an exception for every attribute."""

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
def test_an_exception_whose_attributes_raise(base: type) -> None:
    """The class still decides."""
    trap = type("Caught", (Trap, base), {})
    args = {ExceptionGroup: ("x", [ValueError()]), subprocess.CalledProcessError: (1, "x")}.get(base, ())
    fault = from_exception(trap.__new__(trap, *args))
    assert fault.message
    assert b"acme" not in msgspec.json.encode(fault)


def test_a_class_whose_attributes_raise() -> None:
    """Its name cannot be read, so it is an internal error."""
    trap = TrapMeta("Trapped", (Exception,), {})
    assert facts(from_exception(BaseException.__new__(trap))) == UNKNOWN


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
def test_odd_attributes_are_no_response(members: dict[str, object]) -> None:
    """Odd attributes of an unlisted class change nothing."""
    assert facts(from_exception(standin("acme.Own", **members)())) == UNKNOWN


def test_a_wrapper_with_odd_arguments() -> None:
    """`args` is no tuple."""
    assert facts(from_exception(standin("tenacity.RetryError", args=7)())) == UNKNOWN


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
def test_any_attributes_give_a_fault(name: str, members: dict[str, object], args: list[object]) -> None:
    """Any attributes of any class give a fault that can be encoded."""
    fault = from_exception(standin(name, **members)(*args))
    assert isinstance(fault.recovery, Recovery)
    msgspec.json.encode(fault)


def test_a_response_is_read_as_by_extract() -> None:
    """The fault of an exception's response equals `extract(response)`."""
    response = SimpleNamespace(status_code=503, headers={"Retry-After": "4"}, content=b'{"title": "t"}')
    assert from_exception(standin("acme.Own", response=response)()) == extract(response)


class AgentError(Exception):
    """An exception of an application, without a row."""


def raised_from(cause: BaseException) -> AgentError:
    error = AgentError("step 3")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (QuotaExceededError(), ("QUOTA_EXCEEDED", "terminal", "no")),
        (httpx.ConnectError("x"), ("SERVICE_UNAVAILABLE", "transient", "maybe")),
        (raised_from(httpx.ReadTimeout("x")), ("TIMEOUT", "transient", "maybe")),
        (KeyError("x"), ("INTERNAL_ERROR", "uncertain", "maybe")),
        (FileNotFoundError("x"), ("INTERNAL_ERROR", "uncertain", "maybe")),
    ],
)
def test_an_unknown_exception_raised_from_a_failed_call(
    cause: BaseException, expected: tuple[str, str, str]
) -> None:
    """The failed call decides, but what the code did before it is not known. Local failures stay unknown."""
    fault = from_exception(raised_from(cause))
    assert (fault.code, fault.recovery.value, fault.executed.value) == expected


def test_the_vendor_says_whose_codes_a_response_has() -> None:
    """A number of a service is read with its table; an unknown name is a mistake of the caller, as for `extract`."""
    body = {"code": 63038, "message": "Account exceeded the daily messages limit", "status": 429}
    response = httpx.Response(
        429, json=body, request=httpx.Request("POST", "https://gateway.example/messages")
    )
    error = httpx.HTTPStatusError("429", request=response.request, response=response)
    assert from_exception(error).code == "RATE_LIMITED"
    fault = from_exception(error, vendor="twilio")
    assert (fault.code, fault.recovery) == ("QUOTA_EXCEEDED", "terminal")
    grouped = from_exception(ExceptionGroup("both", [error, error]), vendor="twilio")
    assert grouped.code == "QUOTA_EXCEEDED"
    with pytest.raises(LookupError, match="no vendor 'acme'"):
        from_exception(error, vendor="acme")
