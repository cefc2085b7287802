"""What every bound command line answers, whichever framework it is written in: real processes, real signals."""

import http.server
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.bindings.commands import ENV, FRAMEWORKS, answer, argv, sample
from tests.terminal import at_a_terminal

EACH = pytest.mark.parametrize("framework", FRAMEWORKS)
PARSING = pytest.mark.parametrize("framework", ["click", "typer", "argparse"])


@EACH
def test_a_success_carries_data_and_meta(framework):
    """C1, C10: {ok, data, error: null, meta}, and what the command printed is on stderr."""
    code, envelope = answer(framework, "show", "bob")
    assert code == 0
    assert envelope["data"] == {"name": "bob", "count": 1, "color": "red"}
    assert (envelope["meta"]["attempt"], envelope["meta"]["max_attempts"]) == (1, 1)
    assert len(envelope["meta"]["trace_id"]) == 32


@EACH
def test_in_text_the_command_has_its_stdout(framework):
    """Nobody asked for JSON: what it prints is what there is, also in a pipe."""
    done = sample(framework, "show", "bob")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"bob is shown\n", b"")


@EACH
def test_nothing_else_reaches_stdout(framework):
    """C1: print, sys.stdout, file descriptor 1, a child process and a C library's buffer all end up on stderr."""
    done = sample(framework, "noise", "--output", "json")
    assert json.loads(done.stdout)["data"] == ["quiet"]
    for words in (b"printed", b"written", b"descriptor", b"from a child", b"from C"):
        assert words in done.stderr


@pytest.mark.parametrize("framework", ["click", "argparse"])
@pytest.mark.parametrize(
    ("kind", "code", "exit", "retryable"),
    [
        ("limited", "RATE_LIMITED", 9, True),
        ("missing", "NOT_FOUND", 4, False),
        ("own", "OUT_OF_STOCK", 6, False),
        ("unauthenticated", "PERMISSION_DENIED", 8, False),
        ("value", "INTERNAL_ERROR", 1, "maybe"),
        ("timeout", "TIMEOUT", 7, True),
        ("reset", "SERVICE_UNAVAILABLE", 12, True),
        ("group", "SERVICE_UNAVAILABLE", 12, True),
        ("exit-text", "INTERNAL_ERROR", 1, "maybe"),
        ("interrupt", "INTERNAL_ERROR", 130, False),
        ("9", "RATE_LIMITED", 9, True),
        ("42", "INTERNAL_ERROR", 42, "maybe"),
        ("256", "INTERNAL_ERROR", 1, "maybe"),
        ("143", "INTERNAL_ERROR", 143, False),
    ],
)
def test_failures_and_exits(framework, kind, code, exit, retryable):
    """C1, C7: raised faults, foreign exceptions, explicit exits and interrupts, each with its code and number."""
    number, envelope = answer(framework, "fail", kind)
    error = envelope["error"]
    assert (error["code"], number, error["retryable"]) == (code, exit, retryable)
    if retryable is not False:
        assert error["retry_strategy"] in {"exponential_backoff", "immediate"}
        assert error["max_retries"] >= 1
    if code == "RATE_LIMITED":
        assert error["retry_after_ms"] == (7000 if kind == "limited" else 5000)
    assert "phase" not in error


@pytest.mark.parametrize("framework", ["click", "argparse"])
@pytest.mark.parametrize(("kind", "output"), [("value", "text"), ("reset", "json"), ("group", "problem")])
def test_no_foreign_text_leaves(framework, kind, output):
    """The text of an exception stays inside, in every output; --debug shows it on stderr only."""
    done = sample(framework, "fail", kind, "--output", output)
    assert b"secret" not in done.stdout + done.stderr
    debugged = sample(framework, "fail", kind, "--output", output, "--debug")
    assert b"secret" not in debugged.stdout
    assert b"Traceback" in debugged.stderr
    assert debugged.returncode == done.returncode


@EACH
def test_exit_zero_is_a_success(framework):
    """Leaving with 0 anywhere is a success without data."""
    code, envelope = answer(framework, "fail", "0")
    assert (code, envelope["ok"], envelope["data"]) == (0, True, None)


@pytest.mark.parametrize("framework", ["guard"])
@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("nan", {"value": None, "text": "lone \ud800"}),
        ("dates", {"when": "2026-01-01T00:00:00Z", "3": "key"}),
        ("object", None),
        ("cycle", None),
    ],
)
def test_results_that_are_no_json(framework, kind, data):
    """A command that succeeded is never reported as failed because of its result: what cannot be written is left out."""
    code, envelope = answer(framework, "odd", kind)
    assert (code, envelope["data"]) == (0, data)
    assert ("warnings" in envelope) is (data is None)


