"""`amends runtime` with jobs that delegate: trees, children, error codes, budgets; and with one's own Runtime."""

import json
import os
import signal
import stat
import subprocess
import sys
from builtins import TimeoutError as BuiltinTimeoutError

import pytest

import amends.arcp.errors
from amends import commands
from amends.arcp.tokens import VARIABLE, environment_tokens, parse_token
from amends.arcp.wire.messages import JobEntry
from amends.commands.runtime.job_tree import tree

MODULE = """
import os
from amends.arcp import Limits, Runtime
from amends.errors.arcp import PermissionDeniedError

runtime = Runtime(os.environ.get("STORE"), tokens={"built-in": "alice"}, limits=Limits(drain=0.0))

@runtime.register_agent("leaf")
async def leaf(given, ctx):
    await ctx.log("working")
    if given == "fail":
        raise PermissionDeniedError("not this one")
    return given

@runtime.register_agent("root")
async def root(given, ctx):
    await ctx.metric("cost.search", 0.25, unit="USD")
    for one in given:
        try:
            await ctx.delegate("leaf", one)
        except PermissionDeniedError:
            pass
    return "all done"

async def greet(given, ctx):
    return {"hello": given}
"""
BROKEN = """
def connect():
    raise ValueError("the database is not configured")
connect()
"""
LEASE = ["--lease", "agent.delegate=*", "--lease", "cost.budget=USD:1.00"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with modules."""
    folder = tmp_path_factory.mktemp("family")
    (folder / "mine.py").write_text(MODULE)
    (folder / "unconfigured.py").write_text(BROKEN)
    return folder


@pytest.fixture(scope="module")
def server(place):
    """The URL of one's own Runtime, served with a token from the environment, and its store."""
    store = f"sqlite:///{place}/jobs.db"
    command = [sys.executable, "-m", "amends", "runtime", "serve", "mine:runtime", "--port", "0"]
    env = {**os.environ, VARIABLE: "alice=tok", "STORE": store}
    child = subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, text=True, env=env)
    yield json.loads(child.stdout.readline())["listening"], store
    child.send_signal(signal.SIGTERM)
    assert child.wait(60) == 0
    child.stdout.close()


@pytest.fixture
def run(monkeypatch, capfd):
    """Run the command in this process; returns its exit code and its output."""
    monkeypatch.setenv(VARIABLE, "tok")

    def call(*arguments):
        kept = os.dup(1)
        try:
            code = commands.main(["runtime", *arguments])
        finally:
            os.dup2(kept, 1)
            os.close(kept)
        return code, capfd.readouterr()

    return call


def test_a_family_of_jobs(run, server):
    """`tail` follows children, `jobs --tree` shows parents, codes and budgets, `status` counts what has just ended."""
    url, store = server
    code, found = run("submit", url, "root", '["a", "fail"]', *LEASE, "--output", "text")
    assert (code, "all done" in found.out) == (0, True)
    found = run("status", "--store", store)[1]
    status = json.loads(found.out)
    assert (status["succeeded"], status["errors"]) == (2, {"PERMISSION_DENIED": 1})
    code, found = run("jobs", url, "--tree")
    entries = [json.loads(line) for line in found.out.splitlines()]
    assert [entry["depth"] for entry in entries] == [0, 1, 1]
    parent, good, bad = entries
    assert {entry["parent_job_id"] for entry in (good, bad)} == {parent["job_id"]}
    assert (good.get("error_code"), bad["error_code"]) == (None, "PERMISSION_DENIED")
    assert float(parent["budget"]["USD"]) == 0.75
    text = run("jobs", url, "--tree", "--output", "text")[1].out.splitlines()
    assert "0.75 left" in text[0]
    assert text[1].startswith("└─ ")
    assert "PERMISSION_DENIED" in text[2]
    code, found = run("tail", url, parent["job_id"], "--output", "text")
    assert code == 0
    assert f"  accepted leaf@1.0.0 as {good['job_id']}, child of {parent['job_id']}" in found.out
    assert f"  failed {bad['job_id']} PERMISSION_DENIED not this one" in found.out
    assert "budget USD 0.75" in found.out
    assert found.out.splitlines()[-2:] == ["success", "all done"]
    lines = [json.loads(line) for line in run("tail", url, parent["job_id"])[1].out.splitlines()]
    assert {line["job_id"] for line in lines} == {entry["job_id"] for entry in entries}
    assert lines[-1] == {"job_id": parent["job_id"], "status": "success", "result": "all done"}
    alone = run("tail", url, parent["job_id"], "--alone")[1].out
    assert good["job_id"] not in alone
    assert run("tail", url, bad["job_id"])[0] == 8


