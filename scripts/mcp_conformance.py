"""
Run the MCP conformance suite and the Inspector's command line against a server, bare and guarded.

    python scripts/mcp_conformance.py FOLDER --server path/to/everything-server/server.py

FOLDER gets Node 22 and the npm packages; nothing is installed into the repository. The server is the one that the Python
SDK keeps for this suite (`examples/servers/everything-server` in its repository): a module with an MCPServer called `mcp`.
Prints a table, and exits with 1 if a check passes bare and fails guarded.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import runpy
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["CONFORMANCE", "INSPECTOR", "SPECS", "install", "main", "run_server", "serve_here"]

CONFORMANCE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
NODE = "node@22"
SPECS = ("2025-11-25", "2026-07-28")


def install(folder: Path) -> dict[str, str]:
    """Install Node 22 and the packages into a folder, and return the environment to run them in."""
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("npm is needed: apt-get install npm")
    folder.mkdir(parents=True, exist_ok=True)
    path = f"{folder / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    for packages in ((NODE,), (CONFORMANCE, INSPECTOR)):
        # The packages check the version of Node, so Node comes first.
        command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), *packages]
        subprocess.run(command, cwd=folder, env=environment, check=True, timeout=900)
    return environment


def serve_here(server: Path, port: int, *, guarded: bool) -> None:
    """Run the server in this process."""
    module = runpy.run_path(str(server), run_name="everything_server")
    if guarded:
        from amends.bindings.mcp import guard

        guard(module["mcp"])
    module["mcp"].run(
        transport="streamable-http", port=port, event_store=module.get("event_store"), retry_interval=100
    )


@contextmanager
def run_server(server: Path, *, guarded: bool) -> Iterator[str]:
    """Run the server in a process of its own, and yield its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, __file__, "--serve", str(port), "--server", str(server)]
    command += ["--guarded"] if guarded else []
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as process:
        try:
            for _ in range(300):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                if process.poll() is not None:
                    raise SystemExit("the server ended")
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()
            process.wait(30)


def _suite(url: str, spec: str, environment: dict[str, str], results: Path) -> dict[str, str]:
    """Run the suite for one version of the protocol; return the status of every check."""
    command = ["conformance", "server", "--url", url, "--spec-version", spec, "-o", str(results)]
    subprocess.run(command, env=environment, capture_output=True, timeout=1200, check=False)
    found = {}
    for each in sorted(results.rglob("checks.json")):
        for check in json.loads(each.read_text()):
            if check["status"] in {"SUCCESS", "FAILURE"}:
                # Folders end with the time of the run.
                scenario = re.sub(r"-\d{4}-\d\d-\d\dT.*$", "", each.parent.name)
                name = f"{spec} {scenario} {check['id']}"
                found[name] = check["status"] if found.get(name) != "FAILURE" else "FAILURE"
    return found


def _inspector(url: str, environment: dict[str, str]) -> dict[str, str]:
    """List the tools, and call one that works, one that fails and one that does not exist."""
    found = {}
    call = ["--method", "tools/call", "--tool-name"]
    for name, options in {
        "list": ["--method", "tools/list"],
        "works": [*call, "test_simple_text"],
        "fails": [*call, "test_error_handling"],
        "unknown": [*call, "no_such_tool"],
    }.items():
        command = ["mcp-inspector", "--cli", url, "--transport", "http", *options]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        # An error is printed too: the result on stdout, or what the Inspector says about it on stderr.
        readable = (done.stdout or done.stderr).lstrip().startswith("{")
        found[f"inspector {name}"] = "SUCCESS" if readable else "FAILURE"
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run everything, print a table, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, help="where to install and to write results")
    parser.add_argument("--server", type=Path, required=True, help="the SDK's everything-server/server.py")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--guarded", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve is not None:
        serve_here(options.server, options.serve, guarded=options.guarded)
        return 0
    if options.folder is None:
        parser.error("a folder outside of the repository is needed")
    folder: Path = options.folder.resolve()
    environment = install(folder)
    found: dict[str, dict[str, str]] = {}
    for name in ("bare", "guarded"):
        with run_server(options.server.resolve(), guarded=name == "guarded") as url:
            found[name] = {}
            for spec in SPECS:
                results = folder / "results" / name / spec
                shutil.rmtree(results, ignore_errors=True)
                results.mkdir(parents=True)
                found[name] |= _suite(url, spec, environment, results)
            found[name] |= _inspector(url, environment)
    print("| checks that pass | bare | guarded |\n|---|---|---|")
    for group in (*SPECS, "inspector"):
        print(f"| {group} | {_count(found['bare'], group)} | {_count(found['guarded'], group)} |")
    worse = [
        check
        for check, status in found["bare"].items()
        if status == "SUCCESS" and found["guarded"].get(check) != "SUCCESS"
    ]
    for check in worse:
        print(f"passes bare and fails guarded: {check}")
    return 1 if worse or not found["bare"] else 0


def _count(found: dict[str, Any], group: str) -> str:
    statuses = [status for check, status in found.items() if check.startswith(group)]
    return f"{statuses.count('SUCCESS')} of {len(statuses)}"


if __name__ == "__main__":
    sys.exit(main())
