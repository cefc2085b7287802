"""The same score in 100 of 100 audits of the same target. Only `make soak` runs them: they take minutes."""

import asyncio
import sys

import pytest
from starlette.applications import Starlette

from amends.audit.surfaces import score
from amends.audit.surfaces.http import observe_http
from amends.audit.surfaces.mcp import observe_mcp
from amends.bindings.starlette import install
from tests.audit.test_surfaces import STDIO, agent, api, server
from tests.http.serving import serve

RUNS = 100


def outcome(report):
    """What has to be the same: the score, the findings with their probes, the questions and what was not probed."""
    met = tuple((one.id, one.met, one.because) for one in report.questions)
    return headline_of(report), tuple(one.key for one in report.findings), met, tuple(report.not_probed)


def headline_of(report):
    return report.score, report.at_least, report.at_most


@pytest.mark.soak
@pytest.mark.parametrize("ours", [False, True])
@pytest.mark.parametrize("kind", ["http", "mcp", "a2a"])
def test_a_hundred_audits_in_process(audit_http, audit_mcp, audit_a2a, kind, ours):
    """In this process, each time a new application."""
    audit = {"http": audit_http, "mcp": audit_mcp, "a2a": audit_a2a}[kind]
    make = {"http": api, "mcp": server, "a2a": agent}[kind]
    assert len({outcome(audit(make(ours=ours))) for _ in range(RUNS)}) == 1


@pytest.mark.soak
def test_a_hundred_audits_over_http():
    """Over a socket and through the gateway, each time the same running service."""
    with serve(api(ours=False)) as url:
        seen = {outcome(score(asyncio.run(observe_http(url)))) for _ in range(RUNS)}
    assert len(seen) == 1


@pytest.mark.soak
def test_a_hundred_audits_of_an_installed_service():
    """A service without a document, of which only the pages about errors are known."""
    app = Starlette()
    install(app, base_url="https://api.example")
    with serve(app) as url:
        seen = {outcome(score(asyncio.run(observe_http(url)))) for _ in range(RUNS)}
    assert [one[0] for one in seen] == [(3, 3, 3)]


@pytest.mark.soak
def test_a_hundred_audits_of_a_process(tmp_path):
    """A server on pipes, which is started three times in each audit."""
    (tmp_path / "server.py").write_text(STDIO)
    command = [sys.executable, str(tmp_path / "server.py")]
    assert len({outcome(score(asyncio.run(observe_mcp(command=command)))) for _ in range(RUNS)}) == 1


@pytest.mark.soak
async def test_a_hundred_audits_of_a_runtime():
    """Our ARCP runtime over a WebSocket."""
    from amends.arcp import Runtime
    from amends.arcp.transports.websocket import serve as listen
    from amends.audit.surfaces.arcp import observe_arcp

    runtime = Runtime(tokens={"secret": "alice"})
    seen = set()
    async with runtime, listen(runtime, port=0) as listening:
        for _ in range(RUNS):
            seen.add(
                outcome(score(await observe_arcp(f"ws://127.0.0.1:{listening.port}/arcp", token="secret")))
            )
    assert len(seen) == 1
