"""Extracting a Fault from any response: by `via`, or by shape in the order of the design."""

import json
import subprocess
import sys
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each import each
from tests.strategies import documents, json_values, mutated, rarely

from amends.carriers.extraction import VIAS, examine, examine_read, extract
from amends.core.decision import decide
from amends.core.reading import NOT_FAILED
from amends.core.wire import read

ERROR = {"code": "RATE_LIMITED", "message": "Slow down", "recovery": "transient", "retry_after": 5}
TASK = {
    "id": "t",
    "status": {"state": "failed"},
    "artifacts": [{"parts": [{"kind": "data", "data": {"adcp_error": ERROR}}]}],
}
RESULT = {"isError": True, "structuredContent": {"adcp_error": ERROR}}
RPC = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32029, "message": "no", "data": {"adcp_error": ERROR}}}


def test_the_vias():
    """Design 9 lists nine; closed WebSockets were added for the failures in vendors.md."""
    expected = {"mcp", "a2a", "jsonrpc", "adcp", "http", "problem", "cli", "task", "arcp", "websocket"}
    assert set(VIAS) == expected


@pytest.mark.parametrize("via", ["nowhere", "", "MCP", "envelope", 5])
def test_another_via_is_a_lookup_error(via):
    """An unknown `via` raises; no response does."""
    with pytest.raises(LookupError):
        extract({}, via=via)


