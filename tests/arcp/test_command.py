"""`amends runtime`: a served process and the commands that use it, with JSON lines in a pipe and text on a terminal."""

import asyncio
import io
import json
import os
import re
import signal
import stat
import subprocess
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from amends import commands
from amends.arcp import Event, Ticket, connect
from amends.arcp.transports import stdio
from amends.arcp.wire.messages import Accepted
from amends.commands.runtime import TOKEN, job_view, saved_sessions
from amends.commands.runtime import serve as serve_command
from amends.commands.runtime.job_view import describe
from tests.arcp.test_websocket import certificate  # noqa: F401 - a fixture
from tests.ports import free_port
from tests.terminal import at_a_terminal

AGENTS = """
import asyncio
from amends.arcp import Runtime
from amends.arcp.errors import PermissionDeniedError

async def greet(given, ctx):
    await ctx.log("hello \\x1b[31mred")
    await ctx.progress(1, total=2, units="words", message="greeting")
    return {"hello": given}

async def refuse(given, ctx):
    raise PermissionDeniedError("You may not", details={"capability": "net.fetch"})

async def wait_long(given, ctx):
    await ctx.status("waiting")
    await asyncio.sleep(60)

async def lines(given, ctx):
    yield "one\\n"
    yield "two\\x1b[2J"

async def raw(given, ctx):
    yield b"\\x00\\x01"

def plain(given, ctx):
    return given

class Group:
    greet = greet

own = Runtime(tokens="t")
own.register_agent("mine", greet)
broken = 1
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with modules of agents."""
    folder = tmp_path_factory.mktemp("agents")
    (folder / "myagents.py").write_text(AGENTS)
    (folder / "mybroken.py").write_text("import nothing_of_that_name\n")
    return folder


def main(arguments):
    """Run the command in this process. The command redirects stdout and never restores it, so this does."""
    kept = os.dup(1)
    try:
        return commands.main(arguments)
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def served(place, *arguments, **options):
    """Start `amends runtime serve` in a process; returns the process and its announcement."""
    command = [sys.executable, "-m", "amends", "runtime", "serve", *arguments]
    child = subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, text=True, **options)
    return child, json.loads(child.stdout.readline())


@pytest.fixture(scope="module")
def url(place):
    """The URL of a served runtime."""
    arguments = [
        "myagents:greet",
        "refuse@2=myagents:refuse",
        "myagents:wait_long",
        "myagents:lines",
        "myagents:raw",
    ]
    child, announced = served(
        place, *arguments, "--port", "0", "--token", "alice=tok", "--token", "bob=other"
    )
    yield announced["listening"]
    child.send_signal(signal.SIGTERM)
    assert child.wait(60) == 0
    child.stdout.close()


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    """A token in the environment, and a separate state directory."""
    monkeypatch.setenv(TOKEN, "tok")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def run(capfd, *arguments):
    """Return a command's exit code and the documents it printed."""
    code = main(["runtime", *arguments])
    return code, [json.loads(line) for line in capfd.readouterr().out.splitlines()]


def text(capfd, *arguments):
    """Return a command's exit code and the text it printed."""
    code = main(["runtime", *arguments, "--output", "text"])
    found = capfd.readouterr()
    return code, found.out, found.err


def test_submit_writes_json_to_a_pipe(capfd, url):
    """The acceptance, each event and the result are one JSON document per line."""
    code, lines = run(capfd, "submit", url, "greet", '{"a": 1}')
    assert code == 0
    assert [line.get("status", line.get("kind")) for line in lines] == [
        "accepted",
        "log",
        "progress",
        "success",
    ]
    assert lines[-1]["result"] == {"hello": {"a": 1}}
    assert {line["job_id"] for line in lines} == {lines[0]["job_id"]}


def test_submit_writes_text(capfd, url):
    """Text without the agent's control sequences."""
    code, out, _ = text(capfd, "submit", url, "greet", '"you"')
    assert code == 0
    assert "accepted greet@1.0.0" in out
    assert "info hello [31mred" in out
    assert "1 of 2 words greeting" in out
    assert "success\n{\n" in out
    assert "\x1b" not in out
    code, out, _ = text(capfd, "submit", url, "lines")
    assert out.endswith("success\none\ntwo[2J\n")
    code, out, _ = text(capfd, "submit", url, "raw")
    assert out.endswith("2 bytes\n")


