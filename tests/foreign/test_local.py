"""Which exceptions come from the code that ran, and not from a service that it called."""

import sqlite3

import httpx
import pydantic
import pytest
from mcp import MCPError

from amends import Fault, FaultError
from amends.errors import NotFoundError
from amends.foreign.local import is_client_error, is_local


class Order(pydantic.BaseModel):
    count: int


def invalid():
    try:
        Order(count="two")
    except pydantic.ValidationError as error:
        return error


def refused():
    request = httpx.Request("GET", "http://shop.example/7")
    return httpx.HTTPStatusError("404", request=request, response=httpx.Response(404, request=request))


@pytest.mark.parametrize(
    ("exc", "local"),
    [
        (FileNotFoundError(2, "receipt.txt"), True),
        (PermissionError(), True),
        (sqlite3.IntegrityError(), True),
        (invalid(), True),
        (refused(), False),
        (httpx.ConnectError("refused"), False),
        (MCPError(-32602, "unknown tool"), False),
        (NotFoundError("No such order"), False),
        (FaultError.from_fault(Fault(code="CONFLICT")), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_service_did_not_answer(exc, local):
    """The answer of a service, and an error that its author gave a meaning, are not local."""
    assert is_local(exc) is local


def test_a_client_error_is_one_of_a_client_library():
    assert is_client_error(httpx.ReadTimeout("late"))
    assert not is_client_error(TimeoutError())