@EACH
def test_the_environment_chooses_and_the_flag_wins(framework):
    """AMENDS_OUTPUT=json is --output json; the flag is nearer."""
    done = sample(framework, "show", "bob", env={"AMENDS_OUTPUT": "json"})
    assert json.loads(done.stdout)["ok"] is True
    done = sample(framework, "show", "bob", "--output=text", env={"AMENDS_OUTPUT": "json"})
    assert done.stdout == b"bob is shown\n"


@EACH
def test_the_problem_document(framework):
    """--output problem prints S1's document with the same exit code."""
    done = sample(framework, "fail", "limited", "--output", "problem")
    problem = json.loads(done.stdout)
    assert (done.returncode, problem["status"], problem["retry_after_ms"]) == (9, 429, 7000)


@pytest.mark.parametrize("framework", ["guard"])
def test_the_callers_trace_goes_on(framework):
    """A W3C traceparent in the environment is the answer's trace id; a broken one is not."""
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    _, envelope = answer(framework, "show", "bob", env={"TRACEPARENT": f"00-{trace}-00f067aa0ba902b7-01"})
    assert envelope["meta"]["trace_id"] == trace
    _, envelope = answer(framework, "show", "bob", env={"TRACEPARENT": "00-nonsense-00-01"})
    assert envelope["meta"]["trace_id"] != "nonsense"


@pytest.mark.parametrize("framework", ["click", "argparse"])
@pytest.mark.parametrize(
    "words", [["--output", "yaml"], ["--output"], ["--retries", "many"], ["--retries=101"]]
)
def test_mistakes_in_our_own_flags(framework, words):
    """A wrong value of --output or --retries is a bad value (exit 2), told before anything ran."""
    done = sample(framework, "show", "bob", *words, env={"AMENDS_OUTPUT": "json"})
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["code"], error["phase"]) == (2, "VALIDATION_ERROR", "validation")
    assert error["field"] == words[0].partition("=")[0]


def test_after_two_dashes_nothing_is_ours():
    """What follows -- belongs to the command."""
    done = sample("click", "many", "--", "z", "--output", "json")
    assert done.returncode == 0
    assert done.stdout == b""


# Signals and pipes -----------------------------------------------------------------------------------------------