@pytest.mark.parametrize(
    ("response", "via", "path"),
    [
        (RPC, "jsonrpc", "jsonrpc_error"),
        ({"error": {"code": -32029, "data": {"adcp_error": ERROR}}}, "jsonrpc", "jsonrpc_error"),
        ({"jsonrpc": "2.0", "id": 1, "result": RESULT}, "mcp", "structuredContent"),
        ({"jsonrpc": "2.0", "id": 1, "result": TASK}, "a2a", "artifact"),
        ({"jsonrpc": "2.0", "id": 1, "result": {"task": TASK}}, "a2a", "artifact"),
        ({"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}, "jsonrpc", None),
        ({"jsonrpc": "2.0", "id": 1, "result": 5}, "jsonrpc", None),
        ({"arcp": "1.1", "type": "job.error", "payload": {"code": "TIMEOUT"}}, "arcp", "job.error"),
        ({"type": "session.error", "payload": {"code": "TIMEOUT"}}, "arcp", "session.error"),
        (RESULT, "mcp", "structuredContent"),
        ({"content": [], "isError": True}, "mcp", None),
        ({"content": [{"type": "text", "text": "x"}]}, "mcp", None),
        (TASK, "a2a", "artifact"),
        ({"task": TASK}, "a2a", "artifact"),
        ({"artifacts": []}, "a2a", None),
        ({"status": 429, "headers": {}}, "http", "status"),
        ({"status": 429, "body": {"title": "x"}}, "http", "body"),
        ({"exit": 9, "stdout": "", "stderr": ""}, "cli", "exit"),
        ({"stdout": "", "stderr": "", "timed_out": True}, "cli", "timeout"),
        ({"id": "t", "status": "failed", "error": {"code": "TIMEOUT", "recoverable": True}}, "task", "task"),
        ({"id": "t", "status": "completed"}, "task", None),
        ({"ok": False, "error": {"code": "TIMEOUT"}}, "cli", "envelope"),
        ({"ok": True}, "cli", None),
        ({"type": "about:blank", "status": 429}, "problem", "body"),
        ({"title": "x", "detail": "y"}, "problem", "body"),
        # One word is not enough: books have titles, countries have codes, posts have types.
        ({"title": "x"}, None, None),
        ({"type": "book", "title": "x"}, None, None),
        ({"code": "DE", "name": "Germany"}, None, None),
        ({"code": "SAVE10", "message": "Welcome"}, None, None),
        ({"detail": "x", "code": "X", "message": "y"}, "problem", "body"),
        ({"retry_after_ms": 5, "status": 429}, "problem", "body"),
        ({"code": "TIMEOUT", "message": "", "recoverable": True}, "task", "task"),
        ({"code": "TIMEOUT", "message": "", "retryable": True}, "arcp", None),
        ({"code": "TIMEOUT", "message": "x", "type": "error"}, "adcp", None),
        (ERROR, "adcp", None),
    ],
)
def test_the_shape_decides(response, via, path):
    """Design 9: without `via` the shape decides: JSON-RPC, ARCP, MCP, A2A, HTTP, process, task, envelope, problem, bare."""
    found, reading = examine(response)
    assert (found, reading.path) == (via, path)


WHOLE = (
    ("jsonrpc", {"jsonrpc": "2.0", "error": {"code": -1}}),
    ("arcp", {"arcp": "1.1", "type": "job.error", "payload": {}}),
    ("mcp", {"isError": True, "content": []}),
    ("a2a", {"artifacts": []}),
    ("http", {"status": 500, "headers": {}, "body": None}),
    ("cli", {"exit": 1, "stdout": "", "stderr": ""}),
    ("task", {"status": "failed"}),
    ("cli", {"ok": False}),
    ("problem", {"is_retriable": True, "detail": "x"}),
    ("task", {"code": "X", "message": "", "recoverable": True}),
    ("arcp", {"code": "X", "message": "", "retryable": True}),
    ("adcp", {"code": "CONFLICT", "message": ""}),
)


@pytest.mark.parametrize("first", range(len(WHOLE)))
def test_the_order_of_shapes(first):
    """Design 9: a document with the members of two shapes is read as the first of them."""
    via, members = WHOLE[first]
    for _, later in WHOLE[first:]:
        assert examine({**later, **members})[0] == via


@pytest.mark.parametrize(
    "response",
    [
        {},
        {"data": 1},
        {"status": "ok"},
        {"status": 500},
        [],
        5,
        None,
        "",
        "x",
        b"",
        (),
        1.5,
        b"[{}]",
        "5",
        b"null",
    ],
)
def test_values_without_a_shape(response):
    """A value of no known shape is not a failure."""
    assert examine(response) == (None, NOT_FAILED)


@each(
    ("response", "via"),
    [
        (RESULT, "mcp"),
        ({"jsonrpc": "2.0", "id": 1, "result": RESULT}, "mcp"),
        (RPC, "mcp"),
        (TASK, "a2a"),
        ({"jsonrpc": "2.0", "id": 1, "result": TASK}, "a2a"),
        (RPC, "a2a"),
        ({"error": {"code": -32029, "data": {"adcp_error": ERROR}}}, "mcp"),
        ({"error": {"code": -32029, "data": {"adcp_error": ERROR}}}, "a2a"),
        (RPC, "jsonrpc"),
        (ERROR, "adcp"),
        ({"status": 429, "body": {"adcp_error": ERROR}}, "http"),
        ({"title": "x", "code": "RATE_LIMITED"}, "problem"),
        ({"ok": False, "error": ERROR}, "cli"),
        ({"exit": 9, "stdout": "", "stderr": "", "profile": "v1"}, "cli"),
        (ERROR, "task"),
        ({"id": "t", "status": "failed", "error": ERROR}, "task"),
        (ERROR, "arcp"),
        ({"type": "job.error", "payload": ERROR}, "arcp"),
    ],
)
@each("kind", [dict, json.dumps, lambda data: json.dumps(data).encode(), types.MappingProxyType])
def test_every_via_reads_its_documents(response, via, kind):
    """Design 9: each document of the table is read as an object, as JSON and as any mapping."""
    assert extract(kind(response), via=via).code == "RATE_LIMITED"


@each("via", ["adcp", "problem", "jsonrpc", "task", "arcp", "cli", "http", "mcp", "a2a"])
@each("value", [{}, [], "x", b"\xff", None, 5])
def test_values_without_an_error(via, value):
    """M6: no fault is extracted from values without an error."""
    assert extract(value, via=via) is None


def test_an_invalid_bare_error_is_a_failure():
    """M6: a bare error is a failure even if it is invalid."""
    assert examine({"code": 5}, "adcp")[1].failed
    assert examine({"code": 5}, "problem")[1].failed
    assert examine({"code": 5, "recoverable": True}, "task")[1].failed


def test_a_207_document_is_not_fatal():
    """M1: a 207 document is not fatal; its nested problems are decided one by one."""
    reading = examine({"status": 207, "title": "t", "errors": [{"status": 422}]}, "problem")[1]
    assert (reading.failed, reading.fatal) == (False, False)


def test_a_document_nested_too_deep():
    """M6: no fault is extracted from 10,000 levels, as values or as text, with any `via`."""
    value: dict = {}
    for _ in range(10_000):
        value = {"errors": [value], "code": "X", "title": "x"}
    for via in (None, *VIAS):
        assert extract(value, via=via) is None
        assert extract('{"errors":[' * 10_000 + "]}" * 10_000, via=via) is None


@pytest.mark.parametrize("value", [RESULT, ERROR, {}, [], 5, "x", b"{}"])
def test_examine_read_does_not_parse(value):
    """`examine_read` takes decoded values: strings and bytes are not parsed as JSON."""
    via, reading = examine_read(value)
    if isinstance(value, dict):
        assert (via, reading) == examine(value)
    else:
        assert (via, reading) == (None, NOT_FAILED)


@pytest.mark.parametrize("via", VIAS)
@rarely
@given(st.data())
def test_bytes_and_objects_give_the_same_result(via, data):
    """A9, A7: the result is the same for JSON bytes and for the decoded document."""
    document = data.draw(st.sampled_from(documents[via]))
    extra = data.draw(st.dictionaries(st.text(max_size=3), json_values(), max_size=2))
    written = json.dumps({**extra, **document}).encode()
    for asked in (via, None):
        assert examine(written, asked) == examine(read(written), asked)
        assert examine(read(written), asked) == examine_read(read(written), asked)


@pytest.mark.parametrize("via", VIAS)
@rarely
@given(st.data())
def test_a_reading_is_consistent(via, data):
    """M6: fatal implies failed, an error implies a fault, and a fault has an origin."""
    document = data.draw(mutated(via))
    _, reading = examine(document, via)
    assert not reading.fatal or reading.failed
    if reading.fault is not None:
        assert reading.fault.origin is not None
        assert reading.path is None or reading.fault.origin.path is not None
    if reading.error is not None:
        assert reading.fault is not None


def test_extracting_from_a_finished_process():
    """The envelope of a real command is read from its CompletedProcess."""
    code = 'import json; print(json.dumps({"ok": False, "error": {"code": "TIMEOUT", "retryable": True}})); exit(7)'
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert extract(done).code == "TIMEOUT"


def test_an_artifact_event_is_an_a2a_shape():
    """Design 9: the artifact event of an A2A 0.3 stream is recognised without `via`."""
    part = {"kind": "data", "data": {"adcp_error": {"code": "RATE_LIMITED"}}}
    event = {"kind": "artifact-update", "taskId": "t", "artifact": {"artifactId": "a", "parts": [part]}}
    via, reading = examine(event)
    assert (via, reading.path, reading.fault.code) == ("a2a", "artifact", "RATE_LIMITED")
    assert examine({"artifact": "v1.2.tar.gz"})[0] is None


REFUSED = {"code": "BUDGET_TOO_LOW", "message": "Raise it", "field": "budget"}


@pytest.mark.parametrize("recovery", [{"recovery": "correctable"}, {}])
@pytest.mark.parametrize(
    ("document", "fatal"),
    [
        ({}, True),
        ({"status": "failed"}, True),
        ({"status": "rejected", "task_id": "t"}, True),
        ({"status": "completed"}, False),
        ({"status": "input-required"}, False),
        ({"media_buy_id": "mb_1"}, False),
    ],
)
def test_a_list_of_adcp_errors_is_no_vendors(document, fatal, recovery):
    """SendGrid has a list of errors with `field` and `message`, too. A remark on a success needs no action."""
    fault = extract({**document, "errors": [{**REFUSED, **recovery}]})
    assert (fault.code, fault.vocabulary, fault.field, fault.fatal) == (
        "BUDGET_TOO_LOW",
        "adcp",
        "budget",
        fatal,
    )
    assert decide(fault).action == ("fix" if fatal else "none")


@pytest.mark.parametrize(
    "document",
    [
        # An article.
        {"type": "article", "title": "Rivers", "status": "published", "detail": "About rivers"},
        # A ticket whose state is a number.
        {"type": "bug", "title": "Login fails", "status": 2, "detail": "With a new password"},
        {"type": "https://example.com/posts", "title": "Rivers", "status": "draft", "detail": "…"},
        # The task of a search engine.
        {
            "uid": 1,
            "indexUid": "movies",
            "status": "failed",
            "type": "documentAdditionOrUpdate",
            "error": {"message": "No id", "code": "missing_document_id", "type": "invalid_request"},
        },
        # A job of Microsoft Graph.
        {
            "@odata.type": "#microsoft.graph.bulkJob",
            "id": "1",
            "displayName": "drives",
            "drives": ["a"],
            "createdDateTime": "2024-11-05",
            "directoryObjectIds": [],
            "error": {"code": "EmailNotFound", "message": "…", "details": []},
        },
        # The result of a tool.
        {"command": "ls", "stdout": "total 0", "stderr": "", "exitCode": 0},
    ],
)
def test_documents_that_describe_something_are_no_failures(document):
    """A bare document needs more evidence than members with the names of one of our formats."""
    assert extract(document) is None


def test_a_failed_task_with_further_members_has_an_error_of_the_contract():
    document = {"id": "1", "status": "failed", "agent": "a", "error": {"code": "TIMEOUT", "message": "late"}}
    assert extract(document).code == "TIMEOUT"
    document["error"] = {"code": "own", "message": "…", "recoverable": False}
    assert extract(document).code == "own"
