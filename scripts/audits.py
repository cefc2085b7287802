"""
Audit other projects' software and print the table of docs/audit.md: make audits

MCP servers are installed from PyPI (an environment each) and npm below the folder that is given; the default applications of web
frameworks run in this process. Nothing is sent to other machines by the audit itself.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from amends.audit.surfaces import SurfaceReport, score
from amends.audit.surfaces.http import observe_http
from amends.audit.surfaces.mcp import observe_mcp
from amends.audit.surfaces.text import headline

PYPI: dict[str, list[str]] = {
    "mcp-server-time": [],
    "mcp-server-fetch": [],
    "mcp-server-git": ["--repository", "."],
    "mcp-server-calculator": [],
    "wikipedia-mcp": [],
    "markitdown-mcp": [],
    "mcp-simple-arxiv": [],
    "arxiv-mcp-server": [],
}
NPM: dict[str, list[str]] = {
    "@modelcontextprotocol/server-everything": ["mcp-server-everything"],
    "@modelcontextprotocol/server-filesystem": ["mcp-server-filesystem", "."],
    "@modelcontextprotocol/server-memory": ["mcp-server-memory"],
    "@modelcontextprotocol/server-sequential-thinking": ["mcp-server-sequential-thinking"],
}


def fastapi_app() -> Any:
    """Return a default application of Fastapi."""
    from fastapi import FastAPI

    app = FastAPI()

    @app.get("/items/{number}")
    async def item(number: int) -> dict[str, int]:
        return {"number": number}

    return app


def starlette_app() -> Any:
    """Return a default application of Starlette."""
    from starlette.applications import Starlette

    return Starlette()


def litestar_app() -> Any:
    """Return a default application of Litestar."""
    from litestar import Litestar, get
    from litestar.openapi.config import OpenAPIConfig

    @get("/items/{number:int}")
    async def item(number: int, limit: int = 1) -> dict[str, int]:
        return {"number": number}

    return Litestar([item], openapi_config=OpenAPIConfig(title="x", version="1", path="/"))


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


ASGI: dict[str, Callable[[], Any]] = {
    "fastapi": fastapi_app,
    "starlette": starlette_app,
    "litestar": litestar_app,
    "quart": quart_app,
}
WSGI: dict[str, Callable[[], Any]] = {"flask": flask_app, "django": django_app}


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing."""


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve a WSGI application on a free port of this machine."""
    server = make_server("127.0.0.1", 0, app, handler_class=_Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def installed(name: str, folder: Path) -> list[str]:
    """Install an MCP server below the folder, and return the command without its arguments."""
    if name in PYPI:
        home = folder / name
        if not home.exists():
            subprocess.run([sys.executable, "-m", "venv", home], check=True)
            subprocess.run([home / "bin" / "python", "-m", "pip", "install", "-q", name], check=True)
        return [str(home / "bin" / name)]
    subprocess.run(["npm", "install", "--silent", "--no-save", "--prefix", folder / "npm", name], check=True)
    return [str(folder / "npm" / "node_modules" / ".bin" / NPM[name][0])]


def version_of(package: str) -> str:
    """Return the installed version of a framework."""
    from importlib.metadata import version

    return version(package)


def row(name: str, version: str, report: SurfaceReport) -> str:
    """Return a row of the table."""
    worst = report.findings[0].asks if report.findings else "none"
    return f"| {name} | {version} | {headline(report)} | {worst} | {report.largest:,} |"


def main(folder: Path) -> None:
    """Audit everything and print the table."""
    folder.mkdir(parents=True, exist_ok=True)
    print("| target | version | score | worst finding | largest failure, bytes |\n|---|---|---|---|---|")
    for name, make in ASGI.items():
        report = score(asyncio.run(observe_http("http://testserver", app=make())))
        print(row(name, version_of(name), report), flush=True)
    for name, make in WSGI.items():
        with serving(make()) as url:
            print(row(name, version_of(name), score(asyncio.run(observe_http(url)))), flush=True)
    for name, arguments in {**PYPI, **{name: each[1:] for name, each in NPM.items()}}.items():
        try:
            command = [*installed(name, folder), *arguments]
            report = score(asyncio.run(observe_mcp(command=command)))
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"| {name} | – | not audited: {type(error).__name__} | | |", flush=True)
            continue
        print(row(name, report.version or "–", report), flush=True)
        (folder / f"{name.replace('/', '_')}.json").write_text(json.dumps(report.findings, default=repr))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ".venv-audits"))
