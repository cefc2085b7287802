"""A stdio server as streamable HTTP: sessions, restarts, streams; with the official client."""

import json
import sys

import pytest
from mcp import Client as SdkClient
from msgspec.structs import replace

from amends.core.policy import Policy
from amends.gateway.config import UpstreamConfig
from tests.gateway.peers import get, raw, serving
from tests.gateway.test_http_upstream import parts

SERVER = """
import json, os, sys
state = {"initialized": False}
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    def say(value):
        sys.stdout.write(json.dumps(value) + "\\n")
        sys.stdout.flush()
    if method == "initialize":
        state["initialized"] = True
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "small", "version": "1"}}
        say({"jsonrpc": "2.0", "id": id, "result": result})
    elif id is None:
        pass
    elif not state["initialized"]:
        say({"jsonrpc": "2.0", "id": id, "error": {"code": -32002, "message": "not initialized", "data": {"n": 1.50}}})
    elif method == "tools/list":
        tools = [{"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
                 {"name": "pay", "inputSchema": {"type": "object"}}]
        say({"jsonrpc": "2.0", "id": id, "result": {"tools": tools}})
    elif method == "tools/call":
        name, arguments = message["params"]["name"], message["params"].get("arguments") or {}
        if arguments.get("die") and not os.path.exists(arguments["die"]):
            open(arguments["die"], "w").close()
            os._exit(1)
        if arguments.get("notify"):
            say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "half"}})
        failure = arguments.get("fail")
        if failure == "rpc":
            say({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "no"}})
            continue
        if failure == "tool":
            say({"jsonrpc": "2.0", "id": id, "result": {"isError": True, "content": [{"type": "text", "text": "no"}]}})
            continue
        if failure == "busy" and state.setdefault("busy", 0) < 1:
            state["busy"] += 1
            error = {"code": "RATE_LIMITED", "message": "Too many", "recovery": "transient", "retry_after": 0.01}
            result = {"isError": True, "content": [], "structuredContent": {"adcp_error": error}}
            say({"jsonrpc": "2.0", "id": id, "result": result})
            continue
        say({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": name}]}})
    else:
        say({"jsonrpc": "2.0", "id": id, "result": {}})
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "server.py"
    path.write_text(SERVER)
    return UpstreamConfig(name="small", kind="stdio", command=(sys.executable, str(path)), prefix="/mcp")


async def post(gateway, message, *headers, path="/mcp"):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    accept = b"accept: application/json, text/event-stream"
    request = get(path, b"content-type: application/json", accept, *headers, method="POST", body=body)
    return parts(await raw(gateway, request))


async def opened(gateway, path="/mcp"):
    message = {"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
    _, headers, _ = await post(gateway, message, path=path)
    return b"mcp-session-id: " + dict(headers)[b"mcp-session-id"]


def call(id, name, **arguments):
    return {"id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


async def test_sessions_and_restarts(config, tmp_path):
    """A read-only tool is sent again to a new process; another one is an error, and the session goes on."""
    async with serving(config) as gateway:
        session = await opened(gateway)
        await post(gateway, {"id": 1, "method": "tools/list"}, session)
        _, _, body = await post(gateway, call("a", "look", die=str(tmp_path / "1")), session)
        assert json.loads(body)["result"]["content"][0]["text"] == "look"
        _, _, body = await post(gateway, call("b", "pay", die=str(tmp_path / "2")), session)
        assert json.loads(body)["id"] == "b"
        assert json.loads(body)["error"]["data"]["adcp_error"]["code"] == "SERVICE_UNAVAILABLE"
        _, _, body = await post(gateway, call(3, "pay"), session)
        assert json.loads(body)["id"] == 3
        assert json.loads(body)["result"]
        assert (gateway.statuses()[0].recovered, gateway.statuses()[0].failed) == (1, 1)


def facts(headers):
    """Return the headers of the gateway, without the trace id."""
    found = {name: value for name, value in headers if name.startswith(b"amends-")}
    assert len(found.pop(b"amends-trace", b"x" * 32)) == 32
    return found


@pytest.mark.parametrize("failure", ["rpc", "tool"])
async def test_a_failure_names_its_upstream_and_is_translated_when_asked(config, failure):
    """The failure passes unchanged with the gateway's headers, or as an AdCP error of the tool with `translate`."""
    async with serving(config, replace(config, name="other", prefix="/other", translate="adcp")) as gateway:
        session = await opened(gateway)
        _, headers, body = await post(gateway, call(5, "pay", fail=failure), session)
        assert "adcp_error" not in body.decode()
        assert facts(headers) == {
            b"amends-upstream": b"small",
            b"amends-tries": b"1",
            b"amends-waited": b"0.000",
        }
        assert facts((await post(gateway, call(6, "pay"), session))[1]) == {}
        session = await opened(gateway, "/other")
        _, _, body = await post(gateway, call(7, "pay", fail=failure), session, path="/other")
        found = json.loads(body)
        assert (found["id"], found["result"]["isError"]) == (7, True)
        assert found["result"]["structuredContent"]["adcp_error"]["code"] == "SERVICE_UNAVAILABLE"


