"""AdCP errors in MCP tool results: S4's detection order, and writing."""

import json

import pytest

from amends.carriers.mcp import STRUCTURED_SINCE, read, write
from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault
from amends.core.reading import FAILED, NOT_FAILED

ERROR = {
    "code": "RATE_LIMITED",
    "message": "Request rate exceeded",
    "retry_after": 5,
    "recovery": "transient",
}
OTHER = {"code": "CONFLICT", "message": "Another", "recovery": "transient"}


def text(value):
    """Return a text item; a value that is not a string is encoded as JSON."""
    return {"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}


def result(structured=None, content=(), is_error=True, **more):
    """Return a tools/call result."""
    found = {"isError": is_error, "content": list(content), **more}
    return found if structured is None else {**found, "structuredContent": structured}


def test_the_example_of_s4():
    """A2: if structured content and text have the error, the structured one is read."""
    reading = read(result({"adcp_error": ERROR}, [text({"adcp_error": ERROR}), text("Rate limited.")]))
    assert (reading.failed, reading.fatal, reading.path) == (True, True, "structuredContent")
    assert reading.error is not None
    assert reading.error == ERROR
    assert (reading.fault.code, reading.fault.retry_after) == ("RATE_LIMITED", 5)
    assert reading.fault.origin.layer == "application"


def test_structured_before_text():
    """A6: structuredContent (step 1) is read before the text (step 5)."""
    assert read(result({"adcp_error": ERROR}, [text({"adcp_error": OTHER})])).fault.code == "RATE_LIMITED"


@pytest.mark.parametrize(
    "content",
    [
        [text({"adcp_error": ERROR})],
        [text("Rate limited — retry in 5s."), text({"adcp_error": ERROR})],
        [
            text("{not json"),
            text([{"adcp_error": OTHER}]),
            text({"adcp_error": ERROR}),
            text({"adcp_error": OTHER}),
        ],
        [
            text({"adcp_error": None}),
            text({"adcp_error": 0}),
            text({"adcp_error": ""}),
            text({"adcp_error": ERROR}),
        ],
        [{"type": "image", "text": json.dumps({"adcp_error": OTHER})}, text({"adcp_error": ERROR})],
        [{"type": "text", "text": None}, {"type": "text"}, None, "x", text({"adcp_error": ERROR})],
        [text("\ufeff" + json.dumps({"adcp_error": OTHER})), text({"adcp_error": ERROR})],
        [text('{"adcp_error": NaN}'), text({"adcp_error": ERROR})],
        [text("{" * 200_000), text({"adcp_error": ERROR})],
    ],
)
def test_the_text_fallback(content):
    """A6 step 5, A16.8: the first text item that is JSON with a truthy adcp_error is read, at any position."""
    reading = read(result(None, content))
    assert (reading.fault.code, reading.path) == ("RATE_LIMITED", "text_fallback")


@pytest.mark.parametrize("flag", [False, None, "true", "True", 1, 1.0, [True], {}])
def test_is_error_must_be_exactly_true(flag):
    """Design 8, A16.4: unless isError is exactly true, a result with an error in it is a success."""
    reading = read(result({"adcp_error": ERROR}, [text({"adcp_error": ERROR})], is_error=flag))
    assert reading == NOT_FAILED
    assert read({"content": [text({"adcp_error": ERROR})]}) == NOT_FAILED


@pytest.mark.parametrize(
    "first",
    [
        {},
        [],
        {"code": 5},
        {"code": ""},
        {"code": "X" * 65},
        "RATE_LIMITED",
        1,
        True,
        [ERROR],
        {"code": "X", "message": "a" * 4096},
    ],
)
def test_the_first_truthy_value_decides(first):
    """Design 4: if the first truthy adcp_error (also `{}` and `[]`) is invalid, later paths are not read."""
    full = [text({"adcp_error": ERROR})]
    assert read(result({"adcp_error": first, "errors": [ERROR]}, full)) == FAILED
    assert read(result({"errors": [ERROR]}, [text({"adcp_error": first}), *full])) == FAILED


@pytest.mark.parametrize("falsy", [None, False, 0, 0.0, "", float("nan")])
def test_a_falsy_value_is_ignored(falsy):
    """A value that is falsy in S4's JavaScript is ignored, and the next path is read."""
    reading = read(result({"adcp_error": falsy}, [text({"adcp_error": ERROR})]))
    assert reading.path == "text_fallback"


@pytest.mark.parametrize("structured", [None, [], "x", 5, [{"adcp_error": ERROR}]])
def test_structured_content_that_is_not_an_object(structured):
    """Structured content that is not an object is ignored, and the text is read."""
    assert read(result(structured, [text({"adcp_error": ERROR})])).path == "text_fallback"


@pytest.mark.parametrize(
    "structured", [{"payload": {"errors": [ERROR]}, "errors": [OTHER]}, {"errors": [ERROR]}]
)
def test_the_payload_layer_of_a_failure(structured):
    """A6 step 6, A5: payload.errors[0] is read, then errors[0]; a fatal error only there is a conformance gap."""
    reading = read(result(structured, [text("It failed.")]))
    assert (reading.fault.code, reading.path) == ("RATE_LIMITED", "payload")
    assert (reading.failed, reading.fatal) == (True, True)
    assert reading.fault.origin.gap


def test_the_payload_layer_of_a_success():
    """A5, M3: an error in the payload of a success is not fatal, and the call had its effect."""
    reading = read(result({"products": [], "errors": [ERROR, OTHER]}, is_error=False))
    assert (reading.failed, reading.fatal, reading.path) == (False, False, "payload")
    assert (reading.fault.executed, reading.fault.origin.gap) == (Executed.YES, None)


@pytest.mark.parametrize("errors", [[], {}, "x", None, [None, ERROR], [0, ERROR], 5])
def test_an_empty_payload_layer(errors):
    """A6 step 7: only the first item of `errors` is read."""
    assert read(result({"errors": errors})) == FAILED
    assert read(result({"errors": errors}, is_error=False)) == NOT_FAILED


@pytest.mark.parametrize("first", [{}, {"code": 5}, "x", [ERROR]])
def test_an_invalid_payload_error_is_ignored(first):
    """A7: an invalid first item of payload.errors is ignored, and errors is not read instead."""
    assert read(result({"payload": {"errors": [first]}, "errors": [ERROR]})) == FAILED
    assert read(result({"errors": [first]}, is_error=False)) == NOT_FAILED


@pytest.mark.parametrize("value", [None, 5, "x", [], [result({"adcp_error": ERROR})]])
def test_values_that_are_no_result(value):
    """A value that is not an object is not a failure."""
    assert read(value) == NOT_FAILED


@pytest.mark.parametrize("inside", [None, 5, [], "x"])
def test_a_response_whose_result_is_not_an_object(inside):
    """A JSON-RPC response whose result is not an object is not a failure."""
    assert read({"jsonrpc": "2.0", "id": 1, "result": inside}) == NOT_FAILED


def test_a_failure_without_a_structured_error():
    """A6 step 7: a failed result without a structured error is a failure without a fault."""
    assert read(result(None, [text("Something broke")])) == FAILED
    assert read({"isError": True}) == FAILED
    assert read({"isError": True, "content": "x"}) == FAILED


FAULT = Fault(code="RATE_LIMITED", vocabulary="adcp", message="Request rate exceeded", retry_after=5)


def test_a_written_result_is_read_on_every_path():
    """A2, A5: structured content, payload and text have the same error, and each can be read."""
    written = write(FAULT)
    error = written["structuredContent"]["adcp_error"]
    assert written["structuredContent"]["errors"] == [error]
    assert json.loads(written["content"][0]["text"]) == {"adcp_error": error}
    assert written["isError"] is True
    for shown in (
        written,
        {**written, "structuredContent": None},
        {**written, "structuredContent": {"errors": [error]}, "content": []},
    ):
        fault = read(shown).fault
        assert (fault.code, fault.retry_after, fault.recovery) == ("RATE_LIMITED", 5, Recovery.TRANSIENT)


@pytest.mark.parametrize(
    ("protocol", "structured"),
    [("2024-11-05", False), ("2025-03-26", False), (STRUCTURED_SINCE, True), ("2026-07-28", True)],
)
def test_older_protocols_get_only_text(protocol, structured):
    """A2, design 8: structuredContent is written from 2025-06-18 on, text always."""
    written = write(FAULT, protocol=protocol)
    assert ("structuredContent" in written) is structured
    assert len(written["content"]) == 1


def test_the_sentence_is_the_second_item():
    """A2: an optional sentence is written after the JSON text."""
    written = write(FAULT, sentence="Rate limited — retry in 5s.")
    assert [item["type"] for item in written["content"]] == ["text", "text"]
    assert written["content"][1]["text"] == "Rate limited — retry in 5s."
    assert read(written).fault.code == "RATE_LIMITED"
