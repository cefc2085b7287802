"""The documents and exit codes of bound commands, for every framework, with real processes and signals."""

import fcntl
import http.server
import json
import os
import signal
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import pytest

from amends import Fault, extract
from amends.cli.command_errors import as_cli_fault
from amends.cli.documents import failure
from amends.http.pages import page
from tests.bindings.commands import APPS, ENV, FORKS, FRAMEWORKS, argv, run_json, run_sample
from tests.ports import free_port
from tests.terminal import at_a_terminal

EACH = pytest.mark.parametrize("framework", FRAMEWORKS)
PARSING = pytest.mark.parametrize("framework", ["click", "typer", "argparse"])


@EACH
def test_a_success_carries_data_and_meta(framework):
    """C1, C10: {ok, data, error: null, meta}; the command's printed text is on stderr."""
    code, envelope = run_json(framework, "show", "bob")
    assert code == 0
    assert envelope["data"] == {"name": "bob", "count": 1, "color": "red"}
    assert (envelope["meta"]["attempt"], envelope["meta"]["max_attempts"]) == (1, 1)
    assert len(envelope["meta"]["trace_id"]) == 32


@EACH
def test_text_output_passes_stdout_through(framework):
    """Without --output json the command's own stdout passes through, in a pipe too."""
    done = run_sample(framework, "show", "bob")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"bob is shown\n", b"")


@EACH
def test_nothing_else_reaches_stdout(framework):
    """C1: print, sys.stdout, file descriptor 1, a child process and a C library's buffer all end up on stderr."""
    done = run_sample(framework, "noise", "--output", "json")
    assert json.loads(done.stdout)["data"] == ["quiet"]
    for text in (b"printed", b"written", b"descriptor", b"from a child", b"from C"):
        assert text in done.stderr


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
        ("reset", "NETWORK_ERROR", 12, True),
        ("group", "NETWORK_ERROR", 12, True),
        ("exit-text", "INTERNAL_ERROR", 1, "maybe"),
        ("interrupt", "INTERNAL_ERROR", 130, False),
        ("9", "INTERNAL_ERROR", 9, "maybe"),
        ("7", "INTERNAL_ERROR", 7, "maybe"),
        ("2", "INTERNAL_ERROR", 2, "maybe"),
        ("42", "INTERNAL_ERROR", 42, "maybe"),
        ("256", "INTERNAL_ERROR", 1, "maybe"),
        ("143", "INTERNAL_ERROR", 143, False),
    ],
)
def test_failures_and_exits(framework, kind, code, exit, retryable):
    """C1, C7: raised faults, foreign exceptions, explicit exits and interrupts, each with its code and exit code."""
    number, envelope = run_json(framework, "fail", kind)
    error = envelope["error"]
    assert (error["code"], number, error["retryable"]) == (code, exit, retryable)
    if retryable is not False:
        assert error["retry_strategy"] in {"exponential_backoff", "immediate"}
        assert error["max_retries"] >= 1
    if code == "RATE_LIMITED":
        assert error["retry_after_ms"] == 7000
    assert "phase" not in error


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_text_of_an_error_in_a_task_group(framework):
    """An error that a task group wraps is the author's own error."""
    code, envelope = run_json(framework, "fail", "task group")
    assert (code, envelope["error"]["message"]) == (4, "No such order")


@pytest.mark.parametrize("framework", ["click", "argparse"])
@pytest.mark.parametrize(("kind", "output"), [("value", "text"), ("reset", "json"), ("group", "problem")])
def test_no_foreign_text_leaves(framework, kind, output):
    """The text of an exception is in no output; --debug prints it to stderr only."""
    done = run_sample(framework, "fail", kind, "--output", output)
    assert b"secret" not in done.stdout + done.stderr
    debugged = run_sample(framework, "fail", kind, "--output", output, "--debug")
    assert b"secret" not in debugged.stdout
    assert b"Traceback" in debugged.stderr
    assert debugged.returncode == done.returncode


@EACH
@pytest.mark.parametrize("kind", ["lookup", "type", "json", "encoding", "value", "division"])
def test_bugs_inside_a_command(framework, kind, tmp_path):
    """M7: a bug is INTERNAL_ERROR, exit 1 and "maybe"; it is not repeated, and the message names --debug."""
    path = tmp_path / "file"
    code, envelope = run_json(framework, "broken", kind, path, "--retries", "3")
    error = envelope["error"]
    assert (code, error["code"], error["retryable"]) == (1, "INTERNAL_ERROR", "maybe")
    assert "--debug" in error["message"]
    assert "secret" not in json.dumps(envelope)
    assert Path(f"{path}.runs").read_text() == "run\n"


