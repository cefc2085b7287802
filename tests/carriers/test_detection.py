"""AdCP's detection order over documents with several places (A6), and documents without a transport."""

import json
from itertools import combinations

import pytest

from amends import decide, decode, extract
from amends.carriers import a2a, mcp
from amends.carriers.detection import read
from amends.carriers.extraction import examine
from amends.core.enums import Executed
from amends.core.reading import FAILED
from amends.dialects import adcp
from amends.dialects.adcp import parts_beside
from amends.testing import assert_error_code

PATHS = ("structuredContent", "artifact", "status_message", "jsonrpc_error", "text_fallback", "payload")
VIA = dict(zip(PATHS, ("mcp", "a2a", "a2a", "jsonrpc", "mcp", None), strict=True))


def place(path, error, *, nested):
    """Return the members of a document that has an error at a path; `nested`: in the result of a response."""
    members = {
        "structuredContent": {"isError": True, "structuredContent": {"adcp_error": error}},
        "artifact": {"artifacts": [{"parts": [{"kind": "data", "data": {"adcp_error": error}}]}]},
        "status_message": {
            "status": {"state": "failed", "message": {"parts": [{"data": {"adcp_error": error}}]}}
        },
        "jsonrpc_error": {"error": {"code": -32000, "message": "m", "data": {"adcp_error": error}}},
        "text_fallback": {
            "isError": True,
            "content": [{"type": "text", "text": json.dumps({"adcp_error": error})}],
        },
        "payload": {"payload": {"errors": [error]}},
    }[path]
    if path == "jsonrpc_error" or not nested:
        return members
    return {"result": members}


def merged(one, other):
    """Return one document with the members of both, also of their results."""
    results = {**one.get("result", {}), **other.get("result", {})}
    document = {"jsonrpc": "2.0", "id": 1, **one, **other}
    return {**document, "result": results} if results else document


def test_every_pair_of_places():
    """A6: the earlier place is read, whatever the order of the members; a falsy value there is skipped."""
    count = 0
    for early, late in combinations(PATHS, 2):
        for nested in ((False, False), (True, True), (True, False), (False, True)):

            def parts(error, other, nested=nested, early=early, late=late):
                return place(early, error, nested=nested[0]), place(late, other, nested=nested[1])

            for falsy in (False, True):
                one, other = parts(None if falsy else {"code": "EARLY"}, {"code": "LATE"})
                for document in (merged(one, other), merged(other, one)):
                    via, reading = examine(document)
                    path = late if falsy else early
                    assert (reading.path, reading.fault.code) == (path, "LATE" if falsy else "EARLY")
                    assert via == VIA[path] or path == "payload"
                    assert examine(json.dumps(document))[1].fault == reading.fault
                    count += 1
            invalid = merged(*parts({"code": 5}, {"code": "LATE"}))
            assert read(invalid) == FAILED
    assert count == 15 * 4 * 4


def test_an_error_object_beside_a_task():
    """A6: the task's artifact is read, also with `via`; without an AdCP error in the task, the response failed."""
    task = {"id": "t", "status": {"state": "failed"}, **place("artifact", {"code": "CONFLICT"}, nested=False)}
    document = {**task, "error": {"code": -32603, "message": "Internal error"}}
    for via in (None, "a2a"):
        assert extract(document, via=via).code == "CONFLICT"
    assert examine({"status": {"state": "working"}, "error": {"code": -32603}}, "a2a")[1] == FAILED


FAILING = (
    {"errors": [{"code": "CONFLICT"}]},
    {"payload": {"errors": [{"code": "CONFLICT"}]}},
    {"status": "failed", "adcp_error": {"code": "CONFLICT"}},
    {"adcp_error": {"code": "CONFLICT"}},
    {"status": "failed", "errors": [{"code": "CONFLICT"}], "adcp_error": {"code": "CONFLICT"}},
    # The published example of a protocol envelope.
    {
        "context_id": "ctx_jkl012",
        "status": "failed",
        "message": "Unable to create media buy",
        "timestamp": "2025-10-14T14:28:45Z",
        "payload": {"errors": [{"code": "CONFLICT", "field": "targeting.geo_codes", "severity": "error"}]},
    },
)
REMARKS = (
    {
        "status": "input-required",
        "task_id": "t",
        "payload": {"media_buy_id": "mb", "errors": [{"code": "CONFLICT"}]},
    },
    {"status": "completed", "payload": {"errors": [{"code": "CONFLICT"}]}},
    {"products": [], "errors": [{"code": "CONFLICT"}]},
    {"isError": False, "structuredContent": {"errors": [{"code": "CONFLICT"}]}, "content": []},
    {
        "status": {
            "state": "input-required",
            "message": {"parts": [{"data": {"errors": [{"code": "CONFLICT"}]}}]},
        }
    },
)


def test_documents_without_a_transport():
    """A6 step 6, A8: `extract`, `decode` and `assert_error_code` read protocol envelopes and payloads."""
    for document in FAILING:
        via, reading = examine(document)
        assert (via, reading.failed, reading.fatal) == ("adcp", True, True)
        for response in (document, json.dumps(document), json.dumps(document).encode()):
            assert extract(response).code == extract(response, via="adcp").code == "CONFLICT"
            assert decode(response, "adcp").code == "CONFLICT"
            assert_error_code(response, "CONFLICT")
    assert extract({"errors": [{"message": "no code"}]}) is None
    assert extract({"adcp_error": {"code": 5}, "errors": [{"code": "X"}]}) is None
    # Other formats that have a list of errors.
    assert examine({"title": "x", "detail": "y", "errors": [{"code": "X"}]})[0] == "problem"
    assert examine({"ok": False, "error": {"code": "TIMEOUT"}, "errors": []})[0] == "cli"
    assert examine({"status": "failed", "error": {"code": "TIMEOUT", "recoverable": True}})[0] == "task"


