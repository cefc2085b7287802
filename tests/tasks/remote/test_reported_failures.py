"""A failure inside a successful HTTP response is never taken for a result, and codes of the contract arrive unchanged."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from amends.tasks.remote.command import Command, CommandAgent
from amends.tasks.remote.http import Endpoint, HttpAgent
from amends.tasks.remote.reported_failures import reported_failure
from tests.http.serving import serve
from tests.tasks.remote.orchestrated import orchestrated

TASK = {
    "id": "t",
    "status": "failed",
    "error": {"code": "KNOWLEDGE_NOT_FOUND", "message": "m", "recoverable": False},
}
FAILURES = {
    "a bare status": ({"status": "failed"}, "INTERNAL_ERROR"),
    "a task": (TASK, "KNOWLEDGE_NOT_FOUND"),
    "an envelope": (
        {"ok": False, "error": {"code": "TIMEOUT", "message": "m", "retryable": True}},
        "TIMEOUT",
    ),
    "an empty envelope": ({"ok": False}, "INTERNAL_ERROR"),
    "an MCP result": ({"content": [{"type": "text", "text": "no"}], "isError": True}, "INTERNAL_ERROR"),
    "an MCP answer": (
        {"jsonrpc": "2.0", "id": 1, "result": {"content": [], "isError": True}},
        "INTERNAL_ERROR",
    ),
    "a JSON-RPC error": (
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "m"}},
        "INTERNAL_ERROR",
    ),
    "an A2A task": (
        {"id": "1", "kind": "task", "contextId": "c", "status": {"state": "failed"}},
        "INTERNAL_ERROR",
    ),
    "an A2A 1.0 task": (
        {"id": "1", "contextId": "c", "status": {"state": "TASK_STATE_FAILED"}},
        "INTERNAL_ERROR",
    ),
    "a status in capitals": ({"status": "FAILED"}, "INTERNAL_ERROR"),
    "no success": ({"success": False, "error": {"code": "TIMEOUT", "message": "m"}}, "TIMEOUT"),
    "a cancelled A2A task": (
        {"task": {"id": "1", "contextId": "c", "status": {"state": "TASK_STATE_CANCELED"}}},
        "INTERNAL_ERROR",
    ),
    "a problem without a type": ({"title": "t", "detail": "d", "status": 503}, "AGENT_UNAVAILABLE"),
    "a problem": ({"type": "about:blank", "title": "t", "status": 503}, "AGENT_UNAVAILABLE"),
}
RESULTS = [
    {"status": "rejected", "loan": 7},
    {"code": "DE", "message": "Germany"},
    {"status": 500, "name": "a measurement"},
    {"error": None, "ok": True},
    {"success": False, "tries": 3},
    {"jsonrpc": "2.0", "id": 1, "result": {"fine": True}},
    {"status": {"state": "completed"}},
    [{"status": "failed"}],
    "failed",
    None,
]


NAMES = st.sampled_from(
    ["status", "ok", "error", "result", "task", "isError", "jsonrpc", "type", "title", "success"]
)


@pytest.mark.parametrize("result", RESULTS)
def test_a_result_is_no_failure(result):
    assert reported_failure(result, "application/json") is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 999) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(st.dictionaries(NAMES, JSON, max_size=5), st.sampled_from([*FAILURES]))
def test_whatever_else_a_document_says(document, name):
    """A document that reports a failure is one with any further members; no document raises."""
    reported_failure(document, "application/json")
    failed, _ = FAILURES[name]
    assert reported_failure({**document, **failed}, "application/json") is not None


async def test_failures_in_successful_responses():
    """Through the orchestrator, with a real server."""

    async def answer(request):
        name = request.path_params["name"]
        if name == "moved":
            return RedirectResponse("/fine", status_code=302)
        if name == "elsewhere":
            return RedirectResponse("/fine", status_code=307)
        if name == "fine":
            return JSONResponse({"fine": True})
        if name.isdigit():
            return Response(status_code=int(name))
        if name == "own-code":
            problem = {"title": "t", "status": 404, "code": "KNOWLEDGE_NOT_FOUND", "recovery": "terminal"}
            return JSONResponse(problem, status_code=404, media_type="application/problem+json")
        return JSONResponse(FAILURES[name][0])

    app = Starlette(routes=[Route("/{name}", answer, methods=["GET", "POST"])])
    with serve(app) as base:
        names = [*FAILURES, "moved", "elsewhere", "fine", "own-code", "401", "403"]
        endpoints = {name: Endpoint(url=f"{base}/{name.replace(' ', '%20')}") for name in names}
        endpoints["follow"] = Endpoint(url=f"{base}/moved", method="GET")
        async with orchestrated(HttpAgent("remote", endpoints)) as orchestrator:

            async def run(name):
                return await orchestrator.run(name, retry_policy={"maxAttempts": 1}, timeout=60)

            for name, (_, code) in FAILURES.items():
                response = await run(name)
                assert response.status == "failed", name
                assert response.error.code == code, name
            assert (await run("follow")).result == {"fine": True}
            moved = (await run("moved")).error
            assert (moved.code, moved.recovery) == ("AGENT_UNAVAILABLE", "terminal")
            # Many services process a POST and redirect to its result.
            assert (moved.executed, moved.details["inDoubt"]) == ("maybe", ["moved"])
            assert (await run("elsewhere")).error.executed == "no"
            assert (await run("own-code")).error.code == "KNOWLEDGE_NOT_FOUND"
            assert (await run("401")).error.code == "MCP_AUTH_FAILED"
            assert (await run("403")).error.recovery == "terminal"


async def test_codes_of_a_command(tmp_path):
    envelope = '{"ok": false, "error": {"code": "KNOWLEDGE_NOT_FOUND", "message": "m", "retryable": false}}'
    commands = {
        "fails": Command(argv=[sys.executable, "-c", f"print('{envelope}'); exit(4)"]),
        "gone": Command(argv=["/nonexistent/program"]),
        "unknown": Command(argv=["no-such-program-anywhere"]),
        "script": Command(argv=[str(tmp_path / "script")]),
        "no directory": Command(argv=[sys.executable], cwd="/nonexistent"),
        "not executable": Command(argv=[__file__]),
    }
    (tmp_path / "script").write_text("#!/nonexistent/interpreter\n")
    (tmp_path / "script").chmod(0o755)
    async with orchestrated(CommandAgent("tools", commands)) as orchestrator:
        assert (await orchestrator.run("fails")).error.code == "KNOWLEDGE_NOT_FOUND"
        for name in [*commands][1:]:
            error = (await orchestrator.run(name)).error
            assert (error.code, error.executed) == ("CAPABILITY_NOT_FOUND", "no")