def test_inputs(capfd, url, tmp_path, monkeypatch):
    """JSON as an argument, from a file, from stdin, or none."""
    file = tmp_path / "input.json"
    file.write_text("[1, 2]")
    assert run(capfd, "submit", url, "greet", f"@{file}")[1][-1]["result"] == {"hello": [1, 2]}
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"3")))
    assert run(capfd, "submit", url, "greet", "-")[1][-1]["result"] == {"hello": 3}
    assert run(capfd, "submit", url, "greet")[1][-1]["result"] == {"hello": None}
    for given, code in (("hello", 2), (f"@{tmp_path}/missing", 4)):
        assert run(capfd, "submit", url, "greet", given)[0] == code


def test_failures_are_envelopes_with_their_exit_codes(capfd, url, monkeypatch):
    """C1, C7: the command fails with the job's failure."""
    code, lines = run(capfd, "submit", url, "refuse")
    assert (code, lines[-1]["ok"], lines[-1]["error"]["code"]) == (8, False, "PERMISSION_DENIED")
    assert lines[-1]["error"]["details"] == {"capability": "net.fetch"}
    code, lines = run(capfd, "submit", url, "wait-long", "--max-runtime", "0.05")
    assert (code, lines[-1]["error"]["code"], lines[-1]["error"]["retryable"]) == (7, "TIMEOUT", True)
    code, lines = run(capfd, "submit", url, "unknown")
    assert (code, lines[-1]["ok"]) == (4, False)
    code, _, err = text(capfd, "submit", url, "refuse")
    assert (code, "You may not" in err, "PERMISSION_DENIED" in err) == (8, True, True)
    for arguments in (("jobs", "ws://example.com/arcp"), ("jobs", "nonsense"), ("jobs", "ws://[/")):
        assert run(capfd, *arguments)[0] == 2
    assert run(capfd, "jobs", "ws://127.0.0.1:1/arcp")[0] == 12
    assert run(capfd, "submit", url, "greet", "--lease", "fs.read")[0] == 3
    assert run(capfd, "submit", url, "greet", "--lease", "fs.raed=/")[0] == 2
    monkeypatch.setenv(TOKEN, "wrong")
    assert run(capfd, "jobs", url)[0] == 8


def test_submit_with_key_lease_and_recovery(capfd, url):
    """The same key gives the same job; a lease is requested; `--recover` retries."""
    first = run(
        capfd, "submit", url, "greet", "1", "--key", "k", "--lease", "fs.read=/a/**", "--lease", "fs.read=/b"
    )
    again = run(
        capfd, "submit", url, "greet", "1", "--key", "k", "--lease", "fs.read=/a/**", "--lease", "fs.read=/b"
    )
    assert first[1][0]["job_id"] == again[1][0]["job_id"]
    assert run(capfd, "submit", url, "greet", "2", "--key", "k")[0] != 0
    code, lines = run(capfd, "submit", url, "greet", "1", "--recover")
    assert (code, lines) == (0, [{"status": "success", "result": {"hello": 1}}])
    assert text(capfd, "submit", url, "greet", "1", "--recover")[1] == '{\n  "hello": 1\n}\n'


