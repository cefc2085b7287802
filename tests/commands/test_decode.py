"""`amends decode` as a real process (mappings M6)."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import Namespace
from random import Random

import msgspec
import pytest
from jsonschema import Draft202012Validator

from amends import Fault
from amends.carriers.extraction import VIAS, examine
from amends.carriers.report import report
from amends.commands.console import json_bytes
from amends.commands.decode import examined as examined_document
from amends.commands.view import Painter, report_lines
from amends.core.wire import read
from amends.schemas import schema
from amends.vectors import load, load_transport, load_vendors
from tests.each import each
from tests.fork_server import Forks

AMENDS = [sys.executable, "-m", "amends"]
RATE_LIMITED = {"code": "RATE_LIMITED", "message": "Slow down", "retry_after": 5, "recovery": "transient"}
TOOL_RESULT = {"isError": True, "content": [], "structuredContent": {"adcp_error": RATE_LIMITED}}


FORKS = Forks()
MAIN = "import runpy\nrunpy.run_module('amends', run_name='__main__', alter_sys=True)\n"


def amends(*arguments, stdin=b"", env=None):
    data = stdin if isinstance(stdin, bytes) else json.dumps(stdin).encode()
    return FORKS.run(MAIN, arguments, input=data, env=env)


def decoded(*arguments, stdin):
    done = amends("decode", *arguments, stdin=stdin)
    assert done.returncode == 0, done
    report = json.loads(done.stdout)
    Draft202012Validator(schema("decode")).validate(report)
    return report


def test_a_report_has_exactly_the_members_of_m6():
    """M6: ten members, the fault without its empty fields, the decisions with action, delay and reason."""
    report = decoded(stdin=TOOL_RESULT)
    assert list(report) == [
        *("found", "failed", "fatal", "via", "vendor", "path", "error", "fault"),
        *("decision", "decision_unsafe"),
    ]
    assert report["error"] == RATE_LIMITED
    assert report["fault"] == {
        "code": "RATE_LIMITED",
        "message": "Slow down",
        "recovery": "transient",
        "vocabulary": "adcp",
        "retry_after": 5,
        "actor": "caller",
        "executed": "no",
        "origin": {"dialect": "adcp", "path": "structuredContent"},
    }
    assert report["decision"] == {"action": "retry", "delay": 5, "reason": "hint"}


@pytest.mark.parametrize(
    ("document", "safe", "unsafe"),
    [
        ({"exit": None, "stdout": "", "stderr": "", "timed_out": True}, ("retry", 0), ("verify", None)),
        (
            {"exit": 9, "stdout": '{"ok": false, "error": {"code": "RATE_LIMITED"}}', "stderr": ""},
            ("retry", 5),
            ("retry", 5),
        ),
        ({"exit": 1, "stdout": "boom", "stderr": ""}, ("retry", 1), ("verify", None)),
        ({"exit": 0, "stdout": "fine", "stderr": ""}, ("generic", None), ("generic", None)),
    ],
)
def test_the_decision_depends_on_whether_a_repeat_is_safe(document, safe, unsafe):
    """M6: `decision` is for an operation that is safe to repeat, `decision_unsafe` for one that is not, --unsafe both."""
    for flags, (action, delay) in (((), safe), (("--unsafe",), unsafe)):
        report = decoded(*flags, stdin=document)
        assert (report["decision"]["action"], report["decision"]["delay"]) == (action, delay)
        assert (report["decision_unsafe"]["action"], report["decision_unsafe"]["delay"]) == unsafe


MAYBE = {"code": "TIMEOUT", "message": "m", "retryable": True, "executed": "maybe"}
RETRIABLE = {"title": "T", "detail": "D", "status": 503, "is_retriable": True, "retry_after_ms": 1500}
TOOL_MAYBE = {**TOOL_RESULT, "_meta": {"amends/fault": {"v": 1, "executed": "maybe"}}}
TASK_MAYBE = {
    "id": "t-1",
    "status": "failed",
    "error": {
        "code": "AGENT_BUSY",
        "recoverable": True,
        "details": {"amends": {"v": 1, "executed": "maybe"}},
    },
}


@each(
    ("document", "action"),
    [
        ({"ok": False, "error": MAYBE}, "verify"),
        ({"exit": 7, "stdout": json.dumps({"ok": False, "error": MAYBE}), "stderr": ""}, "verify"),
        (RETRIABLE | {"executed": "maybe"}, "verify"),
        (
            {"status": 503, "headers": {}, "body": json.dumps(RETRIABLE | {"executed": "maybe"})},
            "verify",
        ),
        (TOOL_MAYBE, "verify"),
        (TASK_MAYBE, "verify"),
        ({"status": 503, "headers": {}, "body": {"error": {"message": "x"}, "executed": "maybe"}}, "verify"),
        # The key of the call is shown.
        ({"ok": False, "error": MAYBE, "idempotency_key": "k-1"}, "retry"),
        ({**TOOL_MAYBE, "_meta": {**TOOL_MAYBE["_meta"], "amends/key": "k-1"}}, "retry"),
        (
            {
                "status": 503,
                "headers": {"idempotency-key": "k-1"},
                "body": RETRIABLE | {"executed": "maybe"},
            },
            "retry",
        ),
        ({"ok": False, "error": MAYBE, "idempotency_key": ""}, "verify"),
        # Nothing is stated.
        ({"ok": False, "error": {"code": "TIMEOUT", "retryable": True}}, "retry"),
        (RETRIABLE | {"executed": "no"}, "retry"),
    ],
)
def test_a_wire_that_states_executed_maybe(document, action):
    """M6: `verify` in both decisions, unless a key is shown, which changes nothing for an unsafe operation."""
    via, reading = examine(document)
    result = report(via, reading, document)
    assert result.decision.action == action
    if reading.fault.executed == "maybe":
        assert result.decision_unsafe.action == "verify"
    assert report(via, reading, document, safe=False).decision == result.decision_unsafe


def test_the_key_of_a_pasted_request():
    """M6: the request of `curl -v` output or a HAR file shows the key, too."""
    body = json.dumps(RETRIABLE | {"executed": "maybe"})
    curl = f"> POST /pay HTTP/1.1\n> Idempotency-Key: k-1\n>\n< HTTP/1.1 503 X\n<\n{body}"
    assert decoded(stdin=curl.encode())["decision"]["action"] == "retry"
    assert decoded(stdin=curl.replace("> Idem", "> Unidem").encode())["decision"]["action"] == "verify"
    response = {"status": 503, "headers": [], "content": {"text": body}}
    sent = [{"name": "idempotency-key", "value": "k-1"}]
    for headers, action in ((sent, "retry"), ([], "verify")):
        har = {"log": {"entries": [{"request": {"headers": headers}, "response": response}]}}
        assert decoded(stdin=har)["decision"]["action"] == action


def test_the_text_form_prints_the_careful_decision_first():
    """M6: the decision for an unsafe operation, then that for a safe one if it differs."""
    text = amends("decode", "--output", "text", stdin={"status": 503, "headers": {"Retry-After": "7"}}).stdout
    assert [line.split(": ")[:2] for line in text.decode().splitlines()[:2]] == [
        ["verify", "the call may have had its effect, and a repeat is not known to be safe"],
        ["where a repeat is safe", "retry in 7 s"],
    ]
    text = amends("decode", "--output", "text", stdin=TOOL_RESULT).stdout.decode()
    assert text.startswith("retry in 5 s: ")
    assert "where a repeat is safe" not in text


@each(
    "document",
    [
        {"id": "t", "contextId": "c", "kind": "task", "status": {"state": "failed"}},
        {"apiVersion": "v1", "kind": "Pod", "status": {"phase": "Failed"}},
        {"status": ["failed"]},
        {"status": {}},
        {"level": "error", "message": "failed", "status": {"a": 1}},
    ],
)
def test_a_status_that_is_an_object_or_a_list(document):
    """M6: exit 0 for whatever could be read."""
    assert decoded(stdin=document)["failed"] in {True, False}


@each("coding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_input_of_windows_and_terminals(coding):
    """M6: a document in UTF-16, or between the escape sequences of a terminal, is read like any other."""
    envelope = {"ok": False, "error": RATE_LIMITED | {"message": "m"}}
    text = json.dumps(envelope)
    for document in (text, f"\x1b[31m{text}\x1b[0m\n", f"\x1b[2Kworking\n\x1b[31m{text}\x1b[0m\n"):
        assert decoded(stdin=document.encode(coding))["error"] == envelope["error"]
    http = "\x1b[34mHTTP/1.1 503 X\x1b[0m\r\n\x1b[1mRetry-After\x1b[0m: 7\r\n\r\n".encode(coding)
    assert decoded(stdin=http)["fault"]["retry_after"] == 7


def test_every_vector_mutated():
    """M6: whatever is read has a report, with every via, of the right types and printable as JSON and as text."""
    random = Random(41)
    vias = (None, None, None, *VIAS)
    documents = [
        vector.response
        for vector in (*load(), *load_transport(), *load_vendors())
        if isinstance(vector.response, dict)
    ]
    encoder = msgspec.json.Encoder()
    for document in documents:
        for path in random.sample(paths := list(paths_in(document)), min(len(paths), 5)):
            options = Namespace(
                via=random.choice(vias),
                vendor=random.choice((None, None, "aws")),
                in_success=random.random() < 0.2,
            )
            mutant = mutated(read(encoder.encode(document)), path, random.choice(STRANGE))
            result = report(*examined_document(mutant, options))
            check_types(result.fault)
            assert json_bytes(result)
            assert report_lines(result, Painter(on=False))


STRANGE = (
    {},
    [],
    [1],
    {"a": 1},
    [[]],
    [{"error": {}}],
    {"code": {}},
    None,
    True,
    5,
    -1.5,
    1e300,
    "",
    "x",
    "503",
)


def paths_in(value, path=()):
    """Yield the paths of all values in a document."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield from paths_in(item, (*path, name))


