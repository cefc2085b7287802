"""
Run the MCP conformance suite and the Inspector's command line: bare, with amends, and through the gateway.

    python scripts/mcp_conformance.py FOLDER

FOLDER gets Node 22 and the npm packages; nothing is installed into the repository. The suite tests a server, the one in
tests/bindings/conformance, and a client, `mcp.Client` and `amends.bindings.mcp.Client`. Prints tables, and exits with 1 if a
check passes bare and fails otherwise. `--only gateway` leaves the others out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from amends import extract

__all__ = ["CONFORMANCE", "INSPECTOR", "SPECS", "install", "main", "run_gateway", "run_server", "run_suite"]

CONFORMANCE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
NODE = "node@22"
SPECS = ("2025-11-25", "2026-07-28")
PROGRAMS = Path(__file__).parents[1] / "tests" / "bindings" / "conformance"
_TIMEOUT = 240_000
"""Milliseconds for a scenario. The suite runs the scenarios of a client all at once."""

Found = dict[str, str]


def install(folder: Path, *packages: str) -> dict[str, str]:
    """Install Node 22 and packages into a folder, and return the environment to run them in."""
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("npm is needed: apt-get install npm")
    folder.mkdir(parents=True, exist_ok=True)
    path = f"{folder / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    # The packages check the version of Node, so Node comes first.
    for wanted in ((NODE,), packages):
        command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), *wanted]
        subprocess.run(command, cwd=folder, env=environment, check=True, timeout=900)
    return environment


@contextmanager
def run_server(kind: str, program: Path = PROGRAMS / "server.py") -> Iterator[str]:
    """Run a server program in a process of its own, and yield its URL."""
    port = _free_port()
    with _running([sys.executable, str(program), kind, str(port)], port):
        yield f"http://127.0.0.1:{port}/mcp"


@contextmanager
def run_gateway(url: str, folder: Path) -> Iterator[str]:
    """Run a gateway in front of a server, and yield the address of the server behind it."""
    port = _free_port()
    folder.mkdir(parents=True, exist_ok=True)
    record = f"sqlite:///{folder / 'record.db'}"
    options = ["--mcp", "--listen", f"127.0.0.1:{port}", "--record", record]
    with _running([sys.executable, "-m", "amends", "gateway", *options, url], port):
        yield f"http://127.0.0.1:{port}/mcp"


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def _running(command: list[str], port: int) -> Iterator[None]:
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as process:
        try:
            for _ in range(600):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                if process.poll() is not None:
                    raise SystemExit("the server ended")
                time.sleep(0.1)
            yield
        finally:
            process.terminate()
            process.wait(30)


def run_suite(options: list[str], spec: str, environment: dict[str, str], results: Path) -> Found:
    """Run the suite for one version of the protocol; return the status of every check."""
    found = _run_scenarios([*options, "--suite", "all"], spec, environment, results / "all")
    # A scenario that failed beside the others is run once more, alone.
    for scenario in sorted({name.split()[0] for name, status in found.items() if status == "FAILURE"}):
        alone = _run_scenarios([*options, "--scenario", scenario], spec, environment, results / "alone")
        found |= {name: status for name, status in alone.items() if name.split()[0] == scenario}
    return found


def _run_scenarios(options: list[str], spec: str, environment: dict[str, str], results: Path) -> Found:
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    command = [
        "conformance",
        *options,
        "--spec-version",
        spec,
        "--timeout",
        str(_TIMEOUT),
        "-o",
        str(results),
    ]
    subprocess.run(command, env=environment, capture_output=True, timeout=3000, check=False)
    found: Found = {}
    for each in sorted(results.rglob("checks.json")):
        # Folders are named after the scenario (a server's with "server-" before it) and end with the time of the run.
        scenario = re.sub(r"-\d{4}-\d\d-\d\dT.*$", "", str(each.parent.relative_to(results)))
        scenario = scenario.removeprefix("server-") if options[0] == "server" else scenario
        for check in json.loads(each.read_text()):
            if check["status"] in {"SUCCESS", "FAILURE"}:
                name = f"{scenario} {check['id']}"
                found[name] = check["status"] if found.get(name) != "FAILURE" else "FAILURE"
    return found


_CALL = ("--method", "tools/call", "--tool-name")
_INSPECTOR: dict[str, tuple[tuple[str, ...], int, Callable[[Any, Any, bool], bool]]] = {
    "list": (
        ("--method", "tools/list"),
        0,
        lambda out, err, guarded: "test_simple_text" in [tool["name"] for tool in out["tools"]],
    ),
    "works": ((*_CALL, "test_simple_text"), 0, lambda out, err, guarded: out["isError"] is False),
    "fails": (
        (*_CALL, "test_error_handling"),
        5,
        lambda out, err, guarded: (
            out["isError"] is True
            and err["error"]["code"] == "tool_is_error"
            and (
                not guarded
                or getattr(extract(out, "mcp", native=False), "code", None) == "SERVICE_UNAVAILABLE"
            )
        ),
    ),
    "unknown": (
        (*_CALL, "no_such_tool"),
        5,
        lambda out, err, guarded: out is None and err["error"]["code"] == "tool_not_found",
    ),
    "resource": (
        ("--method", "resources/read", "--uri", "test://none"),
        1,
        lambda out, err, guarded: out is None and bool(err["error"]["message"]),
    ),
}
"""By case: the options, the exit code, and a test of what the Inspector prints on stdout and stderr, both JSON."""


def run_inspector(url: str, environment: dict[str, str], *, guarded: bool) -> Found:
    """Run the cases of the Inspector's command line."""
    found = {}
    for name, (options, exit, test) in _INSPECTOR.items():
        command = ["mcp-inspector", "--cli", url, "--transport", "http", *options]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        try:
            printed = [json.loads(text) if text.strip() else None for text in (done.stdout, done.stderr)]
            passed = done.returncode == exit and test(*printed, guarded)
        except (ValueError, KeyError, TypeError):
            passed = False
        found[name] = "SUCCESS" if passed else "FAILURE"
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run everything, print a table for servers and one for clients, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("folder", type=Path, help="where to install and to write results")
    parser.add_argument("--only", choices=(*_SERVERS, "client"), help="compare this only")
    options = parser.parse_args(arguments)
    folder: Path = options.folder.resolve()
    environment = install(folder, CONFORMANCE, INSPECTOR)
    worse = False
    if options.only != "client":
        kinds = ("bare", *((options.only,) if options.only else _SERVERS))
        worse |= _compare({kind: _test_server(kind, folder, environment) for kind in kinds})
    if options.only in {None, "client"}:
        worse |= _compare({kind: _test_client(kind, folder, environment) for kind in ("bare", "amends")})
    return int(worse)