def test_detach_watch_list_and_cancel(capfd, url, home):
    """A detached job is found again; only the session that submitted it can cancel it."""
    code, lines = run(capfd, "submit", url, "wait-long", "--detach")
    job = lines[0]["job_id"]
    assert (code, lines[0]["status"]) == (0, "accepted")
    kept = home / "state" / "amends" / "runtime" / f"{job}.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    code, lines = run(capfd, "jobs", url, "--status", "running", "--agent", "wait-long", "--limit", "1")
    assert [line["job_id"] for line in lines] == [job]
    assert job in text(capfd, "jobs", url)[1]
    assert text(capfd, "jobs", url, "--agent", "unknown")[1] == "no jobs\n"
    _, (status,) = run(capfd, "status", url)
    assert status["jobs"]["running"] >= 1
    assert "wait-long" in status["agents"]
    code, shown, _ = text(capfd, "status", f"ws://127.0.0.1:{free_port()}/,{url}")
    assert (code, "running" in shown, "wait-long" in shown) == (0, True, True)
    for wrong in ((), (url, "--store", "sqlite:///x.db")):
        assert run(capfd, "status", *wrong)[0] != 0
    other = text(capfd, "submit", url, "wait-long", "--detach")[1].strip()
    kept_other = home / "state" / "amends" / "runtime" / f"{other}.json"
    stolen = kept_other.read_bytes()
    kept_other.unlink()
    assert run(capfd, "cancel", url, other)[0] == 8
    kept_other.write_bytes(stolen)
    # Cancelling a job of another session is refused; the ticket of our own session is updated nevertheless.
    kept_other.replace(home / "state" / "amends" / "runtime" / "job_9.json")
    assert run(capfd, "cancel", url, "job_9")[0] == 4
    (home / "state" / "amends" / "runtime" / "job_9.json").replace(kept_other)
    for each in (job, other):
        code, lines = run(capfd, "cancel", url, each, "--reason", "enough")
        assert (code, lines) == (0, [{"job_id": each, "status": "cancelling"}])
    assert not kept.exists()
    code, lines = run(capfd, "tail", url, job)
    assert code == 130
    assert [line.get("kind") for line in lines[1:-1]] == ["status"]
    assert (lines[-1]["error"]["code"], lines[-1]["error"]["details"]) == ("CANCELLED", {"reason": "enough"})
    done = run(capfd, "submit", url, "greet")[1][0]["job_id"]
    assert run(capfd, "tail", url, done)[1][-1]["status"] == "success"
    code, _, err = text(capfd, "tail", url, job, "--new")
    assert (code, "CANCELLED" in err) == (130, True)
    third = text(capfd, "submit", url, "wait-long", "--detach")[1].strip()
    assert text(capfd, "cancel", url, third)[1] == f"{third} is being cancelled\n"


def test_saved_tickets_are_for_one_runtime_and_one_job(home, monkeypatch):
    """Another URL, an invalid name, a broken file or an unwritable directory give no ticket and no failure."""
    ticket = Ticket("sess_1", "s3cr3t", 7)
    assert "s3cr3t" not in repr(ticket)
    saved_sessions.keep("job_1", "ws://a/", ticket)
    assert saved_sessions.find("job_1", "ws://a/") == ticket
    assert saved_sessions.find("job_1", "ws://b/") is None
    saved_sessions.keep("../job_1", "ws://a/", ticket)
    assert saved_sessions.find("../job_1", "ws://a/") is None
    saved_sessions.forget("../job_1")
    (home / "state" / "amends" / "runtime" / "job_2.json").write_text("{")
    assert saved_sessions.find("job_2", "ws://a/") is None
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    saved_sessions.keep("job_1", "ws://a/", ticket)
    assert saved_sessions.find("job_1", "ws://a/") is None
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr("pathlib.Path.home", lambda: (_ for _ in ()).throw(RuntimeError))
    assert saved_sessions.find("job_1", "ws://a/") is None


@contextmanager
def signals_kept():
    """Restore the signal handlers that the command replaces."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def test_an_interrupt_cancels_the_job(capfd, url, monkeypatch):
    """The first Ctrl-C cancels the job, and its end is still printed."""
    shown = job_view.View.event

    def interrupted(view, event):
        shown(view, event)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(job_view.View, "event", interrupted)
    with signals_kept():
        code, lines = run(capfd, "submit", url, "wait-long")
    assert (code, lines[-1]["error"]["code"]) == (130, "CANCELLED")
    assert lines[-1]["error"]["details"] == {"reason": "interrupted"}


class Terminal(io.StringIO):
    """A terminal that records its output."""

    def isatty(self):
        return True


def test_events_are_displayed_in_place(monkeypatch):
    """Lines above one progress bar, both without the agent's control sequences."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    handle = SimpleNamespace(job_id="job_1", agent="a@1", summary="two parts", accepted=Accepted("job_1"))
    with job_view._text_view() as view:
        view.start(handle)
        view.event(Event("progress", {"current": 1, "total": 4, "message": "[red]half\x1b[31m"}))
        view.event(Event("progress", {"current": "x", "total": True}))
        view.event(Event("log", {"message": "[bold]plain"}, ts="2026-05-13T19:42:13Z"))
        view.end(handle, None)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    assert "[bold]plain" in shown
    assert "19:42:13 log" in shown
    assert "success  two parts" in shown
    assert "[red]half" in terminal.getvalue() or "progress" in shown
    assert "\x1b[31m" not in terminal.getvalue()