@EACH
def test_a_missing_file_is_named_if_it_is_an_argument(framework, tmp_path):
    """A path that the caller gave is named; any other path stays inside."""
    path = tmp_path / "orders.csv"
    for more in ([], ["--retries", "1"]):
        code, envelope = run_json(framework, "broken", "open", path, *more)
        assert (code, envelope["error"]["code"]) == (4, "NOT_FOUND")
        assert envelope["error"]["message"] == f"{path}: no such file or directory"
        code, envelope = run_json(framework, "broken", "elsewhere", path, *more)
        assert (code, envelope["error"]["code"]) == (4, "NOT_FOUND")
        assert "secret" not in json.dumps(envelope)
    path.mkdir()
    assert "it is a directory" in run_json(framework, "broken", "open", path)[1]["error"]["message"]


@pytest.mark.parametrize("framework", ["click", "argparse"])
@pytest.mark.parametrize("command", ["upstream", "recovered"])
def test_a_refused_connection(framework, command):
    """The CLI agent spec has a code for failures of the network."""
    code, envelope = run_json(framework, command, f"http://127.0.0.1:{free_port()}")
    assert (code, envelope["error"]["code"], envelope["error"]["retryable"]) == (12, "NETWORK_ERROR", True)


@EACH
def test_async_commands(framework, tmp_path):
    """An `async def` command runs on an event loop: its result, its failure, and --retries."""
    code, envelope = run_json(framework, "later", "none")
    assert (code, envelope["data"]) == (0, {"loop": True})
    code, envelope = run_json(framework, "later", "missing")
    assert (code, envelope["error"]["message"]) == (4, "No such order")
    code, envelope = run_json(framework, "flaky_later", tmp_path / "runs", 2, "--retries", "3")
    assert (code, envelope["data"], envelope["meta"]["attempt"]) == (0, {"runs": 3}, 3)


@EACH
def test_exit_zero_is_a_success(framework):
    """An explicit exit with 0 is a success without data."""
    code, envelope = run_json(framework, "fail", "0")
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
    """A result that cannot be written as JSON is left out with a warning; the command still succeeded."""
    code, envelope = run_json(framework, "odd", kind)
    assert (code, envelope["data"]) == (0, data)
    assert ("warnings" in envelope) is (data is None)


@EACH
def test_amends_output_and_the_flag(framework):
    """AMENDS_OUTPUT=json selects JSON like --output json; the flag overrides it."""
    done = run_sample(framework, "show", "bob", env={"AMENDS_OUTPUT": "json"})
    assert json.loads(done.stdout)["ok"] is True
    done = run_sample(framework, "show", "bob", "--output=text", env={"AMENDS_OUTPUT": "json"})
    assert done.stdout == b"bob is shown\n"


@EACH
def test_the_problem_document(framework):
    """--output problem prints a problem document with the same exit code."""
    done = run_sample(framework, "fail", "limited", "--output", "problem")
    problem = json.loads(done.stdout)
    assert (done.returncode, problem["status"], problem["retry_after_ms"]) == (9, 429, 7000)


@EACH
@pytest.mark.parametrize(
    "kind", ["limited", "missing", "unauthenticated", "timeout", "reset", "unavailable", "denied", "value"]
)
def test_the_three_outputs_say_the_same(framework, kind):
    """C1 to C5, P8: text, JSON and problem have the same message, fixes and wait; the problem has trace id, type and page."""
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    env = {"TRACEPARENT": f"00-{trace}-00f067aa0ba902b7-01"}
    text = run_sample(framework, "fail", kind, "--output", "text", env=env).stderr.decode()
    envelope = json.loads(run_sample(framework, "fail", kind, "--output", "json", env=env).stdout)
    problem = json.loads(run_sample(framework, "fail", kind, "--output", "problem", env=env).stdout)
    error = envelope["error"]
    shown = [line.removeprefix("  fix: ").strip() for line in text.splitlines()[1:]]
    assert shown == error["suggestions"] == problem["suggestions"] != []
    assert text.splitlines()[0] == f"error: {error['message']} ({error['code']})"
    assert (error["message"], error["code"]) == (problem["detail"], problem["code"])
    for name in ("retry_after_ms", "max_retries", "executed", "recovery", "retry_strategy", "actor"):
        assert error.get(name) == problem.get(name)
    assert problem["trace_id"] == envelope["meta"]["trace_id"] == trace
    assert (problem["type"], problem["attempt"], problem["max_attempts"]) == ("about:blank", 1, 1)
    if error["retryable"] is False:
        assert error["fix_required"] == shown[0]
    else:
        assert "fix_required" not in error
        assert ("retry_after_ms" in error) is (error["code"] != "TIMEOUT")