async def test_a_failure_that_invites_a_repeat_is_repeated(config):
    """As of a server over HTTP, within the upstream's policy."""
    for attempts, tries in ((3, b"2"), (1, b"1")):
        async with serving(replace(config, policy=Policy(attempts=attempts))) as gateway:
            session = await opened(gateway)
            _, headers, body = await post(gateway, call(5, "pay", fail="busy"), session)
            assert facts(headers)[b"amends-tries"] == tries
            assert ("RATE_LIMITED" in body.decode()) == (attempts == 1)
            status = gateway.statuses()[0]
            assert (status.recovered, status.failed) == ((1, 0) if attempts > 1 else (0, 1))


async def test_a_body_that_is_larger_than_allowed(config):
    """`max_body` bounds the messages of a command, too."""
    async with serving(replace(config, max_body=1000)) as gateway:
        assert (await post(gateway, call(1, "pay", text="x" * 2000)))[0] == 413


async def test_messages_before_the_response_make_a_stream(config):
    """The response is the last event."""
    async with serving(config) as gateway:
        session = await opened(gateway)
        _, headers, body = await post(gateway, call(1, "look", notify=True), session)
        assert dict(headers)[b"content-type"] == b"text/event-stream"
        assert body.index(b"notifications/message") < body.index(b'"result"')


async def test_errors_pass_unchanged_and_wrong_requests_are_refused(config):
    """Without a session one process serves; numbers are as they were written."""
    async with serving(config) as gateway:
        _, _, body = await post(gateway, {"id": 1, "method": "tools/list"})
        assert b'"data": {"n": 1.5}' in body
        assert (await post(gateway, call(1, "x"), b"mcp-session-id: gone"))[0] == 404
        assert parts(await raw(gateway, get("/mcp", method="POST", body=b"[]")))[0] == 400
        assert parts(await raw(gateway, get("/mcp")))[0] == 405
        session = await opened(gateway)
        assert (await post(gateway, {"method": "notifications/initialized"}, session))[0] == 202
        assert parts(await raw(gateway, get("/mcp", session, method="DELETE")))[0] == 204
        assert (await post(gateway, call(1, "x"), session))[0] == 404


async def test_a_command_that_does_not_start():
    """The caller gets an error of its request."""
    config = UpstreamConfig(name="none", kind="stdio", command=("/nonexistent/server",), prefix="/mcp")
    async with serving(config) as gateway:
        _, _, body = await post(gateway, {"id": 1, "method": "tools/list"})
        assert json.loads(body)["error"]["data"]["adcp_error"]["code"] == "SERVICE_UNAVAILABLE"


async def test_the_official_client(config):
    """It initializes, lists and calls through the gateway."""
    async with serving(config) as gateway, SdkClient(f"{gateway.url}/mcp") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["look", "pay"]
        assert (await client.call_tool("look", {})).content[0].text == "look"


EAGER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    answer = {"jsonrpc": "2.0", "id": id}
    if id is None:
        continue
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
    elif method == "tools/call":
        open(sys.argv[1], "a").write(".")
        answer["error"] = {"code": int(sys.argv[2]), "message": "Refused, nothing was done"}
    else:
        answer["error"] = {"code": -32601, "message": "Method not found"}
    sys.stdout.write(json.dumps(answer) + "\\n")
    sys.stdout.flush()
"""


@pytest.mark.parametrize(("code", "sent"), [(-32000, 1), (-32002, 1), (-32602, 1), (-32600, 2), (-32601, 2)])
async def test_a_call_that_may_have_happened_is_not_sent_in_the_other_generation(tmp_path, code, sent):
    """A tool of an older server fails after its effect: the call of a newer client is not sent again, and the next one is translated."""
    script, paid = tmp_path / "server.py", tmp_path / "paid"
    script.write_text(EAGER)
    command = (sys.executable, str(script), str(paid), str(code))
    config = UpstreamConfig(name="shop", kind="stdio", command=command, prefix="/mcp")
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    call = {
        "id": 1,
        "method": "tools/call",
        "params": {"name": "pay", "arguments": {}, "_meta": meta},
    }
    async with serving(config) as gateway:
        _, _, body = await post(gateway, call)
        assert json.loads(body)["error"]["code"] == code
        assert len(paid.read_text()) == sent
        await post(gateway, call)
        assert len(paid.read_text()) == sent + 1
