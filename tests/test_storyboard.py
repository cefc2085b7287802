"""The check `error_code` of AdCP's storyboards (A8)."""

import pickle
from types import SimpleNamespace

import pytest

from amends.errors import RateLimitedError
from amends.storyboard import NOT_RESOLVABLE, ErrorCodeMismatch, error_code
from amends.testing import assert_error_code
from amends.vectors import load_transport

ERROR = {"code": "RATE_LIMITED", "message": "Slow down"}
OTHER = {"code": "CONFLICT"}
LAYERS = {
    "mcp, structured": {"isError": True, "structuredContent": {"adcp_error": ERROR}},
    "mcp, text": {
        "isError": True,
        "content": [{"type": "text", "text": '{"adcp_error": {"code": "RATE_LIMITED"}}'}],
    },
    "mcp, payload alone": {"isError": True, "structuredContent": {"payload": {"errors": [ERROR]}}},
    "mcp, not fatal": {"structuredContent": {"errors": [ERROR]}},
    "mcp, both layers": {"isError": True, "structuredContent": {"adcp_error": ERROR, "errors": [OTHER]}},
    "a2a": {
        "status": {"state": "failed"},
        "artifacts": [{"parts": [{"kind": "data", "data": {"adcp_error": ERROR}}]}],
    },
    "a2a, payload": {
        "status": {"state": "failed"},
        "artifacts": [{"parts": [{"data": {"errors": [ERROR]}}]}],
    },
    "json-rpc": {"jsonrpc": "2.0", "id": 1, "error": {"code": -32029, "data": {"adcp_error": ERROR}}},
    "a bare error": ERROR,
    "an exception": RateLimitedError("Slow down"),
    "an SDK's object": SimpleNamespace(is_error=True, content=[], structured_content={"adcp_error": ERROR}),
    "bytes": b'{"isError": true, "structuredContent": {"adcp_error": {"code": "RATE_LIMITED"}}}',
}
NOTHING = {
    "prose": {"isError": True, "content": [{"type": "text", "text": "Too many requests"}]},
    "an invalid error": {"isError": True, "structuredContent": {"adcp_error": {"code": 5}}},
    "an invalid error before a valid one": {
        "isError": True,
        "structuredContent": {"adcp_error": {"code": 5}, "errors": [ERROR]},
    },
    "a task in prose": {"status": {"state": "failed", "message": {"parts": [{"text": "no"}]}}},
    "a number": {"jsonrpc": "2.0", "id": 1, "error": {"code": -32029, "message": "Rate limit"}},
    "a status": {"status": 429, "headers": {}},
    "success": {"content": [{"type": "text", "text": "ok"}]},
    "none": None,
    "no JSON": b"<html>",
}


@pytest.mark.parametrize("layer", LAYERS)
def test_the_code_is_found_on_either_layer(layer):
    """The code is read from adcp_error, then from errors[0]."""
    assert_error_code(LAYERS[layer], "RATE_LIMITED")
    assert_error_code(LAYERS[layer], "CONFLICT", "RATE_LIMITED")
    with pytest.raises(ErrorCodeMismatch) as caught:
        assert_error_code(LAYERS[layer], "CONFLICT", "AUTH_MISSING")
    assert (caught.value.reason, caught.value.found) == ("error_code_mismatch", "RATE_LIMITED")
    assert "CONFLICT or AUTH_MISSING" in str(caught.value)


@pytest.mark.parametrize("response", NOTHING)
def test_a_response_without_a_code_is_not_resolvable(response):
    """If no layer has a code, the check fails with the reason error_code_not_resolvable."""
    with pytest.raises(AssertionError, match=NOT_RESOLVABLE) as caught:
        assert_error_code(NOTHING[response], "RATE_LIMITED")
    assert (caught.value.reason, caught.value.found) == ("error_code_not_resolvable", None)


def test_the_published_vectors():
    """The code of every vector with one is found; the others are not resolvable."""
    for vector in load_transport():
        wanted = vector.expected_error
        assert error_code(vector.response, vector.transport) == (wanted and wanted["code"]), vector.id


def test_a_check_without_codes_and_pickling():
    """A call without codes raises TypeError; ErrorCodeMismatch can be pickled."""
    with pytest.raises(TypeError):
        assert_error_code(ERROR)
    again = pickle.loads(pickle.dumps(ErrorCodeMismatch("r", ("A",), None)))
    assert (again.reason, again.wanted, again.found) == ("r", ("A",), None)
