"""Common mistakes on the command line: each error names the mistake and a fix, and none is a traceback."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from tests.commands.test_decode import AMENDS, amends
from tests.terminal import at_a_terminal


def run_failing(*arguments, **options):
    """Run a command in a pipe and return its error and exit code."""
    done = amends(*arguments, **options)
    assert b"Traceback" not in done.stderr
    return json.loads(done.stdout)["error"], done.returncode


MISTAKES = {
    "a command": (["decde"], 3, "amends has no command decde", "Did you mean amends decode?"),
    "a subcommand": (
        ["store", "stat", "x"],
        3,
        "amends store has no command stat",
        "Choose one of info, check, copy, sql",
    ),
    "a flag before a command": (
        ["--outptu", "json"],
        3,
        "amends has no flag --outptu",
        "Did you mean --output?",
    ),
    "a flag": (["try", "--kep"], 3, "amends try has no flag --kep", "Did you mean --keep?"),
    "no subcommand": (["store"], 3, "ACTION", "Give ACTION, one of info, check, copy, sql"),
    "a value": (["decode", "--via", "mpc"], 2, "--via: 'mpc' is not a valid value", "Did you mean mcp?"),
    "a number": (["try", "--seed", "x"], 2, "'x' is not a whole number", "Give a whole number for --seed"),
    "seconds": (["run", "--timeout", "x", "--", "true"], 2, "must be a number of seconds", "--timeout"),
    "a code": (["explain", "RATE_LIMTED"], 4, "no code 'RATE_LIMTED'", "Did you mean RATE_LIMITED?"),
    "a shell": (["completion", "bsh"], 2, "SHELL: 'bsh' is not a valid value", "Did you mean bash?"),
    "no dashes": (["run", "echo", "hi"], 3, "needs a command after --", "amends run -- echo hi"),
    "no dashes, audit": (["audit", "cli", "git"], 3, "needs a command after --", "amends audit cli -- git"),
    "a program": (["run", "--", "no-such-program"], 4, "could not be started", "Install no-such-program"),
    "a directory for a program": (["run", "--", "/"], 8, "could not be started", "/ is a directory"),
    "a program to audit": (
        ["audit", "cli", "--", "no-such-program"],
        4,
        "no command",
        "Install no-such-program",
    ),
    "a server to audit": (
        ["audit", "mcp", "--", "no-such-program"],
        4,
        "there is no command no-such-program",
        "Install no-such-program",
    ),
    "a path to audit": (["audit", "http", "http://x", "--path", "items"], 2, "must start with /", "--path"),
    "a store": (
        ["store", "check", "mysql://x"],
        2,
        "'mysql://x' is not a store URL",
        "Write memory:, sqlite:///",
    ),
    "a store in an option": (
        ["tasks", "list", "--store", "tasks.db"],
        2,
        "'tasks.db' is not a store URL",
        "Did you mean sqlite:///tasks.db?",
    ),
    "a store's file": (
        ["store", "check", "sqlite:////no/such.db"],
        2,
        "no file /no/such.db",
        "Correct the path",
    ),
    "a store without its option": (
        ["tasks", "list", "sqlite:///x.db"],
        3,
        "amends tasks list does not take the argument sqlite:///x.db",
        "Did you mean --store sqlite:///x.db?",
    ),
    "no store of tasks": (["tasks", "list"], 2, "no store is given", "Give --store sqlite:///tasks.db"),
    "no store of effects": (["effects", "list"], 2, "no store is given", "Give --store sqlite:///effects.db"),
    "no file of tasks": (
        ["tasks", "list", "--store", "sqlite:////no/such.db"],
        2,
        "no file /no/such.db",
        "Correct the path in --store",
    ),
    "no file of effects": (
        ["effects", "list", "--store", "sqlite:////no/such.db"],
        2,
        "no file /no/such.db",
        "Correct the path in --store",
    ),
    "a vendor": (["explain", "opnai:x"], 4, "no vendor 'opnai'", "Did you mean openai?"),
    "a part of a vendor's code": (
        ["explain", "openai:insufficient"],
        4,
        "OpenAI has no code 'insufficient'",
        "Did you mean openai:insufficient_credits?",
    ),
    "a vendor's code without the vendor": (
        ["explain", "insufficient_quota"],
        4,
        "no code 'insufficient_quota'",
        "Did you mean azure-openai:insufficient_quota?",
    ),
    "a part of a code": (["explain", "quota"], 4, "no code 'quota'", "Did you mean QUOTA_EXCEEDED?"),
    "a status": (["explain", "999"], 4, "999 is not an HTTP status of a failure", "from 400 to 599"),
    "nothing to find": (["explain", "--search", "xyzzy"], 4, "no code contains 'xyzzy'", "amends explain"),
    "one of two flags": (
        ["tasks", "verify", "x"],
        3,
        "amends tasks verify needs --happened or --not-happened",
        "Give --happened or --not-happened",
    ),
    "no task": (
        ["tasks", "show", "x", "--store", "memory:"],
        4,
        "no task 'x' on memory:",
        "See the ids with amends tasks list",
    ),
    "no task to retry": (
        ["tasks", "retry", "--store", "memory:"],
        3,
        "amends tasks retry needs either ID or --all",
        "amends tasks retry ID",
    ),
    "no effect": (
        ["effects", "show", "x", "--store", "memory:"],
        4,
        "the ledger has no effect 'x'",
        "See the names with amends effects list",
    ),
    "an address of a runtime": (
        ["runtime", "jobs", "http://127.0.0.1:1", "--token", "x"],
        2,
        "not a WebSocket URL",
        "Use wss://host/arcp",
    ),
    "a runtime that does not run": (
        ["runtime", "jobs", "ws://127.0.0.1:1/arcp", "--token", "x"],
        12,
        "no server listens on this port",
        "Start it with amends runtime serve, or correct the address",
    ),
    "a module": (
        ["runtime", "serve", "no_such_module:agent"],
        4,
        "There is no module no_such_module",
        "Run it in the folder of no_such_module.py, or correct the name",
    ),
    "two arguments": (
        ["runtime", "submit"],
        3,
        "amends runtime submit needs URL and AGENT",
        "Give URL and AGENT",
    ),
    "no shell": (["completion"], 3, "amends completion needs SHELL", "Give bash, zsh or fish"),
    "no configuration": (
        ["gateway", "check", "/no/such.toml"],
        4,
        "there is no file /no/such.toml",
        "Correct the path",
    ),
    "check without a file": (
        ["gateway", "check"],
        3,
        "needs a configuration file",
        "amends gateway check gateway.toml",
    ),
}


@pytest.mark.parametrize(("arguments", "exit", "message", "step"), MISTAKES.values(), ids=MISTAKES)
def test_wrong_arguments(arguments, exit, message, step):
    """The message names the wrong argument, and the first suggestion corrects it."""
    error, code = run_failing(*arguments)
    assert code == exit
    assert message in error["message"]
    assert step in error["suggestions"][0] if step else error["fix_required"]


@pytest.mark.parametrize(
    ("arguments", "steps"),
    [
        (["run", "--onec", "x", "--", "true"], ["Did you mean --once?"]),
        (["run", "--tries", "0", "--", "true"], ["See amends run --help"]),
        (["explain", "opnai:x"], ["Did you mean openai?"]),
    ],
)
def test_only_similar_names_are_suggested(arguments, steps):
    """Names that share little with what was given are left out, and the dashes of flags do not count."""
    assert run_failing(*arguments)[0]["suggestions"] == steps


def test_a_missing_configuration_is_reported_without_loading_the_gateway():
    """The check of the file comes first, so the error is immediate."""
    program = (
        "import sys; from amends.commands import main; main(['gateway', 'check', '/no/such.toml']);"
        "sys.exit('amends.gateway' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0


def test_explain_without_a_code_lists_codes():
    """The overview has examples, the everyday codes, the vocabularies and the vendors; it is no error."""
    done = amends("explain", "--output", "text")
    text = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    assert all(
        each in text for each in ("amends explain 429", "  RATE_LIMITED, ", "arcp      15 codes", "vendors (")
    )
    assert len(text.splitlines()) < 23
    found = json.loads(amends("explain", "--json").stdout)
    assert "LEASE_EXPIRED" in found["vocabularies"]["arcp"]
    assert "stripe" in found["vendors"]
    assert "\nopenai           OpenAI\n" in amends("explain", ":", "--output", "text").stdout.decode()
    one = amends("explain", "--vocabulary", "arcp", "--output", "text").stdout.decode()
    assert one.startswith("Agent Runtime Control Protocol errors: 15 codes\n")
    assert "\n  LEASE_EXPIRED " in one
    assert json.loads(amends("explain", "--vocabulary", "arcp", "--json").stdout)["vocabulary"] == "arcp"


def test_explain_searches_names_and_messages():
    """`--search` finds codes of vocabularies and of vendors."""
    text = amends("explain", "--search", "quota", "--output", "text").stdout.decode()
    assert "  QUOTA_EXCEEDED " in text
    assert "  openai:insufficient_quota " in text
    found = json.loads(amends("explain", "--search", "quota", "--vocabulary", "everyday", "--json").stdout)
    assert [(each["code"], each["in"]) for each in found["entries"]] == [("QUOTA_EXCEEDED", ["everyday"])]


def test_the_words_of_a_vendor_are_listed():
    """`amends explain openai:` lists the words that `amends explain openai:word` knows."""
    assert b"\n  insufficient_quota\n" in amends("explain", "openai:", "--output", "text").stdout
    found = json.loads(amends("explain", "openai:", "--json").stdout)
    assert found["vendor"] == "openai"
    assert "insufficient_quota" in found["words"]


def test_an_unknown_flag_without_a_command():
    """An unknown flag is a mistake, although a missing command is none."""
    error, code = run_failing("-v")
    assert (code, error["field"]) == (3, "-v")


def test_files_that_cannot_be_read(tmp_path):
    """The message has the reason: the file does not exist, or it is a directory."""
    for name, message in ((tmp_path / "none", "there is no file"), (tmp_path, "is a directory")):
        error, code = run_failing("decode", str(name))
        assert (code, error["field"]) == (2, "FILE")
        assert message in error["message"]


@pytest.mark.parametrize("command", [["decode"], ["translate", "--from", "adcp", "--to", "arcp"]])
@pytest.mark.parametrize(
    ("data", "message"), [(b"", "empty"), (b" \n", "empty"), (b"\x80\xff\x00", "line 1 is not")]
)
def test_empty_and_binary_input(command, data, message):
    """Empty input and input that is not text."""
    error, code = run_failing(*command, stdin=data)
    assert code == 2
    assert message in error["message"]


def test_a_nats_server_that_does_not_run():
    """The suggestion is to start one or to correct the address; the command does not hang."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # it does not listen
        error, code = run_failing("store", "info", f"nats://127.0.0.1:{bound.getsockname()[1]}/x")
    assert code == 12
    assert "no NATS server answers" in error["message"]
    assert error["suggestions"][0] == "Start one, or correct the address"