_SERVERS = ("guarded", "gateway")
"""What the bare server is compared with."""


def _test_server(kind: str, folder: Path, environment: dict[str, str]) -> dict[str, Found]:
    with ExitStack() as stack:
        url = stack.enter_context(run_server("guarded" if kind == "guarded" else "bare"))
        if kind == "gateway":
            url = stack.enter_context(run_gateway(url, folder))
        found = {
            f"server, protocol {spec}": run_suite(
                ["server", "--url", url], spec, environment, folder / "results" / kind / spec
            )
            for spec in SPECS
        }
        found["Inspector: " + ", ".join(_INSPECTOR)] = run_inspector(
            url, environment, guarded=kind == "guarded"
        )
        return found


def _test_client(kind: str, folder: Path, environment: dict[str, str]) -> dict[str, Found]:
    command = f"{sys.executable} {PROGRAMS / 'client.py'} {kind}"
    return {
        f"client, protocol {spec}": run_suite(
            ["client", "--command", command], spec, environment, folder / "results" / f"client-{kind}" / spec
        )
        for spec in SPECS
    }


def _compare(kinds: dict[str, dict[str, Found]]) -> bool:
    """Print a table, and return whether a check passes bare and fails otherwise."""
    print(f"| checks that pass | {' | '.join(kinds)} |\n|---|{'---|' * len(kinds)}")
    bare = kinds["bare"]
    for row in bare:
        print(f"| {row} | {' | '.join(_count(found[row]) for found in kinds.values())} |")
    worse = [
        f"passes bare and fails {kind}: {row}: {check}"
        for kind, found in kinds.items()
        for row, checks in bare.items()
        for check, status in checks.items()
        if status == "SUCCESS" and found[row].get(check) != "SUCCESS"
    ]
    print("\n".join(worse))
    return bool(worse) or not all(bare.values())


def _count(found: Found) -> str:
    return f"{list(found.values()).count('SUCCESS')} of {len(found)}"


if __name__ == "__main__":
    sys.exit(main())