def mutated(document, path, new):
    """Return the document with another value at the path."""
    if not path:
        return new
    parent = document
    for name in path[:-1]:
        parent = parent[name]
    parent[path[-1]] = new
    return document


def check_types(fault):
    """Check that a fault has the types of its fields."""
    if fault is not None:
        msgspec.convert(msgspec.to_builtins(fault), Fault)


def test_a_field_that_is_no_text():
    """A member of the wrong type counts as absent, also in the answers of one service."""
    errors = [{"field": {"a": 1}, "message": "m", "code": "BLANK"}]
    body = {"data": {"productUpdate": {"product": None, "userErrors": errors}}}
    report = decoded("--in-success", stdin={"status": 200, "headers": {}, "body": body})
    assert report["vendor"] == "shopify"
    assert "field" not in report["fault"]


def test_no_ceilings_and_no_jitter():
    """M6: retry_after 86400 → retry, 3600."""
    report = decoded("--via", "adcp", stdin=RATE_LIMITED | {"retry_after": 86400})
    assert report["decision"] == {"action": "retry", "delay": 3600, "reason": "hint"}
    assert report["fault"]["retry_after"] == 86400


def test_success_is_generic():
    """M6: if nothing is found, also for a success, the action is generic."""
    report = decoded("--via", "mcp", stdin={"content": [{"type": "text", "text": "ok"}]})
    assert (report["found"], report["failed"], report["fatal"]) == (False, False, False)
    assert report["decision"]["action"] == "generic"