@pytest.mark.parametrize("rich", [True, False])
def test_submit_on_a_terminal(url, rich, tmp_path):
    """Lines, and a progress bar if Rich is installed, without the agent's colours."""
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    if not rich:
        # An empty package of that name, so that the import of Rich's modules fails.
        (tmp_path / "rich").mkdir()
        (tmp_path / "rich" / "__init__.py").write_text("raise ImportError")
        environment["PYTHONPATH"] = str(tmp_path)
    command = [sys.executable, "-m", "amends", "runtime", "submit", url, "greet", "5"]
    code, shown = at_a_terminal(command, env=environment, stdin=subprocess.DEVNULL)
    assert code == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert "hello [31mred" in plain
    assert '"hello": 5' in plain
    assert ("━" in plain) is rich
    assert ("1 of 2 words" in plain) is not rich


EVENTS = [
    ("log", {"level": "warn", "message": "m"}, "warn m"),
    ("thought", {"text": "hm"}, "hm"),
    ("status", {"phase": "p", "message": "m"}, "p m"),
    ("tool_call", {"tool": "t", "args": {"a": 1}}, 't {"a":1}'),
    ("tool_result", {"call_id": "c", "result": [1]}, "c → [1]"),
    ("tool_result", {"call_id": "c", "error": {"code": "X", "message": "m"}}, "c failed: X m"),
    ("metric", {"name": "cost.x", "value": 0.5, "unit": "USD"}, "cost.x 0.5 USD"),
    ("artifact_ref", {"uri": "u", "content_type": "text/html"}, "u text/html"),
    ("delegate", {"agent": "a"}, "to a"),
    ("progress", {"current": 1}, "1"),
    ("result_chunk", {"chunk_seq": 3, "data": "abc"}, "chunk 3, 3 characters"),
    ("result_chunk", {}, "chunk , 0 characters"),
    ("x-vendor.new", {"a": None}, '{"a":null}'),
    ("log", {"message": "a\nb\x1b[0m" + "x" * 500}, None),
]


@pytest.mark.parametrize(("kind", "body", "text"), EVENTS)
def test_the_text_of_events(kind, body, text):
    """Each event is one line, whatever it contains."""
    found = describe(Event(kind, body))
    assert "\n" not in found
    assert "\x1b" not in found
    assert len(found) <= 400
    assert text is None or found == text


# -- serving


def test_serve_generates_a_token(place, monkeypatch, capfd):
    """The token is printed once, and it works."""
    environment = {name: value for name, value in os.environ.items() if name != TOKEN}
    child, announced = served(place, "myagents:Group.greet", "--port", "0", env=environment)
    monkeypatch.setenv(TOKEN, announced["token"])
    assert run(capfd, "submit", announced["listening"], "greet", "1")[1][-1]["result"] == {"hello": 1}
    child.send_signal(signal.SIGINT)
    assert child.wait(30) == 0
    child.stdout.close()


def serve(capfd, monkeypatch, place, *arguments):
    """Serve in this process until a signal that is sent as soon as the server is up."""
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(str(place))
    announce = serve_command._announce

    def announced(*arguments):
        announce(*arguments)
        os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch, signals_kept():
        patch.setattr(serve_command, "_announce", announced)
        return main(["runtime", "serve", *arguments, "--port", "0"]), capfd.readouterr()