def started(framework, path, *words):
    process = subprocess.Popen(
        argv(framework, "slow", path, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV
    )
    end = time.monotonic() + 30
    while not path.exists() or path.read_text() != "started":
        assert time.monotonic() < end
        time.sleep(0.02)
    return process


@EACH
@pytest.mark.parametrize(
    ("number", "exit", "output"),
    [(signal.SIGINT, 130, "text"), (signal.SIGTERM, 143, "json"), (signal.SIGINT, 130, "json")],
)
def test_signals(framework, number, exit, output, tmp_path):
    """C1: a signal ends the command through its `finally`, with one whole answer and the shell's number."""
    process = started(framework, tmp_path / "state", "--output", output)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == exit
    assert (tmp_path / "state").read_text() == "cleaned up"
    if output == "json":
        assert json.loads(out)["error"]["retryable"] is False
    else:
        assert out == b""
        assert b"INTERNAL_ERROR" in err
        assert b"Traceback" not in err


@EACH
def test_a_reader_that_left(framework):
    """SIGPIPE: a command whose reader has gone ends quietly with 141."""
    process = subprocess.Popen(
        argv(framework, "big"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV
    )
    process.stdout.read(100)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(30) == 141
    process.stderr.close()


@pytest.mark.parametrize("framework", ["click", "guard"])
@pytest.mark.parametrize(("words", "exit"), [(["show", "bob"], 141), (["fail", "limited"], 9)])
def test_an_answer_that_nobody_reads(framework, words, exit):
    """JSON into a closed pipe: 141 for a success, and a failure keeps its number."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        done = subprocess.run(
            argv(framework, *words, "--output", "json"),
            stdout=pipe,
            stderr=subprocess.PIPE,
            env=ENV,
            timeout=60,
        )
    assert done.returncode == exit


@pytest.mark.parametrize("framework", ["click", "argparse"])
def test_a_stdout_that_is_full_or_closed(framework):
    """An answer that cannot be written is said on stderr, and a success is no success then."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            argv(framework, "show", "bob", "--output", "json"),
            stdout=full,
            stderr=subprocess.PIPE,
            env=ENV,
            timeout=60,
        )
    assert done.returncode == 1
    assert b"could not be written" in done.stderr
    words = " ".join(argv(framework, "show", "bob", "--output", "json"))
    done = subprocess.run(["sh", "-c", f"{words} >&-"], capture_output=True, env=ENV, timeout=60)
    assert done.returncode == 1
    done = subprocess.run(["sh", "-c", f"{words} 2>&-"], capture_output=True, env=ENV, timeout=60)
    assert (done.returncode, json.loads(done.stdout)["ok"]) == (0, True)


def test_a_pipe_that_does_not_block():
    """A stdout somebody made non-blocking still gets the whole answer."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    process = subprocess.Popen(
        argv("guard", "later", "x" * 100_000, "--output", "json"),
        stdout=write,
        stderr=subprocess.PIPE,
        env=ENV,
    )
    os.close(write)
    time.sleep(0.5)
    with os.fdopen(read, "rb") as pipe:
        envelope = json.loads(pipe.read())
    assert process.wait(30) == 0
    process.stderr.close()
    assert len(envelope["data"]["argv"][1]) == 100_000


# For people ------------------------------------------------------------------------------------------------------


@EACH
def test_a_person_sees_the_fix_first_and_in_colour(framework):
    """On a terminal: the next step, then what happened; a few lines, no traceback, no JSON."""
    env = {**{name: value for name, value in ENV.items() if name != "NO_COLOR"}, "TERM": "xterm"}
    code, seen = at_a_terminal(argv(framework, "fail", "missing"), env=env)
    assert code == 4
    lines = seen.splitlines()
    assert lines[0] == "\x1b[1mList them\x1b[0m"
    assert "NOT_FOUND" in lines[1]
    assert "No such order" in lines[1]
    assert len(lines) == 2


# Upstreams -------------------------------------------------------------------------------------------------------


@pytest.fixture
def service():
    """A loopback service: /429, /503, … answer that, with the words of a stranger; counts its requests."""
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.path)
            body = b'{"title": "secret-host.internal", "detail": "secret", "status": 0, "suggestions": ["secret"]}'
            status = int(self.path.strip("/"))
            self.send_response(status)
            self.send_header(
                "Content-Type", "application/problem+json" if status > 399 else "application/json"
            )
            self.send_header("Content-Length", str(len(body)))
            if status in {429, 503}:
                self.send_header("Retry-After", "3" if status == 429 else "0")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", seen
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("framework", ["click", "argparse"])
@pytest.mark.parametrize(
    ("status", "code", "exit"),
    [
        (429, "RATE_LIMITED", 9),
        (503, "SERVICE_UNAVAILABLE", 12),
        (401, "PERMISSION_DENIED", 8),
        (404, "NOT_FOUND", 4),
        (422, "VALIDATION_ERROR", 2),
    ],
)
def test_an_upstreams_failure_is_told_in_our_words(framework, status, code, exit, service):
    """C3: the code by the status, the wait from Retry-After, and nothing of the upstream's text."""
    url, _ = service
    number, envelope = answer(framework, "upstream", f"{url}/{status}")
    assert (number, envelope["error"]["code"]) == (exit, code)
    assert envelope["error"].get("retry_after_ms") == {429: 3000, 503: 0}.get(status)
    assert "secret" not in json.dumps(envelope)


def test_what_recovery_gave_up_on(service):
    """C10: tries that the command itself made count in meta, and the upstream's words stay out."""
    url, seen = service
    number, envelope = answer("click", "recovered", f"{url}/503")
    assert (number, len(seen)) == (12, 2)
    assert (envelope["meta"]["attempt"], envelope["meta"]["max_attempts"]) == (2, 2)
    assert "secret" not in json.dumps(envelope)


# Retries (C9) ----------------------------------------------------------------------------------------------------


@EACH
def test_retries_of_a_command_that_changes_nothing(framework, tmp_path):
    """C9, C10: --retries N repeats by the fault's own wait, and meta says how often."""
    path = tmp_path / "runs"
    code, envelope = answer(framework, "flaky", path, 2, "--retries", "3")
    assert (code, envelope["data"]) == (0, {"runs": 3})
    assert (envelope["meta"]["attempt"], envelope["meta"]["max_attempts"]) == (3, 4)
    path.unlink()
    code, envelope = answer(framework, "flaky", path, 9, "--retries", "2")
    assert (code, path.read_text()) == (9, "3")
    assert (envelope["meta"]["attempt"], envelope["meta"]["max_attempts"]) == (3, 3)
    path.unlink()
    code, envelope = answer(framework, "flaky", path, 9)
    assert (code, path.read_text(), envelope["meta"]["max_attempts"]) == (9, "1", 1)


@PARSING
def test_retries_with_a_key(framework, tmp_path):
    """C9: a keyed command gets one key for all its tries."""
    code, envelope = answer(framework, "keyed", tmp_path / "keys", "--retries", "2")
    keys = (tmp_path / "keys").read_text().splitlines()
    assert (code, envelope["meta"]["attempt"], len(keys), len(set(keys))) == (12, 3, 3, 1)
    assert keys[0] != "None"


@EACH
def test_retries_are_refused_for_all_other_commands(framework):
    """C9: a command that does not say a repeat is safe is not even run."""
    code, envelope = answer(framework, "show", "bob", "--retries", "2")
    assert (code, envelope["error"]["field"], envelope["error"]["phase"]) == (2, "--retries", "validation")
