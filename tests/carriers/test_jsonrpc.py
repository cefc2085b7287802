"""AdCP errors in JSON-RPC errors, and the number for each protocol version."""

import pytest

from amends.carriers.jsonrpc import COLLAPSED, MOVED_SINCE, RESERVED, number, read, write
from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.reading import FAILED, NOT_FAILED

ERROR = {"code": "RATE_LIMITED", "retry_after": 5, "recovery": "transient"}


def response(data, code=-32029):
    """Return a JSON-RPC response with an error."""
    return {"jsonrpc": "2.0", "id": "req-123", "error": {"code": code, "message": "no", "data": data}}


@pytest.mark.parametrize(
    "code", [-32029, -31029, -32000, -32603, 0, 5.0, "x", None, True, float("nan"), 10**400]
)
def test_the_error_is_read_with_any_number(code):
    """A3, design 8: data.adcp_error is read with any number; without a message it gets the JSON-RPC error's."""
    reading = read(response({"adcp_error": ERROR}, code))
    assert (reading.fault.code, reading.fault.message, reading.path) == (
        "RATE_LIMITED",
        "no",
        "jsonrpc_error",
    )
    assert (reading.failed, reading.fatal, reading.error) == (True, True, ERROR)
    assert reading.fault.origin.layer == "transport"


@pytest.mark.parametrize(
    ("code", "executed"),
    [
        *((code, "no") for code in (-32700, -32600, -32601, -32602)),
        *((code, "no") for code in (-32029, -32028, -32027, -31029, -31028, -31027)),
        *((code, "maybe") for code in (-32603, -32000, -1, 0, "x", None, float("inf"))),
        (-32602.0, "no"),
    ],
)
def test_the_effect_by_number(code, executed):
    """M3: these numbers mean a rejection before the call ran; -32602.0 counts as -32602."""
    error = {"code": "SERVICE_UNAVAILABLE"}
    assert read(response({"adcp_error": error}, code)).fault.executed == executed


def test_an_array_of_data_as_in_a2a_1_0():
    """Design 8: in an array the first object with a truthy adcp_error is read."""
    data = [
        {"@type": "x"},
        "x",
        {"adcp_error": None},
        {"adcp_error": ERROR},
        {"adcp_error": {"code": "CONFLICT"}},
    ]
    assert read(response(data)).fault.code == "RATE_LIMITED"


def test_an_error_in_the_metadata_of_an_error_info():
    """The SDK of A2A 1.0 writes the data as ErrorInfo; over REST the array is called `details`."""
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "X",
        "metadata": {"adcp_error": ERROR},
    }
    assert read(response([{"metadata": "x"}, info])).fault.code == "RATE_LIMITED"
    assert read({"error": {"code": 429, "status": "x", "details": [info]}}).fault.code == "RATE_LIMITED"
    assert read(response(info)) == FAILED


@pytest.mark.parametrize("invalid", [{}, [], "x", 1, {"code": 5}])
def test_the_first_truthy_value_decides(invalid):
    """Design 4: if the first truthy adcp_error is invalid, no error is found."""
    assert read(response({"adcp_error": invalid})) == FAILED
    assert read(response([{"adcp_error": invalid}, {"adcp_error": ERROR}])) == FAILED


@pytest.mark.parametrize("data", [None, {}, [], "x", 5, {"adcp_error": None}, {"other": 1}, [[]]])
def test_an_error_without_a_structured_one(data):
    """A6 step 7: an error without adcp_error is a failure without a fault."""
    assert read(response(data)) == FAILED


@pytest.mark.parametrize("error", ["boom", 1, True, ["x"], []])
def test_an_error_that_is_not_an_object(error):
    """An error that is not an object is a failure without a fault."""
    assert read({"jsonrpc": "2.0", "error": error}) == FAILED


@pytest.mark.parametrize(
    "value", [None, 5, [], {}, {"result": {}}, {"error": None}, {"error": 0}, {"error": ""}]
)
def test_a_response_without_an_error(value):
    """A response without a truthy `error` is not a failure."""
    assert read(value) == NOT_FAILED


@pytest.mark.parametrize(
    ("code", "old", "new"),
    [
        ("RATE_LIMITED", -32029, -31029),
        ("AUTH_MISSING", -32028, -31028),
        ("SERVICE_UNAVAILABLE", -32027, -31027),
    ],
)
def test_the_reserved_numbers_by_protocol_version(code, old, new):
    """A3, design 8: the numbers are S4's up to 2025-11-25, moved from 2026-07-28, or one number if collapsed."""
    assert number(code) == number(code, protocol="2025-11-25") == old
    assert number(code, protocol=MOVED_SINCE) == number(code, protocol="2027-01-01") == new
    assert (
        number(code, collapse=True)
        == number(code, protocol="2025-11-25", collapse=True)
        == COLLAPSED
        == -32000
    )
    assert number(code, protocol=MOVED_SINCE, collapse=True) == -31000


def test_three_codes_are_reserved():
    """A3: only three codes have a number; others raise ValueError."""
    assert set(RESERVED) == {"RATE_LIMITED", "AUTH_MISSING", "SERVICE_UNAVAILABLE"}
    with pytest.raises(ValueError, match="CONFLICT"):
        number("CONFLICT")
    with pytest.raises(ValueError):
        write(Fault(code="BUDGET_TOO_LOW", vocabulary="adcp"))


@pytest.mark.parametrize("protocol", [None, "2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("collapse", [True, False])
def test_a_written_error_is_read(protocol, collapse):
    """A3: an error written for any protocol version is read completely."""
    fault = Fault(code="RATE_LIMITED", vocabulary="adcp", message="Slow down", retry_after=5)
    written = write(fault, id=7, protocol=protocol, collapse=collapse)
    assert (written["jsonrpc"], written["id"]) == ("2.0", 7)
    assert written["error"]["message"]
    found = read(written).fault
    assert (found.code, found.retry_after, found.executed) == ("RATE_LIMITED", 5, Executed.NO)


def test_the_message_of_the_json_rpc_error():
    """The inner message counts if there is one; a long outer one is cut, and one that is not a string is ignored."""
    own = read(
        {
            "jsonrpc": "2.0",
            "error": {"code": 1, "message": "outer", "data": {"adcp_error": {**ERROR, "message": "in"}}},
        }
    )
    assert own.fault.message == "in"
    for message, found in (("m" * 5000, "m" * 1024), (5, ""), (None, ""), ("", "")):
        document = {"jsonrpc": "2.0", "error": {"code": 1, "message": message, "data": {"adcp_error": ERROR}}}
        assert read(document).fault.message == found


def test_errors_beside_the_error_are_kept():
    """A18: `data.errors` are the parts of the fault, and are written again."""
    parts = [
        {"code": "CONFLICT", "message": "a", "recovery": "transient"},
        {"code": "X", "message": "", "recovery": "terminal"},
    ]
    fault = read(response({"adcp_error": ERROR, "errors": parts}, -32029)).fault
    assert [part.code for part in fault.errors] == ["CONFLICT", "X"]
    assert write(fault)["error"]["data"]["errors"] == parts
    assert read(write(fault)).fault.errors == fault.errors
