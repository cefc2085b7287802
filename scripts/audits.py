"""
Audit other projects' software and print the table of docs/audit.md: make audits

MCP servers, applications and sample agents are installed from PyPI (an environment each) and npm (a folder each) below the folder
that is given, and listen on loopback; the default applications of web frameworks run in this process. The runtime of ARCP's
TypeScript SDK is built from its repository (ARCP_TYPESCRIPT_SDK may name a copy). Only the safe probes are sent,
but the agents get the message of --writes. What was
sent and answered is kept as JSON in the folder; names after it select targets:

    python scripts/audits.py .venv-audits                    # all of them
    python scripts/audits.py .venv-audits datasette flask    # these
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec

from amends.audit.surfaces import Evidence, SurfaceReport, score
from amends.audit.surfaces.a2a import observe_a2a
from amends.audit.surfaces.arcp import observe_arcp
from amends.audit.surfaces.http import observe_http
from amends.audit.surfaces.mcp import observe_mcp
from amends.audit.surfaces.text import headline

Audited = tuple[str, Evidence, float]
"""The version of a target, what it answered, and the seconds that took."""
ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # for the runtimes that the tests use

# MCP servers on pipes: the arguments of the command, which has the name of the package.
PYPI: dict[str, list[str]] = {
    "mcp-server-time": [],
    "mcp-server-fetch": [],
    "mcp-server-git": ["--repository", str(ROOT)],
    "mcp-server-calculator": [],
    "mcp-server-sqlite": ["--db-path", "{folder}/audit.db"],
    "mcp-text-editor": [],
    "excel-mcp-server": ["stdio"],
    "wikipedia-mcp": [],
    "markitdown-mcp": [],
    "arxiv-mcp-server": [],
    "duckduckgo-mcp-server": [],
}
# What some of them need beside themselves: they call the SDK as it was before 2.0.
BESIDE: dict[str, list[str]] = {"mcp-server-sqlite": ["mcp<2"], "mcp-text-editor": ["mcp<2"]}
# The name of the command, and its arguments.
NPM: dict[str, list[str]] = {
    "@modelcontextprotocol/server-everything": ["mcp-server-everything"],
    "@modelcontextprotocol/server-filesystem": ["mcp-server-filesystem", "{folder}"],
    "@modelcontextprotocol/server-memory": ["mcp-server-memory"],
    "@modelcontextprotocol/server-sequential-thinking": ["mcp-server-sequential-thinking"],
    "@upstash/context7-mcp": ["context7-mcp"],
    "@eslint/mcp": ["mcp"],
    "mcp-mermaid": ["mcp-mermaid"],
}
# Applications: their commands.
APPS: dict[str, list[str]] = {
    "datasette": ["datasette", "--host", "127.0.0.1", "--port", "{port}", "--memory"],
    "jupyter_server": [
        *("jupyter-server", "--allow-root", "--no-browser", "--port={port}", "--IdentityProvider.token=audit")
    ],
    "httpbin": ["python", "-c", "import httpbin; httpbin.app.run(port={port})"],
    "pypiserver": ["pypi-server", "run", "-i", "127.0.0.1", "-p", "{port}", "{folder}"],
    "json-server": ["json-server", "--port", "{port}", "{folder}/db.json"],  # from npm
}
SAMPLES: dict[str, list[str]] = {
    "hello_world_agent": [
        *("--port", "{port}", "--grpc-port", "{other}", "--compat-grpc-port", "{third}"),
    ],
    "clustermode.server": ["--port", "{port}"],
}


def fastapi_app() -> Any:
    """Return a default application of FastAPI."""
    from fastapi import FastAPI

    app = FastAPI()

    @app.get("/items/{number}")
    async def item(number: int, limit: int = 1) -> dict[str, int]:
        return {"number": number}

    return app


def starlette_app() -> Any:
    """Return a default application of Starlette."""
    from starlette.applications import Starlette

    return Starlette()


def litestar_app() -> Any:
    """Return a default application of Litestar."""
    from litestar import Litestar, get

    @get("/items/{number:int}")
    async def item(number: int, limit: int = 1) -> dict[str, int]:
        return {"number": number}

    return Litestar([item])


def quart_app() -> Any:
    """Return a default application of Quart."""
    from quart import Quart

    return Quart("audited")


def flask_app() -> Any:
    """Return a default application of Flask."""
    from flask import Flask

    return Flask("audited")


def django_app() -> Any:
    """Return a default application of Django."""
    from django.conf import settings
    from django.core.wsgi import get_wsgi_application

    settings.configure(ROOT_URLCONF="amends_audit_urls", ALLOWED_HOSTS=["*"], SECRET_KEY="x")
    sys.modules["amends_audit_urls"] = type(sys)("amends_audit_urls")
    sys.modules["amends_audit_urls"].urlpatterns = []  # type: ignore[attr-defined]
    return get_wsgi_application()


FRAMEWORKS: dict[str, Callable[[], Any]] = {
    "fastapi": fastapi_app,
    "starlette": starlette_app,
    "litestar": litestar_app,
    "quart": quart_app,
    "flask": flask_app,
    "django": django_app,
}


# Installing and running -------------------------------------------------------------------------------------------


def from_pypi(folder: Path, name: str, *beside: str) -> tuple[Path, str]:
    """Install a package into an environment of its own; return the folder of its commands, and its version."""
    home = folder / "pypi" / name
    python = home / "bin" / "python"
    if not (home / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", name, *beside], check=True)
        (home / "installed").touch()
    asked = f"import importlib.metadata as m; print(m.version({name.partition('[')[0]!r}))"
    return home / "bin", subprocess.check_output([python, "-c", asked], text=True).strip()


def from_npm(folder: Path, name: str) -> tuple[Path, str]:
    """Install a package into a folder of its own; return the folder of its commands, and its version."""
    home = folder / "npm" / name.replace("/", "_")
    modules = home / "node_modules"
    if not (modules / name).exists():
        command = ["npm", "install", "--silent", "--no-save", "--ignore-scripts", "--prefix", home, name]
        subprocess.run(command, check=True)
    described = json.loads((modules / name / "package.json").read_text())
    return modules / ".bin", described["version"]


def free_port() -> int:
    """Return a port of this machine that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@contextmanager