def test_serve_writes_text(capfd, monkeypatch, place, tmp_path):
    """The URL, the token and how to stop are printed."""
    store = f"sqlite:///{tmp_path}/jobs.db"
    code, found = serve(capfd, monkeypatch, place, "myagents:greet", "--store", store, "--output", "text")
    assert code == 0
    assert "listening on ws://127.0.0.1:" in found.out
    assert "Ctrl-C" in found.out
    assert (tmp_path / "jobs.db").exists()
    monkeypatch.delenv(TOKEN)
    code, found = serve(capfd, monkeypatch, place, "myagents:greet", "--output", "text")
    assert "token " in found.out


def test_serve_a_runtime_object(capfd, monkeypatch, place):
    """The object has its own settings, so options beside it are rejected."""
    code, found = serve(capfd, monkeypatch, place, "myagents:own")
    assert code == 0
    assert json.loads(found.out)["listening"]


def test_serving_with_tls(capfd, monkeypatch, place, certificate):  # noqa: F811
    """The URL is wss:, and other hosts than the local one need TLS."""
    cert, key = (str(path) for path in certificate)
    code, found = serve(capfd, monkeypatch, place, "myagents:greet", "--tls-cert", cert, "--tls-key", key)
    assert (code, json.loads(found.out)["listening"][:6]) == (0, "wss://")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["myagents"], 3),
        (["nothing_here:greet"], 4),
        (["myagents:nothing"], 4),
        (["myagents:broken"], 2),
        (["myagents:plain"], 2),
        (["Bad Name=myagents:greet"], 2),
        (["mybroken:greet"], 1),
        (["myagents:own", "myagents:greet"], 3),
        (["myagents:own", "--store", "memory:"], 3),
        (["myagents:greet", "--store", "nonsense://x"], 2),
        (["myagents:greet", "--host", "0.0.0.0"], 2),
        (["myagents:greet", "--host", "example.com"], 2),
        (["myagents:greet", "--tls-cert", "/nonexistent.pem"], 2),
    ],
)
def test_serve_rejects_invalid_arguments(capfd, monkeypatch, place, arguments, code):
    """The error comes before anything is served, and suggests what to do."""
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(str(place))
    assert main(["runtime", "serve", *arguments, "--port", "0"]) == code
    assert json.loads(capfd.readouterr().out.splitlines()[-1])["ok"] is False


def test_a_port_that_is_taken(capfd, monkeypatch, place, url):
    """The error names the port."""
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(str(place))
    port = url.rpartition(":")[2].partition("/")[0]
    assert main(["runtime", "serve", "myagents:greet", "--port", port]) == 2
    assert json.loads(capfd.readouterr().out)["error"]["field"] == "--port"


async def test_serving_on_stdio(place):
    """A runtime as a child process; the process that has its pipes needs no token."""
    command = stdio.command(
        sys.executable, "-m", "amends", "runtime", "serve", "myagents:greet", "--stdio", cwd=str(place)
    )
    async with asyncio.timeout(100), connect(command, token="tok") as client:
        assert await (await client.submit("greet", 1)).done == {"hello": 1}


def test_serving_on_stdio_in_this_process(monkeypatch, place):
    """It runs until its client closes the connection."""
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.delenv(TOKEN)
    reading, writing = os.pipe()
    os.close(writing)
    unread, writing_end = os.pipe()
    with os.fdopen(reading) as stdin, os.fdopen(writing_end, "w") as stdout, os.fdopen(unread):
        monkeypatch.setattr("sys.stdin", stdin)
        monkeypatch.setattr("sys.stdout", stdout)
        assert main(["runtime", "serve", "myagents:greet", "--stdio"]) == 0


async def test_a_served_child_ends_on_a_signal(place):
    """A child process on stdio ends like a WebSocket server."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "amends", "runtime", "serve", "myagents:greet", "--stdio"),
        cwd=place,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name != TOKEN},
    )
    hello = {"arcp": "1", "id": "x", "type": "session.hello", "payload": {"auth": {"token": "stdio"}}}
    child.stdin.write(json.dumps(hello).encode() + b"\n")
    welcome = json.loads(await child.stdout.readline())
    assert welcome["type"] == "session.welcome"
    child.send_signal(signal.SIGTERM)
    await child.communicate()
    assert child.returncode == 0
