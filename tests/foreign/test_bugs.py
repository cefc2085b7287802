"""M7: which exceptions are bugs, with the libraries' real exceptions."""

import io
import json
import ssl

import httpx2
import msgspec
import pydantic
import pytest
import requests

from amends.errors import InternalError, ValidationError
from amends.foreign.bugs import is_bug
from amends.foreign.registry import known_errors, register

BUGS = [
    KeyError("order"),
    IndexError(),
    TypeError(),
    AttributeError(),
    NameError(),
    UnboundLocalError(),
    ZeroDivisionError(),
    OverflowError(),
    AssertionError(),
    NotImplementedError(),
    RecursionError(),
    type("Own", (KeyError,), {})(),
]


def raised(call):
    """Return the exception that a call raises."""
    with pytest.raises(Exception) as caught:
        call()
    return caught.value


class Model(pydantic.BaseModel):
    size: int


VALUES = [
    ValueError(),
    type("OwnValue", (ValueError,), {})(),
    raised(lambda: json.loads("{")),
    raised(lambda: b"\xff".decode()),
    raised(lambda: "é".encode("ascii")),
]
KNOWN = [
    ConnectionRefusedError(),
    FileNotFoundError(),
    TimeoutError(),
    OSError(),
    io.UnsupportedOperation(),  # an OSError and a ValueError
    ssl.SSLCertVerificationError(),  # an OSError and a ValueError
    raised(lambda: Model(size="x")),  # a ValueError
    raised(lambda: msgspec.json.decode(b"{")),
    raised(lambda: requests.get("nowhere", timeout=1)),  # MissingSchema is a ValueError
    RuntimeError(),
    Exception(),
    KeyboardInterrupt(),
    InternalError(),
    ValidationError("x"),
]


def label(exc):
    return type(exc).__name__


@pytest.mark.parametrize("exc", BUGS, ids=label)
def test_bugs(exc):
    """A mistake in the code is a bug everywhere."""
    assert is_bug(exc)
    assert is_bug(exc, in_handler=False)


@pytest.mark.parametrize("exc", VALUES, ids=label)
def test_values_are_bugs_in_a_handler_only(exc):
    """Inside `recover` a response that was cut off raises ValueError as well."""
    assert is_bug(exc)
    assert not is_bug(exc, in_handler=False)


@pytest.mark.parametrize("exc", KNOWN, ids=label)
def test_known_failures_are_no_bugs(exc):
    """A class that the tables know, a FaultError, and an exception of no listed class."""
    assert not is_bug(exc)
    assert not is_bug(exc, in_handler=False)


def test_a_response_comes_first():
    """A KeyError that carries a response is read by its response."""
    failed = KeyError("x")
    failed.response = httpx2.Response(404, request=httpx2.Request("GET", "http://a"))
    assert not is_bug(failed)
    assert is_bug(KeyError("x"))


def test_registered_classes_are_no_bugs():
    """A class that the application registered, for the process or for a binding, has a meaning."""

    class NoSuchSeat(KeyError):
        pass

    assert is_bug(NoSuchSeat())
    assert not is_bug(NoSuchSeat(), errors=known_errors({NoSuchSeat: "NOT_FOUND"}))
    assert is_bug(KeyError(), errors=known_errors({NoSuchSeat: "NOT_FOUND"}))
    register(NoSuchSeat, code="NOT_FOUND")
    assert not is_bug(NoSuchSeat())
    assert not is_bug(ExceptionGroup("g", [NoSuchSeat()]), in_handler=False)


def test_groups():
    """A group is a bug if a part of it is one."""
    assert is_bug(ExceptionGroup("g", [ConnectionResetError(), ExceptionGroup("h", [KeyError()])]))
    assert not is_bug(ExceptionGroup("g", [ConnectionResetError()]))
    deep = KeyError()
    for _ in range(200):
        deep = ExceptionGroup("g", [deep])
    assert not is_bug(deep)
    assert not is_bug(ExceptionGroup("wide", [OSError()] * 5000 + [KeyError()]))


def test_exceptions_whose_attributes_raise():
    """An exception that raises when it is inspected is classified by its class alone."""

    class Hostile(KeyError):
        @property
        def response(self):
            raise RuntimeError

        @property
        def __class__(self):
            raise RuntimeError

    assert is_bug(Hostile())
