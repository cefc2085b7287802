"""A peer's text writes no line of its own into a log, a note or a terminal, and names no file."""

import ast
import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from amends import FaultError, Policy, extract, recover
from amends.bindings.starlette import install
from amends.commands.runtime import saved_sessions
from amends.http.raising import original_of
from amends.logs import logger
from amends.tasks.events import TaskEvent
from amends.tasks.events import log_event as log_task
from tests.terminal import at_a_terminal

ROOT = Path(__file__).parents[2]
FORGED = "X\nERROR forged\r\x1b[2K\x1b]0;title\x07\u202e\x9b31m\u2028\x85\u200b\ud800"
DIRTY = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\ud800-\udfff]|\nERROR")
"""Characters of FORGED. A line break is allowed where lines of our own end."""
WITHOUT_RECEIVED = {"core/recording.py", "logs.py"}
"""They log constant texts only; `core` is below the module with the loggers."""


def problem():
    """Return what a hostile service answers, as a Fault."""
    names = ("type", "title", "detail", "code", "trace_id", "field", "instance")
    body = {name: FORGED for name in names} | {"status": 503, "is_retriable": True, "retry_after_ms": 1}
    body |= {"doc_uri": "https://x.example/" + FORGED, "suggestions": [FORGED], "details": {FORGED: FORGED}}
    headers = {"content-type": "application/problem+json"}
    return extract({"status": 503, "headers": headers, "body": body})


class Lines(logging.Handler):
    """Keeps formatted lines and records."""

    def __init__(self):
        super().__init__()
        self.lines, self.records = [], []

    def emit(self, record):
        self.lines.append(logging.Formatter("%(levelname)s %(name)s %(message)s").format(record))
        self.records.append(record)


@pytest.fixture
def lines():
    handler, log = Lines(), logging.getLogger("amends")
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    yield handler
    log.removeHandler(handler)
    log.setLevel(before)


def test_every_logger_cleans():
    """Modules get their loggers from `amends.logs`; only commands ask for one to set its level."""
    wrong = []
    for path in (ROOT / "src" / "amends").rglob("*.py"):
        name = path.relative_to(ROOT / "src" / "amends").as_posix()
        if name in WITHOUT_RECEIVED:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in {
                "debug",
                "info",
                "warning",
                "error",
                "exception",
            }:
                value = node.value
                if (isinstance(value, ast.Name) and value.id == "logging") or (
                    isinstance(value, ast.Call) and getattr(value.func, "attr", "") == "getLogger"
                ):
                    wrong.append(f"{name}:{node.lineno}")
            assigned = isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            if assigned and getattr(node.value.func, "attr", "") == "getLogger":
                levels = {"audit/surfaces/proxy.py", "demo/comparison.py"}
                if name not in levels:
                    wrong.append(f"{name}:{node.lineno}")
    assert wrong == []


def test_log_lines_and_notes_of_recovery(lines):
    """The code, the trace id, the address and the operation's name; the record's fields and the fault stay whole."""
    fault = problem()

    def call():
        raise FaultError.from_fault(fault)

    with pytest.raises(FaultError) as failed:
        recover(call, policy=Policy(attempts=2))
    error = failed.value
    assert len(lines.lines) == 2
    texts = [*lines.lines, *error.__notes__, str(error), repr(error)]
    assert [text for text in texts if DIRTY.search(text) or "\n" in text] == []
    assert [text for text in str(error.history).split("\n") if DIRTY.search(text)] == []
    assert len(str(error.history).split("\n")) == 3
    assert (error.fault.code, error.fault.trace_id) == (FORGED, FORGED)
    assert lines.records[0].amends["trace_id"][:-1] == FORGED[:-1]
    error.__notes__.clear()
    error.__cause__ = OSError()
    assert not DIRTY.search(original_of(error).__notes__[0])


def test_log_lines_of_tasks(lines):
    """What an agent reports as its code."""
    log_task(TaskEvent(kind="failed", task=FORGED, agent=FORGED, code=FORGED, trace=FORGED, at=0.0))
    assert [line for line in lines.lines if DIRTY.search(line) or "\n" in line] == []