def test_empty_fields_are_left_out_and_received_values_kept():
    """M6: empty details are in `error` as received and not in `fault`."""
    report = decoded("--via", "adcp", stdin=RATE_LIMITED | {"details": {}})
    assert "details" not in report["fault"]
    assert report["error"]["details"] == {}


@pytest.mark.parametrize("text", [b"", b"{", b"nope", b'{"a": 1}\n}', b"\xff\xfe"])
def test_malformed_json(text):
    """Malformed JSON is a VALIDATION_ERROR with exit 2 and the line number."""
    done = amends("decode", stdin=text)
    envelope = json.loads(done.stdout)
    Draft202012Validator(schema("envelope")).validate(envelope)
    assert done.returncode == 2
    assert envelope["error"]["code"] == "VALIDATION_ERROR"
    assert envelope["error"]["details"]["line"] == text.count(b"\n") + 1


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbf" + json.dumps(RATE_LIMITED).encode(),
        b'{"code": "RATE_LIMITED", "retry_after": NaN, "recovery": "transient"}',
        b'{"code": "RATE_LIMITED", "retry_after": 1e400, "recovery": "transient"}',
        b'{"code": "RATE_LIMITED", "message": "\\ud800", "recovery": "transient"}',
        b'{"code": "RATE_LIMITED", "message": "\\ud800", "recovery": "transient", "retry_after": NaN, "more": [1e400]}',
        b'{"code": "RATE_LIMITED", "retry_after": ' + b"9" * 5000 + b', "recovery": "transient"}',
    ],
)
def test_documents_are_read_tolerantly(text):
    """M6: a byte-order mark, NaN, Infinity, 1e400 and lone surrogates are accepted; such numbers count as absent."""
    report = decoded(stdin=text)
    assert report["found"]
    assert report["decision"]["action"] == "retry"