def running(command: list[str], folder: Path, seconds: float = 60) -> Iterator[str]:
    """Run a server on a free port until the end of the block; yield its URL."""
    port = free_port()
    words = {"{port}": str(port), "{other}": str(free_port()), "{third}": str(free_port())}
    child = subprocess.Popen(
        [_filled(each, {**words, "{folder}": str(folder)}) for each in command],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        until = time.monotonic() + seconds
        while not _listens(port):
            if child.poll() is not None or time.monotonic() > until:
                raise OSError(f"{command[0]} did not start")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _filled(text: str, words: dict[str, str]) -> str:
    for name, value in words.items():
        text = text.replace(name, value)
    return text


def _listens(port: int) -> bool:
    with socket.socket() as trying:
        trying.settimeout(1)
        return trying.connect_ex(("127.0.0.1", port)) == 0


def timed(observing: Coroutine[Any, Any, Evidence]) -> tuple[Evidence, float]:
    """Run the probes; return the evidence, and how long that took."""
    began = time.monotonic()
    return asyncio.run(observing), time.monotonic() - began


# Targets ----------------------------------------------------------------------------------------------------------


def frameworks(folder: Path) -> Iterator[tuple[str, Callable[[], Audited]]]:
    """Yield the default applications of web frameworks."""
    for name, make in FRAMEWORKS.items():

        def audit(name: str = name, make: Callable[[], Any] = make) -> Audited:
            return version(name), *timed(observe_http("http://testserver", app=make()))

        yield name, audit


def applications(folder: Path) -> Iterator[tuple[str, Callable[[], Audited]]]:
    """Yield real applications."""
    for name, command in APPS.items():

        def audit(name: str = name, command: list[str] = command) -> Audited:
            commands, found = (from_npm if name == "json-server" else from_pypi)(folder, name)
            with tempfile.TemporaryDirectory() as home:
                (Path(home) / "db.json").write_text('{"posts": [{"id": "1", "title": "a"}]}')
                with running([str(commands / command[0]), *command[1:]], Path(home)) as url:
                    return found, *timed(observe_http(url))

        yield name, audit


def mcp_servers(folder: Path) -> Iterator[tuple[str, Callable[[], Audited]]]:
    """Yield MCP servers that start without credentials."""
    for name in [*PYPI, *NPM]:

        def audit(name: str = name) -> Audited:
            if name in PYPI:
                commands, found = from_pypi(folder, name, *BESIDE.get(name, []))
                command = [name, *PYPI[name]]
            else:
                commands, found = from_npm(folder, name)
                command = NPM[name]
            with tempfile.TemporaryDirectory() as home:
                arguments = [each.replace("{folder}", home) for each in command[1:]]
                return found, *timed(observe_mcp(command=[str(commands / command[0]), *arguments]))

        yield name, audit


def sample_agents(folder: Path) -> Iterator[tuple[str, Callable[[], Audited]]]:
    """Yield the sample agents in the source distribution of a2a-sdk."""
    for script, arguments in SAMPLES.items():

        def audit(script: str = script, arguments: list[str] = arguments) -> Audited:
            beside = ["a2a-sdk[all]", "fastapi", "uvicorn", "sse-starlette", "aiosqlite"]
            commands, found = from_pypi(folder, "a2a-sdk", *beside)
            samples = folder / "a2a-samples"
            if not samples.exists():
                get = [
                    commands / "python",
                    "-m",
                    "pip",
                    "download",
                    "-q",
                    "--no-deps",
                    "--no-binary",
                    ":all:",
                ]
                subprocess.run([*get, "--dest", samples, f"a2a-sdk=={found}"], check=True)
                (archive,) = samples.glob("*.tar.gz")
                with tarfile.open(archive) as packed:
                    packed.extractall(samples, filter="data")
            (home,) = samples.glob("*/samples")
            command = [str(commands / "python"), "-m", f"samples.{script}", *arguments]
            with running(command, home.parent) as url:
                return found, *timed(observe_a2a(url, writes=True))

        yield f"a2a-sdk {script}", audit


def runtimes(folder: Path) -> Iterator[tuple[str, Callable[[], Audited]]]:
    """Yield the runtimes of both ARCP SDKs."""

    def python() -> Audited:
        from tests.arcp.published import published_runtime

        async def observe() -> Evidence:
            async with published_runtime() as (_, url):
                return await observe_arcp(url, token="secret")

        return version("agentruntimecontrolprotocol"), *timed(observe())

    def typescript() -> Audited:
        from tests.arcp.typescript.agents import TOKEN
        from tests.arcp.typescript.sdk import checkout, sdk_runtime

        sdk = Path(checkout(folder / "arcp-typescript"))

        async def observe() -> Evidence:
            async with sdk_runtime(sdk) as url:
                return await observe_arcp(url, token=TOKEN)

        described = json.loads((sdk / "packages" / "sdk" / "package.json").read_text())
        return described["version"], *timed(observe())

    yield "ARCP Python SDK", python
    yield "ARCP TypeScript SDK", typescript


def demo(folder: Path) -> Iterator[tuple[str, Callable[[], Audited]]]:
    """Yield the services of `amends try`, without amends and with it."""
    for ours in (False, True):
        for name in ("http", "mcp", "a2a", *(["arcp"] if ours else [])):  # without amends: the SDKs' runtimes

            def audit(name: str = name, ours: bool = ours) -> Audited:
                return version("amends"), *timed(_demo(name, ours=ours))

            yield f"demo {name} {'with' if ours else 'without'} amends", audit


async def _demo(name: str, *, ours: bool) -> Evidence:
    from amends.bindings import a2a, mcp, starlette
    from amends.demo.call_record import CurrentRecord
    from amends.demo.scenario import make_scenario
    from amends.demo.services import charge, menu, table, web

    current = CurrentRecord(make_scenario(7), lambda call: None)
    with ExitStack() as stack:
        if not ours:
            stack.enter_context(patch.object(starlette, "install", lambda app: None))
            stack.enter_context(patch.object(mcp, "guard", lambda server: server))
            stack.enter_context(patch.object(a2a, "guard", lambda executor: executor))
        if name == "http":
            described = {"paths": {"/prices": {"get": {}}}}
            return await observe_http("http://testserver", app=web.app(current), openapi=described)
        if name == "arcp":
            async with charge.serving(current, "audit") as port:
                return await observe_arcp(f"ws://127.0.0.1:{port}/arcp", token="audit")
        if name == "mcp":
            app = table.server(current).streamable_http_app()
            return await observe_mcp("http://127.0.0.1:8000/mcp", app=app)
        return await observe_a2a("http://testserver", app=menu.app(current, "http://testserver"), writes=True)


WORST = {
    "retry-some": "no failure has a verdict",
    "retry-all": "some failures have no verdict",
    "failure": "a failure is reported as success",
    "when": "a retriable failure has no wait",
    "leak": "a leak",
}
"""What a question with the answer no means, for the table; others are shown as questions."""
GROUPS = (frameworks, applications, mcp_servers, sample_agents, runtimes, demo)


def row(name: str, found: str, report: SurfaceReport, seconds: float) -> str:
    """Return a row of the table."""
    first = report.findings[0] if report.findings else None
    worst = "none" if first is None else WORST.get(first.id, first.asks)
    return f"| {name} | {found} | {headline(report)} | {worst} | {report.largest:,} | {seconds:.0f} |"


def main(folder: Path, only: list[str]) -> int:
    """Audit everything and print the table; return how many targets could not be audited."""
    logging.disable(logging.CRITICAL)  # the targets' logs
    folder = folder.absolute()
    (folder / "reports").mkdir(parents=True, exist_ok=True)
    missing = 0
    print(
        "| target | version | score | worst finding | largest failure, bytes | seconds |\n|---|---|---|---|---|---|"
    )
    for group in GROUPS:
        for name, audit in group(folder):
            if only and name not in only:
                continue
            try:
                found, evidence, seconds = audit()
                report = score(evidence)
                assert report.bytes, f"{name} did not answer"
            except Exception:  # noqa: BLE001 - one target that cannot be installed must not stop the others
                traceback.print_exc()
                print(f"| {name} | – | not audited | | | |", flush=True)
                missing += 1
                continue
            print(row(name, found, report, seconds), flush=True)
            kept = msgspec.json.format(msgspec.json.encode(report))
            (folder / "reports" / f"{name.replace('/', '_').replace(' ', '-')}.json").write_bytes(kept)
    return missing


if __name__ == "__main__":
    sys.exit(1 if main(Path(sys.argv[1] if len(sys.argv) > 1 else ".venv-audits"), sys.argv[2:]) else 0)