def test_a_port_that_is_taken(tmp_path):
    """The suggestion is a free port."""
    (tmp_path / "agents.py").write_text("async def echo(input, ctx):\n    return input\n")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for port in (taken.getsockname()[1], 99999):
            error, code = run_failing("runtime", "serve", "agents:echo", "--port", str(port), env=env)
            assert (code, error["field"], error["fix_required"]) == (2, "--port", "--port 0")


def run_on_terminal(*arguments, typed=b"", **env):
    """Run a command on a terminal and return what it shows and its exit code."""
    env = {**os.environ, "TERM": "xterm", **env}
    code, seen = at_a_terminal([*AMENDS, *arguments], typed, b"Ctrl-D", env=env)
    return seen, code


def test_decode_prompts_on_a_terminal():
    """`amends decode` without a pipe prompts for input."""
    seen, code = run_on_terminal("decode", typed=b'{"code": "RATE_LIMITED", "retry_after": 5}')
    assert "Paste a response" in seen
    assert "retry in 5 s" in seen
    assert code == 0


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize(
    "arguments",
    [
        ("tasks",),
        ("decode", "--via", "foo"),
        ("store", "check", "foo://x"),
        ("run", "--", "false"),
    ],
)
def test_text_fits_the_terminal(arguments, width):
    """Lines break between words, so no word is broken by the terminal."""
    piped = run_on_terminal(*arguments, NO_COLOR="1", COLUMNS="10000")[0]
    seen = run_on_terminal(*arguments, NO_COLOR="1", COLUMNS=str(width))[0]
    assert max(map(len, seen.splitlines())) <= width + 20  # a URL has no space to break at
    assert seen.split() == piped.split()
    assert width == 80 or len(seen.splitlines()) > len(piped.splitlines())


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_terminals_without_colour(env):
    """No escape sequences are written to a terminal without colour."""
    seen, code = run_on_terminal("explain", "RATE_LIMTED", **env)
    assert code == 4
    assert "\x1b" not in seen
    assert "Did you mean RATE_LIMITED?" in seen