@pytest.mark.parametrize(
    ("code", "recovery", "wait"),
    [
        ("RATE_LIMITED", None, 5),
        ("SERVICE_UNAVAILABLE", None, 5),
        ("NETWORK_ERROR", None, 5),
        ("INTERNAL_ERROR", None, 1),
        ("TIMEOUT", None, None),
        ("EFFECT_UNKNOWN", "uncertain", None),
        ("SERVICE_UNAVAILABLE", "terminal", None),
        ("NOT_FOUND", None, None),
    ],
)
def test_waits_that_nobody_named(code, recovery, wait):
    """C3: the wait of the table; none where a repeat is not to wait or not to happen. It does not invite a repeat (M3)."""
    fault = Fault(code=code, vocabulary="cli", message="m", recovery=recovery)
    whole = as_cli_fault(Fault(code="INTERNAL_ERROR", vocabulary="cli", errors=(fault,)))
    for sent in (as_cli_fault(fault), whole.errors[0]):
        envelope = json.loads(failure(sent, {}, "json"))
        error = envelope["error"]
        assert (sent.retry_after, error.get("retry_after_ms")) == (wait, wait and wait * 1000)
        assert error["executed"] == fault.executed
        for document in (envelope, json.loads(failure(sent, {}, "problem"))):
            assert extract(document).executed is fault.executed


@EACH
def test_pages_about_the_codes(framework, tmp_path):
    """P4: with the option `docs`, `type` and `doc_uri` are the page about the code, as an HTTP binding serves it."""
    app = tmp_path / f"{framework}_app.py"
    source = (APPS / app.name).read_text()
    for call in ('main(app, name="sample"', "main(parser, run"):
        source = source.replace(call, f"{call}, docs='https://shop.example/errors'")
    with_docs = "@__import__('functools').partial(guard, docs='https://shop.example/errors')\n"
    source = source.replace("@guard\n", with_docs)
    app.write_text(f"import sys; sys.path.insert(0, {str(APPS)!r})\n{source}")
    done = FORKS[framework].run(app, ("fail", "missing", "--output", "problem"), env=ENV)
    problem = json.loads(done.stdout)
    assert problem["type"] == problem["doc_uri"] == "https://shop.example/errors/cli/not-found"
    assert page("/cli/not-found", "json") is not None


@pytest.mark.parametrize("framework", ["guard"])
def test_traceparent_is_the_trace_id(framework):
    """A valid W3C traceparent in the environment gives the envelope's trace id; a broken one is ignored."""
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    _, envelope = run_json(framework, "show", "bob", env={"TRACEPARENT": f"00-{trace}-00f067aa0ba902b7-01"})
    assert envelope["meta"]["trace_id"] == trace
    _, envelope = run_json(framework, "show", "bob", env={"TRACEPARENT": "00-nonsense-00-01"})
    assert envelope["meta"]["trace_id"] != "nonsense"


@pytest.mark.parametrize("framework", ["click", "argparse"])
@pytest.mark.parametrize(
    "arguments", [["--output", "yaml"], ["--output"], ["--retries", "many"], ["--retries=101"]]
)
def test_mistakes_in_the_common_options(framework, arguments):
    """An invalid value of --output or --retries is a bad value (exit 2), reported before the command runs."""
    done = run_sample(framework, "show", "bob", *arguments, env={"AMENDS_OUTPUT": "json"})
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["code"], error["phase"]) == (2, "VALIDATION_ERROR", "validation")
    assert error["field"] == arguments[0].partition("=")[0]


def test_arguments_after_two_dashes_belong_to_the_command():
    """--output after -- is not a common option."""
    done = run_sample("click", "many", "--", "z", "--output", "json")
    assert done.returncode == 0
    assert done.stdout == b""


# Signals and pipes -----------------------------------------------------------------------------------------------


