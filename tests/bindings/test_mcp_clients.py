"""
The official clients of other generations against a server whose tools fail, bare and guarded (`make soak`).

npm and pip install the clients into a temporary folder. The table is in docs/mcp.md.
"""

import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from scripts.mcp_conformance import INSPECTOR, install, run_server

from amends import extract

pytestmark = pytest.mark.soak

PROGRAMS = Path(__file__).parent / "mcp_clients"
NEW = "2026-07-28"
TYPESCRIPT = {"1": "@modelcontextprotocol/sdk@1", "2": "@modelcontextprotocol/client@2"}
LOST = {"TypeScript 1", "Inspector"}
"""The clients that validate the `structuredContent` of an error against the tool's output schema."""


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)
    assert done.stdout or done.returncode, done.stderr
    return done


@pytest.fixture(scope="module")
def clients(tmp_path_factory):
    """Return a function per client, which returns the results of both tools."""
    found = {}
    for version, package in TYPESCRIPT.items():
        folder = tmp_path_factory.mktemp(f"typescript-{version}")
        environment = install(folder, package)
        shutil.copy(PROGRAMS / "client.mjs", folder)
        for protocol in ("", f" {NEW}") if version == "2" else ("",):

            def typescript(url, folder=folder, version=version, protocol=protocol, environment=environment):
                command = ["node", "client.mjs", url, version, protocol.strip()]
                return json.loads(run(command, cwd=folder, env=environment).stdout)

            found[f"TypeScript {version}{protocol}"] = typescript
    folder = tmp_path_factory.mktemp("inspector")
    environment = install(folder, INSPECTOR)

    def inspector(url):
        call = ["mcp-inspector", "--cli", url, "--transport", "http", "--method", "tools/call", "--tool-name"]
        printed = {name: run([*call, name], env=environment) for name in ("shaped", "plain")}
        # A failed tool is 5, with the result on stdout. 1 is a failure of the Inspector itself.
        assert {done.returncode for done in printed.values()} <= {1, 5}
        return {
            name: json.loads(done.stdout) if done.returncode == 5 else {"thrown": done.stderr}
            for name, done in printed.items()
        }

    found["Inspector"] = inspector
    folder = tmp_path_factory.mktemp("python-1")
    venv.create(folder, with_pip=True)
    subprocess.run([folder / "bin" / "pip", "install", "-q", "mcp<2"], check=True, timeout=900)
    for name, python, protocol in (
        ("Python 1", folder / "bin" / "python", "2025-11-25"),
        ("Python 2", sys.executable, "2025-11-25"),
        (f"Python 2 {NEW}", sys.executable, NEW),
    ):

        def program(url, python=python, protocol=protocol):
            return json.loads(run([python, PROGRAMS / "client.py", url, protocol], cwd=PROGRAMS).stdout)

        found[name] = program
    return found


def has_structure(result):
    return result.get("structuredContent") is not None


@pytest.mark.parametrize("kind", ["bare", "guarded", "structured"])
def test_every_client_gets_the_error(clients, kind):
    """Guarded, every client gets the code and the wait; with `structuredContent` beside a schema, some lose the error."""
    with run_server(kind, PROGRAMS / "server.py") as url:
        results = {name: call(url) for name, call in clients.items()}
    for name, (shaped, plain) in (
        (name, (found["shaped"], found["plain"])) for name, found in results.items()
    ):
        if kind == "bare":
            assert shaped["isError"] is plain["isError"] is True, name
            assert extract(shaped, native=False) is extract(plain, native=False) is None, name
            continue
        if kind == "structured" and name in LOST:
            assert "thrown" in shaped, name
            shaped = plain
        else:
            known = name.endswith(NEW) or name.startswith("Python")
            assert has_structure(shaped) is (kind == "structured" or known), name
        assert has_structure(plain), name
        for fault in (extract(shaped, "mcp"), extract(plain, "mcp")):
            assert (fault.code, fault.retry_after, fault.executed.value) == ("RATE_LIMITED", 5, "no"), name