def test_a_locale_without_our_characters():
    """With an ASCII locale a pipe gets UTF-8, and a terminal gets "?" for missing characters."""
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = amends("--help", env=env)
    assert (done.returncode, "COMMAND …" in done.stdout.decode()) == (0, True)
    seen, code = run_on_terminal("--help", PYTHONIOENCODING="ascii")
    assert code == 0
    assert "COMMAND ?" in seen


@pytest.mark.parametrize("when", ["before it reads", "while it reads"])
def test_ctrl_c_exits_with_130(when):
    """Nothing is printed, also if modules are still being imported."""
    early = "import os, signal; os.kill(os.getpid(), signal.SIGINT)" if when == "before it reads" else ""
    code = (
        "import sys, builtins\n"
        "from amends.commands import main\n"
        "real = builtins.__import__\n"
        "def late(name, *rest):\n"
        "    if name == 'amends.commands.console':\n"
        f"        {early or 'pass'}\n"
        "    return real(name, *rest)\n"
        "builtins.__import__ = late\n"
        "sys.exit(main(['decode']))\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    if not early:
        assert child.stdin is not None
        child.stdin.write(b" " * 1_000_000)  # more than a pipe holds, so it returns when the child reads
        child.stdin.flush()
        child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out, err) == (130, b"", b"")