@pytest.mark.parametrize("wrap", [str, ValueError])
def test_values_of_any_line(lines, wrap):
    """Texts and exceptions are cleaned and cut; numbers and mappings keep working."""
    log = logger("amends.test")
    log.warning("%s has %d of %.1f", wrap(FORGED), 3, 0.5)
    log.warning("%(name)s %(number)d", {"name": FORGED, "number": 3})
    log.warning("%s", wrap("x" * 100_000))
    log.warning("nothing")
    assert [line for line in lines.lines if DIRTY.search(line) or "\n" in line] == []
    assert lines.lines[0].endswith("has 3 of 0.5")
    assert len(lines.lines[2]) < 1100
    assert logger("amends.test").filters.count(log.filters[0]) == 1


async def test_log_lines_of_a_server(lines):
    """The path and the method of a request, and what a failing service behind it said."""

    async def fail(_):
        raise FaultError.from_fault(problem())

    app = Starlette(routes=[Route("/{rest:path}", fail, methods=["GET", "X"])])
    install(app)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as caller:
        headers = {"traceparent": "00-x\x1b[2K", "x-request-id": "\x9b"}
        await caller.get(
            "/a%0aERROR%1b%5b2K%e2%80%ae", headers={k: v.encode("latin-1") for k, v in headers.items()}
        )
    assert lines.lines
    first = [line.split("\n")[0] for line in lines.lines]
    assert [line for line in first if DIRTY.search(line)] == []


def test_pythons_last_resort_handler():
    """Without any handler, the lines go to standard error, which is a terminal."""
    code = (
        "import json, sys; from amends import *\n"
        "f = extract(json.load(sys.stdin))\n"
        "def call(): raise FaultError.from_fault(f)\n"
        "recover(call, policy=Policy(attempts=1))\n"
    )
    headers = {"content-type": "application/problem+json"}
    body = {
        "code": FORGED[:-1],
        "trace_id": FORGED[:-1],
        "detail": FORGED[:-1],
        "status": 400,
        "doc_uri": "https://x/\x1b[2K",
    }
    given = json.dumps({"status": 400, "headers": headers, "body": body})
    done = subprocess.run(
        [sys.executable, "-c", code], input=given, capture_output=True, text=True, check=False
    )
    assert "gave-up operation" in done.stderr
    assert "amends: called" in done.stderr
    assert not DIRTY.search(done.stderr)


def test_terminals(tmp_path):
    """Recorded and pasted failures, shown by the commands."""
    text = FORGED[:-1]
    body = {
        "code": text,
        "trace_id": text,
        "detail": text,
        "status": 503,
        "details": {text: text},
        text: text,
    }
    file = tmp_path / "answer.json"
    file.write_text(
        json.dumps({"status": 503, "headers": {"content-type": "application/problem+json"}, "body": body})
    )
    url = f"sqlite:///{tmp_path}/r.db"
    emit = (
        "import json, sys, amends; from amends.core import recording\n"
        f"fault = amends.extract(json.load(open({str(file)!r})))\n"
        f"x = {text!r}\n"
        f"with amends.record({url!r}):\n"
        "    for trace in (x, 'ab' * 16):\n"
        "        recording.emit('call', 'gave-up', fault, name=x, url='https://h/' + x, upstream=x, vendor=x, trace_id=trace)\n"
    )
    subprocess.run([sys.executable, "-c", emit], check=True)
    env = {**os.environ, "TERM": "xterm", "AMENDS_RECORD": url}
    for command in (("decode", str(file)), ("watch", "--no-follow"), ("trace", "ab" * 16), ("explain", text)):
        _, shown = at_a_terminal([sys.executable, "-m", "amends", *command], env=env)
        shown = re.sub(r"\x1b\[[\d;]*m|\r\n", "", shown)
        assert not DIRTY.search(shown.replace("\r", "")), command


@pytest.mark.parametrize("name", ["../x", "a/b", "a\x00", "\x1b[2K", "", "x" * 101, "é", ".", "a\n"])
def test_a_peers_name_is_no_file(name, tmp_path, monkeypatch):
    """The id of a job comes from the runtime: only letters, digits, dashes and underscores name a file."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    saved_sessions.keep(name, "ws://x", None)
    assert list(tmp_path.rglob("*.json")) == []
    assert saved_sessions.find(name, "ws://x") is None
