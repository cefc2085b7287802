"""JSON-RPC errors: read by data.adcp_error whatever the number is, written by protocol version."""

import pytest

from amends.carriers.jsonrpc import COLLAPSED, MOVED_SINCE, RESERVED, number, read, write
from amends.carriers.reading import FAILED, NOT_FAILED
from amends.core.enums import Executed
from amends.core.fault import Fault

ERROR = {"code": "RATE_LIMITED", "retry_after": 5, "recovery": "transient"}


def response(data, code=-32029):
    """Return a whole response."""
    return {"jsonrpc": "2.0", "id": "req-123", "error": {"code": code, "message": "no", "data": data}}


@pytest.mark.parametrize(
    "code", [-32029, -31029, -32000, -32603, 0, 5.0, "x", None, True, float("nan"), 10**400]
)
def test_the_number_is_never_needed(code):
    """A3, design 8: the error is in data.adcp_error; its message may be missing."""
    reading = read(response({"adcp_error": ERROR}, code))
    assert (reading.fault.code, reading.fault.message, reading.path) == ("RATE_LIMITED", "", "jsonrpc_error")
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
def test_the_effect_of_a_number(code, executed):
    """M3: rejected before anything ran; protobuf writes numbers as floats."""
    error = {"code": "SERVICE_UNAVAILABLE"}
    assert read(response({"adcp_error": error}, code)).fault.executed == executed


def test_an_array_of_data_as_in_a2a_1_0():
    """Design 8: error.data is an array of typed objects."""
    data = [
        {"@type": "x"},
        "x",
        {"adcp_error": None},
        {"adcp_error": ERROR},
        {"adcp_error": {"code": "CONFLICT"}},
    ]
    assert read(response(data)).fault.code == "RATE_LIMITED"


def test_typed_objects_keep_it_in_their_metadata():
    """The SDK of A2A 1.0 sends an error's data as an ErrorInfo; over REST in an array called details."""
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
    """Design 4: if it is invalid, none is found."""
    assert read(response({"adcp_error": invalid})) == FAILED
    assert read(response([{"adcp_error": invalid}, {"adcp_error": ERROR}])) == FAILED


@pytest.mark.parametrize("data", [None, {}, [], "x", 5, {"adcp_error": None}, {"other": 1}, [[]]])
def test_an_error_without_a_structured_one(data):
    """A6 step 7: it failed, and nothing is found."""
    assert read(response(data)) == FAILED


@pytest.mark.parametrize("error", ["boom", 1, True, ["x"], []])
def test_an_error_that_is_not_an_object(error):
    """It is a failure without a fault."""
    assert read({"jsonrpc": "2.0", "error": error}) == FAILED


@pytest.mark.parametrize(
    "value", [None, 5, [], {}, {"result": {}}, {"error": None}, {"error": 0}, {"error": ""}]
)
def test_a_response_without_an_error_did_not_fail_here(value):
    """JSON-RPC: a response with a result is a success."""
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
    """
    A3, design 8: S4's up to 2025-11-25, others from 2026-07-28 on, which reserves that range; or the collapsed one.
    """
    assert number(code) == number(code, protocol="2025-11-25") == old
    assert number(code, protocol=MOVED_SINCE) == number(code, protocol="2027-01-01") == new
    assert (
        number(code, collapse=True)
        == number(code, protocol=MOVED_SINCE, collapse=True)
        == COLLAPSED
        == -32000
    )


def test_three_codes_are_reserved():
    """A3: other codes are reported in the tool's result only."""
    assert set(RESERVED) == {"RATE_LIMITED", "AUTH_MISSING", "SERVICE_UNAVAILABLE"}
    with pytest.raises(ValueError, match="CONFLICT"):
        number("CONFLICT")
    with pytest.raises(ValueError):
        write(Fault(code="BUDGET_TOO_LOW", vocabulary="adcp"))


@pytest.mark.parametrize("protocol", [None, "2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("collapse", [True, False])
def test_a_written_response_is_read(protocol, collapse):
    """A3: data is the same in every form."""
    fault = Fault(code="RATE_LIMITED", vocabulary="adcp", message="Slow down", retry_after=5)
    written = write(fault, id=7, protocol=protocol, collapse=collapse)
    assert (written["jsonrpc"], written["id"]) == ("2.0", 7)
    assert written["error"]["message"]
    found = read(written).fault
    assert (found.code, found.retry_after, found.executed) == ("RATE_LIMITED", 5, Executed.NO)