def test_a_module_that_raises(run, place, monkeypatch):
    """The exception of the user's own module is shown, with its traceback and without ours."""
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(str(place))
    for command in ("serve", "worker"):
        code, found = run(command, "unconfigured:runtime", "--store", "memory:")
        assert code == 1
        assert "ValueError: the database is not configured" in json.loads(found.out)["error"]["message"]
        assert found.err.count("File ") == 2
        assert "unconfigured.py" in found.err


def test_worker_takes_agents_like_serve(run, place, monkeypatch):
    """As arguments and as an option; without any it says what to name."""
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(str(place))
    for arguments in (["mine:greet"], ["--agents", "mine:greet"], ["mine:greet", "--agents", "mine:leaf"]):
        code, found = run("worker", *arguments, "--store", "memory:")
        assert (code, json.loads(found.out)["error"]["field"]) == (2, "--store")
    assert run("worker", "--store", "memory:")[0] == 3


def test_tokens(monkeypatch):
    """TOKEN, PRINCIPAL=TOKEN, and base64 with padding."""
    assert parse_token("alice=a=b") == ("a=b", "alice")
    assert parse_token("=x") == ("=x", "operator")
    monkeypatch.delenv(VARIABLE, raising=False)
    assert environment_tokens() == {}
    with pytest.raises(ValueError, match=VARIABLE):
        amends.arcp.Runtime()
    monkeypatch.setenv(VARIABLE, "bob=tok")
    assert environment_tokens() == {"tok": "bob"}
    amends.arcp.Runtime()


def test_a_tree_of_a_strange_listing():
    """A parent that is not listed, and a cycle, which no root leads to."""
    entries = [
        JobEntry("c", parent_job_id="gone"),
        JobEntry("b2", parent_job_id="a"),
        JobEntry("b1", parent_job_id="a"),
        JobEntry("a"),
        JobEntry("x", parent_job_id="y"),
        JobEntry("y", parent_job_id="x"),
    ]
    assert [(depth, entry.job_id) for depth, entry in tree(entries)][:4] == [
        (0, "c"),
        (0, "a"),
        (1, "b1"),
        (1, "b2"),
    ]


@pytest.mark.parametrize(
    "module", ["amends.errors", "amends.errors.arcp", "amends.arcp.errors", "amends.errors.task"]
)
def test_importing_everything_keeps_the_builtin(module):
    """`import *` does not replace TimeoutError, which can still be imported by its name."""
    names = {}
    exec(f"from {module} import *", names)
    assert names.get("TimeoutError", BuiltinTimeoutError) is BuiltinTimeoutError
    exec(f"from {module} import TimeoutError", names)
    assert issubclass(names["TimeoutError"], BuiltinTimeoutError)
    assert names["TimeoutError"] is not BuiltinTimeoutError


async def test_files_with_credentials(tmp_path):
    """A new store is readable by its owner only, with the files that SQLite puts beside it."""
    runtime = amends.arcp.Runtime(f"sqlite:///{tmp_path}/jobs.db", tokens={"secret": "alice"})
    async with runtime:
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes.keys() >= {"jobs.db", "jobs.db-wal"}
    assert set(modes.values()) == {0o600}