def test_the_json_text_of_a_failed_result():
    """A6 step 6: `errors[]` in the JSON text of an isError result is read; in that of a success it is not."""
    content = [
        {"type": "text", "text": "It failed."},
        {"type": "text", "text": json.dumps({"errors": [{"code": "CONFLICT"}]})},
    ]
    reading = mcp.read({"isError": True, "content": content})
    assert (reading.path, reading.fault.code, reading.fatal) == ("payload", "CONFLICT", True)
    assert_error_code({"isError": True, "content": content}, "CONFLICT")
    assert extract({"isError": False, "content": content}) is None
    structured = {"errors": [{"code": "X"}]}
    assert extract({"isError": True, "content": content, "structuredContent": structured}).code == "X"


def test_a_remark_is_not_fatal():
    """A5, M6: an error in a response that did not fail is marked in the Fault, and needs no action."""
    for document in REMARKS:
        reading = examine(document)[1]
        assert (reading.failed, reading.fatal, reading.fault.fatal) == (False, False, False)
        assert decide(reading.fault).action == "none"
        assert reading.fault.executed is not Executed.NO
    for document in FAILING:
        assert extract(document).fatal
    two = extract({"isError": False, "structuredContent": {"errors": [{"code": "X"}, {"code": "Y"}]}})
    assert [(part.code, part.fatal) for part in two.errors] == [("X", False), ("Y", False)]
    assert not extract({"status": 207, "headers": {}, "body": {"errors": [{"status": 422}]}}).fatal


ERROR = {"code": "SERVICE_UNAVAILABLE", "message": "m", "recovery": "transient"}
PARTS = [
    {"code": "RATE_LIMITED", "message": "a", "recovery": "transient", "retry_after": 5},
    {"code": "CONFLICT", "message": "b", "recovery": "correctable", "issues": [1]},
]


@pytest.mark.parametrize("errors", [PARTS, PARTS[:1], [ERROR, *PARTS]])
def test_errors_beside_the_error_are_kept(errors):
    """A18: on every carrier they become the fault's parts, and are written beside the unchanged error again."""
    responses = (
        {"isError": True, "structuredContent": {"adcp_error": ERROR, "errors": errors}},
        {"isError": True, "structuredContent": {"adcp_error": ERROR, "payload": {"errors": errors}}},
        {
            "isError": True,
            "content": [{"type": "text", "text": json.dumps({"adcp_error": ERROR, "errors": errors})}],
        },
        {"artifacts": [{"parts": [{"data": {"errors": errors}}, {"data": {"adcp_error": ERROR}}]}]},
        {"adcp_error": ERROR, "errors": errors},
        {"status": 503, "headers": {}, "body": {"adcp_error": ERROR, "errors": errors}},
    )
    for response in responses:
        fault = extract(response)
        assert [part.code for part in fault.errors] == [each["code"] for each in errors]
        assert [adcp.encode_alone(part) for part in parts_beside(fault)] == errors
        written = mcp.write(fault)
        assert written["structuredContent"] == {"adcp_error": ERROR, "errors": errors}
        assert json.loads(written["content"][0]["text"]) == {"adcp_error": ERROR, "errors": errors}
        for version in ("0.3", "1.0"):
            task = a2a.write(fault, id="t", version=version, mime_type=True)
            _, listed, alone = task["artifacts"][0]["parts"]
            assert (listed["data"], alone["data"]) == ({"errors": errors}, {"adcp_error": ERROR})
            assert extract(task).errors == tuple(part for part in extract(responses[3]).errors)
        assert adcp.encode(fault) == {**ERROR, "errors": errors}
        assert [part.code for part in decode(adcp.encode(fault), "adcp").errors] == [
            each["code"] for each in errors
        ]


def test_errors_inside_the_error_stay_inside():
    """M8: the error object is passed on unchanged, and its parts are not written twice."""
    inside = {**ERROR, "errors": PARTS}
    fault = extract({"isError": True, "structuredContent": {"adcp_error": inside, "errors": [inside]}})
    assert ([part.code for part in fault.errors], parts_beside(fault)) == (["RATE_LIMITED", "CONFLICT"], ())
    assert mcp.write(fault)["structuredContent"] == {"adcp_error": inside, "errors": [inside]}
    both = extract({"adcp_error": inside, "errors": PARTS[:1]})
    assert len(both.errors) == 3
    assert mcp.write(both)["structuredContent"] == {"adcp_error": inside, "errors": PARTS[:1]}


def test_the_payload_layer_keeps_its_other_errors():
    """A18: all errors of a list of several are parts of the fault."""
    fault = extract({"isError": True, "structuredContent": {"errors": [ERROR, *PARTS, "odd", {"code": 5}]}})
    assert [part.code for part in fault.errors] == ["SERVICE_UNAVAILABLE", "RATE_LIMITED", "CONFLICT"]
    assert extract({"isError": True, "structuredContent": {"errors": [ERROR]}}).errors == ()
    many = extract({"adcp_error": ERROR, "errors": [{"code": "X"}] * 5000})
    assert len(many.errors) == 100