def test_a_document_nested_too_deep():
    """M6: ten thousand levels: exit 0, nothing found."""
    report = decoded(stdin=b'{"a":' * 10_000 + b"1" + b"}" * 10_000)
    assert not report["found"]


def test_jsonl():
    """M6: one line out per line in; blank lines are skipped, an unreadable line gives an envelope, and the exit code is 2."""
    good = json.dumps(TOOL_RESULT).encode()
    done = amends("decode", "--jsonl", stdin=b"\n".join([good, b"", b"   ", b"nope", b'{"ok": true}', good]))
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 2
    assert [answer.get("found", answer.get("ok")) for answer in answers] == [True, False, False, True]
    assert answers[1]["error"]["details"]["line"] == 4


def test_a_line_over_the_limit():
    """M6: a line over 8 MiB is unreadable and not kept in memory; the next line is read."""
    long = b'{"x": "' + b"a" * (8 * 1024 * 1024) + b'"}'
    done = amends("decode", "--jsonl", stdin=long + b"\n" + json.dumps(TOOL_RESULT).encode() + b"\n" + long)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 2
    assert [answer.get("found") for answer in answers] == [None, True, None]
    assert [answers[0]["error"]["details"]["line"], answers[2]["error"]["details"]["line"]] == [1, 3]


def test_results_of_a_slow_producer():
    """Each line gets its result at once, not at the end of the stream."""
    with subprocess.Popen(
        [*AMENDS, "decode", "--jsonl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        for _ in range(3):
            process.stdin.write(json.dumps(TOOL_RESULT).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["found"]
        process.stdin.close()
        assert process.wait(10) == 0


def test_lone_surrogates_survive_a_stream():
    """Text that is not valid UTF-8 is escaped and does not end the stream."""
    line = b'{"code": "X", "message": "\\ud800"}'
    done = amends("decode", "--jsonl", "--via", "adcp", stdin=line + b"\n" + line)
    assert done.returncode == 0
    assert [json.loads(answer)["fault"]["message"] for answer in done.stdout.splitlines()] == [
        "\ud800",
        "\ud800",
    ]


def test_a_file_can_be_named(tmp_path):
    """FILE instead of stdin; an unreadable file is a VALIDATION_ERROR."""
    path = tmp_path / "response.json"
    path.write_text(json.dumps(TOOL_RESULT))
    assert json.loads(amends("decode", str(path)).stdout)["found"]
    missing = amends("decode", str(tmp_path / "nowhere.json"))
    assert missing.returncode == 2
    assert json.loads(missing.stdout)["error"]["field"] == "FILE"


def test_a_reader_that_closes_the_pipe():
    """A broken pipe ends the command with 141 and no traceback."""
    lines = (json.dumps(TOOL_RESULT) + "\n").encode() * 20_000
    done = subprocess.run(
        f"{sys.executable} -m amends decode --jsonl | head -1; exit ${{PIPESTATUS[0]}}",
        input=lines,
        capture_output=True,
        shell=True,
        executable="/bin/bash",
        timeout=60,
    )
    assert done.returncode in {141, -13}
    assert b"Traceback" not in done.stderr