def start_slow(framework, path, *arguments, command="slow"):
    """Start the `slow` command and wait until it runs."""
    process = subprocess.Popen(
        argv(framework, command, path, *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV
    )
    end = time.monotonic() + 30
    while not path.exists() or path.read_text() != "started":
        assert time.monotonic() < end
        time.sleep(0.02)
    return process


@EACH
@pytest.mark.parametrize("command", ["slow", "later"])
@pytest.mark.parametrize(
    ("number", "exit", "output"),
    [
        (signal.SIGINT, 130, "text"),
        (signal.SIGTERM, 143, "json"),
        (signal.SIGINT, 130, "json"),
        (signal.SIGHUP, 129, "json"),
    ],
)
def test_signals(framework, number, exit, output, command, tmp_path):
    """C1: a signal runs the command's `finally` and ends it with one complete document and the shell's exit code."""
    process = start_slow(framework, tmp_path / "state", "--output", output, command=command)
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
def test_a_reader_that_closed_the_pipe(framework):
    """A command whose reader closed the pipe exits with 141 and writes nothing to stderr."""
    process = subprocess.Popen(
        argv(framework, "big"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV
    )
    process.stdout.read(100)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(30) == 141
    process.stderr.close()


@EACH
@pytest.mark.parametrize("arguments", [["show", "bob"], ["fail", "limited"], ["--help"]], ids=" ".join)
@pytest.mark.parametrize("output", ["json", "problem", "text"])
def test_output_for_a_closed_pipe(framework, arguments, output):
    """A closed stdout is 141 for a success, a failure and the help. A failure in text writes nothing to stdout."""
    if framework == "guard" and arguments == ["--help"]:
        arguments = ["show", "--help"]  # guard leaves help to the function
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        done = subprocess.run(
            argv(framework, *arguments, "--output", output),
            stdout=pipe,
            stderr=subprocess.PIPE,
            env=ENV,
            timeout=60,
        )
    assert done.returncode == (9 if (output, arguments[0]) == ("text", "fail") else 141)
    assert b"Traceback" not in done.stderr
    assert b"BrokenPipe" not in done.stderr


@EACH
def test_a_failure_after_output_that_has_no_reader(framework):
    """Text that was printed before the failure could not be written, so the exit code is 141, not Python's own 120."""
    read, write = os.pipe()
    os.close(read)
    env = {name: value for name, value in ENV.items() if name != "PYTHONUNBUFFERED"}
    with os.fdopen(write, "wb") as pipe:
        done = subprocess.run(
            argv(framework, "fail", "printed"), stdout=pipe, stderr=subprocess.PIPE, env=env, timeout=60
        )
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("framework", ["click", "argparse"])
def test_a_stdout_that_is_full_or_closed(framework):
    """A document that cannot be written is reported on stderr, and a success exits with 1; a closed stdout is 141."""
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
    line = " ".join(argv(framework, "show", "bob", "--output", "json"))
    done = subprocess.run(["sh", "-c", f"{line} >&-"], capture_output=True, env=ENV, timeout=60)
    assert done.returncode == 141
    done = subprocess.run(["sh", "-c", f"{line} 2>&-"], capture_output=True, env=ENV, timeout=60)
    assert (done.returncode, json.loads(done.stdout)["ok"]) == (0, True)


def _until_full(pipe):
    """Wait until a pipe holds as many bytes as it can, so that its writer has to wait for the reader."""
    capacity, waiting = fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ), bytearray(4)
    end = time.monotonic() + 60
    while int.from_bytes(waiting, sys.byteorder) < capacity:
        assert time.monotonic() < end
        time.sleep(0.01)
        fcntl.ioctl(pipe, termios.FIONREAD, waiting)


def test_a_pipe_that_does_not_block():
    """A non-blocking stdout still gets the whole document."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    process = subprocess.Popen(
        argv("guard", "echo", "x" * 100_000, "--output", "json"),
        stdout=write,
        stderr=subprocess.PIPE,
        env=ENV,
    )
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        _until_full(pipe)
        envelope = json.loads(pipe.read())
    assert process.wait(30) == 0
    process.stderr.close()
    assert len(envelope["data"]["argv"][1]) == 100_000


# For people ------------------------------------------------------------------------------------------------------


@EACH
def test_text_for_a_terminal(framework):
    """On a terminal: message and code, then the next step; few lines, no traceback, no JSON."""
    env = {**{name: value for name, value in ENV.items() if name != "NO_COLOR"}, "TERM": "xterm"}
    code, seen = at_a_terminal(argv(framework, "fail", "missing"), env=env)
    assert code == 4
    lines = seen.splitlines()
    assert lines == [
        "\x1b[1;31merror:\x1b[0m No such order (NOT_FOUND)",
        "  \x1b[36mfix:\x1b[0m List them",
    ]


# Upstreams -------------------------------------------------------------------------------------------------------


@pytest.fixture
def service():
    """A loopback service: /429, /503 … respond with that status and a foreign text; it records its requests."""
    requests = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.path)
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

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", requests
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("framework", ["click", "argparse"])
@pytest.mark.parametrize(
    ("status", "code", "exit"),
    [
        (429, "RATE_LIMITED", 9),
        (503, "SERVICE_UNAVAILABLE", 12),
        (401, "SERVICE_UNAVAILABLE", 12),
        (404, "SERVICE_UNAVAILABLE", 12),
        (422, "SERVICE_UNAVAILABLE", 12),
    ],
)
def test_an_upstreams_failure_without_its_text(framework, status, code, exit, service):
    """C3, M9: the wait from Retry-After, no text of the upstream, and its refusals are not about the user's request."""
    url, _ = service
    number, envelope = run_json(framework, "upstream", f"{url}/{status}")
    assert (number, envelope["error"]["code"]) == (exit, code)
    assert envelope["error"]["retryable"] is (status in {429, 503})
    assert envelope["error"].get("retry_after_ms") == {429: 3000, 503: 0}.get(status)
    assert "secret" not in json.dumps(envelope)


@pytest.mark.parametrize("framework", ["click", "argparse"])
@pytest.mark.parametrize("command", ["upstream", "recovered"])
@pytest.mark.parametrize(
    ("status", "code", "exit"),
    [(401, "PERMISSION_DENIED", 8), (404, "NOT_FOUND", 4), (422, "VALIDATION_ERROR", 2)],
)
def test_an_own_upstreams_refusal(framework, command, status, code, exit, service):
    """M9: what a service of the own system refuses is about the user's request; its message still stays inside."""
    url, _ = service
    number, envelope = run_json(framework, command, f"{url}/{status}", env={"OWN": url})
    assert (number, envelope["error"]["code"]) == (exit, code)
    assert "secret" not in envelope["error"]["message"]


def test_attempts_of_recovery_inside_the_command(service):
    """C10: attempts that the command itself made count in meta, and the upstream's text is left out."""
    url, requests = service
    number, envelope = run_json("click", "recovered", f"{url}/503")
    assert (number, len(requests)) == (12, 2)
    assert (envelope["meta"]["attempt"], envelope["meta"]["max_attempts"]) == (2, 2)
    assert "secret" not in json.dumps(envelope)


# Retries (C9) ----------------------------------------------------------------------------------------------------


@EACH
def test_retries_of_a_read_only_command(framework, tmp_path):
    """C9, C10: --retries N waits as the fault says, and meta has the attempts."""
    path = tmp_path / "runs"
    code, envelope = run_json(framework, "flaky", path, 2, "--retries", "3")
    assert (code, envelope["data"]) == (0, {"runs": 3})
    assert (envelope["meta"]["attempt"], envelope["meta"]["max_attempts"]) == (3, 4)
    path.unlink()
    code, envelope = run_json(framework, "flaky", path, 9, "--retries", "2")
    assert (code, path.read_text()) == (9, "3")
    assert (envelope["meta"]["attempt"], envelope["meta"]["max_attempts"]) == (3, 3)
    path.unlink()
    code, envelope = run_json(framework, "flaky", path, 9)
    assert (code, path.read_text(), envelope["meta"]["max_attempts"]) == (9, "1", 1)


@PARSING
def test_retries_with_a_key(framework, tmp_path):
    """C9: a keyed command gets one key for all its attempts."""
    code, envelope = run_json(framework, "keyed", tmp_path / "keys", "--retries", "2")
    keys = (tmp_path / "keys").read_text().splitlines()
    assert (code, envelope["meta"]["attempt"], len(keys), len(set(keys))) == (12, 3, 3, 1)
    assert keys[0] != "None"


@EACH
def test_retries_are_refused_for_all_other_commands(framework):
    """C9: a command without a declaration does not run under --retries."""
    code, envelope = run_json(framework, "show", "bob", "--retries", "2")
    assert (code, envelope["error"]["field"], envelope["error"]["phase"]) == (2, "--retries", "validation")
