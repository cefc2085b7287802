"""A stdio server that hangs, is cancelled, leaves children, or speaks the other generation; and who may call it."""

import asyncio
import json
import sys
from pathlib import Path

import pytest
from mcp import Client as SdkClient
from msgspec.structs import replace

from amends.gateway.config import GatewayConfig, UpstreamConfig
from amends.gateway.rpc import read_members
from amends.gateway.stdio_process import StdioProcess
from tests.gateway.peers import get, raw, serving
from tests.gateway.test_stdio import call, opened, post

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
SERVER = """
import json, os, sys
log, generation = open(sys.argv[1], "a", buffering=1), sys.argv[2]
def say(value):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **value}) + "\\n")
    sys.stdout.flush()
held = []
for line in sys.stdin:
    message = json.loads(line)
    log.write(line)
    method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
    modern = "io.modelcontextprotocol/protocolVersion" in (params.get("_meta") or {})
    if id is None:
        continue
    if modern and generation == "legacy" or not modern and generation == "modern":
        say({"id": id, "error": {"code": -32601, "message": "Method not found"}})
    elif method == "initialize":
        say({"id": id, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                                  "serverInfo": {"name": "small", "version": "1"}}})
    elif method == "server/discover":
        say({"id": id, "result": {"resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0,
                                  "cacheScope": "public", "capabilities": {"tools": {}}}})
    elif method == "tools/list":
        listed = {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]}
        added = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"} if modern else {}
        say({"id": id, "result": {**listed, **added}})
    elif params.get("name") == "close":
        os.close(1)
    elif params.get("name") == "hang":
        pass
    elif params.get("name") == "together":
        # Progress of both requests is sent when the second one has come.
        held.append((id, params["_meta"]["progressToken"]))
        if len(held) == 2:
            for _, token in held:
                say({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
            for number, _ in held:
                say({"id": number, "result": {"content": []}})
    else:
        added = {"resultType": "complete"} if modern else {}
        say({"id": id, "result": {"content": [{"type": "text", "text": "seen"}], **added}})
"""


@pytest.fixture
def make(tmp_path):
    """Return a function that makes the configuration of a server of one generation, or of both."""
    (tmp_path / "server.py").write_text(SERVER)

    def config(generation="both", **options):
        command = (sys.executable, str(tmp_path / "server.py"), str(tmp_path / "log"), generation)
        return UpstreamConfig(name="small", kind="stdio", command=command, prefix="/mcp", **options)

    return config


def logged(tmp_path):
    return [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]


async def test_a_server_that_hangs(make, tmp_path):
    """The call ends after the time-out, the process gets a cancellation, and the next call succeeds."""
    config = make()
    async with serving(config) as gateway:
        session = await opened(gateway)
        gateway.upstreams[0].config = replace(config, timeout=0.1)
        _, _, body = await post(gateway, call(7, "hang"), session)
        assert json.loads(body)["error"]["data"]["adcp_error"]["code"] == "SERVICE_UNAVAILABLE"
        assert gateway.statuses()[0].codes == {"TIMEOUT": 1}
        gateway.upstreams[0].config = config
        _, _, body = await post(gateway, call(8, "look"), session)
        assert json.loads(body)["result"]
    numbers = {
        each["params"]["name"]: each["id"] for each in logged(tmp_path) if each["method"] == "tools/call"
    }
    (cancelled,) = [each for each in logged(tmp_path) if each["method"] == "notifications/cancelled"]
    assert cancelled["params"]["requestId"] == numbers["hang"]


async def test_a_client_cancels_its_own_request(make, tmp_path):
    """The process knows it by another number; an unknown one is dropped."""
    async with serving(make()) as gateway:
        session = await opened(gateway)
        waiting = asyncio.create_task(post(gateway, call(40, "hang"), session))
        async with asyncio.timeout(10):
            while len([each for each in logged(tmp_path) if each["method"] == "tools/call"]) < 1:
                await asyncio.sleep(0.01)
        for id in (40, 2):
            cancel = {"method": "notifications/cancelled", "params": {"requestId": id}}
            assert (await post(gateway, cancel, session))[0] == 202
        await post(gateway, {"id": 41, "method": "tools/list"}, session)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    found = logged(tmp_path)
    number = next(each["id"] for each in found if each["method"] == "tools/call")
    cancelled = [each["params"]["requestId"] for each in found if each["method"] == "notifications/cancelled"]
    assert cancelled == [number]


async def test_progress_reaches_its_own_client(make):
    """Two clients without sessions share the process and use the same ids and tokens."""

    def together(token):
        message = call(1, "together")
        message["params"]["_meta"] = {**ENVELOPE, "progressToken": token}
        return message

    async with serving(make()) as gateway:
        found = await asyncio.gather(post(gateway, together("t")), post(gateway, together("t")))
        for _, headers, body in found:
            assert dict(headers)[b"content-type"] == b"text/event-stream"
            assert body.count(b'"progressToken":"t"') == 1
            assert body.count(b'"id":1') == 1


async def test_a_process_that_closes_its_output_is_replaced(make):
    """And it does not stay behind."""
    async with serving(make()) as gateway:
        session = await opened(gateway)
        upstream = gateway.upstreams[0]
        before = next(iter(upstream._sessions.values()))._process._process
        _, _, body = await post(gateway, call(1, "close"), session)
        assert json.loads(body)["error"]
        _, _, body = await post(gateway, call(2, "look"), session)
        assert json.loads(body)["result"]
        assert before.returncode is not None


async def test_children_of_a_process_end_with_it():
    """As with `uvx` and `npx`, which start the server as a child."""
    program = (
        "import subprocess, sys; print(subprocess.Popen(['sleep', '60']).pid, flush=True); sys.stdin.read()"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdin=-1, stdout=-1, start_new_session=True
    )
    child = int(await process.stdout.readline())
    await StdioProcess(process).stop()
    async with asyncio.timeout(10):
        while _state(child) != "Z":
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("end", ["delete", "reload"])
async def test_a_call_in_flight_does_not_start_an_ended_session_again(tmp_path, end):
    """A deleted session, and an upstream that was removed by a reload when the gateway stops, leave no process."""
    log = tmp_path / "pids"
    program = f"""
import os, sys, time
with open({str(log)!r}, "a") as log:
    log.write(str(os.getpid()) + chr(10))
line = sys.stdin.readline()
print('{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-06-18"}}}}', flush=True)
time.sleep(60)
"""
    config = UpstreamConfig(name="deaf", kind="stdio", command=(sys.executable, "-c", program), prefix="/mcp")
    async with serving(config) as gateway:
        session = await opened(gateway)
        waiting = asyncio.create_task(post(gateway, {"id": 1, "method": "tools/list"}, session))
        while gateway.in_flight < 1:
            await asyncio.sleep(0.001)
        if end == "delete":
            assert b" 204 " in await raw(gateway, get("/mcp", session, method="DELETE"))
            assert "error" in json.loads((await waiting)[2])
        else:
            gateway.reload(GatewayConfig(upstreams=()))
            await gateway.close()
    pids = log.read_text().split()
    assert [_state(pid) for pid in pids] == ["Z"]
    await asyncio.gather(waiting, return_exceptions=True)


def _state(pid):
    """Return the state of a process; Z if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


async def test_pages_of_other_sites_cannot_call_the_command(make, tmp_path):
    """A browser names the page's origin; a program names none."""
    message = {"id": 1, "method": "tools/list", "params": {"_meta": ENVELOPE}}
    async with serving(make()) as gateway:
        for origin in (b"https://evil.example", b"http://evil.example:8700", b"null", b"http://["):
            assert (await post(gateway, message, b"origin: " + origin))[0] == 403
        assert not (tmp_path / "log").exists()
        assert (await post(gateway, message, b"origin: http://localhost:3000"))[0] == 200


@pytest.mark.parametrize(("generation", "mode"), [("modern", "legacy"), ("legacy", "2026-07-28")])
async def test_the_other_generation(make, generation, mode):
    """The official client lists and calls; what is not translated is not found."""
    async with serving(make(generation)) as gateway, SdkClient(f"{gateway.url}/mcp", mode=mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["look"]
        assert (await client.call_tool("look", {})).content[0].text == "seen"


async def test_a_translated_session_survives_a_restart(make):
    """The process is initialized again for clients without a session."""
    message = call(1, "look")
    message["params"]["_meta"] = ENVELOPE
    async with serving(make("legacy")) as gateway:
        for _ in range(2):
            _, _, body = await post(gateway, message)
            assert read_members(body)["result"]
            session = gateway.upstreams[0]._sessions[""]
            session._process._process.kill()
            await session._process._process.wait()
        discover = {"id": 2, "method": "server/discover", "params": {"_meta": ENVELOPE}}
        _, _, body = await post(gateway, discover)
        assert json.loads(body)["result"]["supportedVersions"] == ["2026-07-28"]
        other = {"id": 3, "method": "completion/complete", "params": {"_meta": ENVELOPE}}
        assert json.loads((await post(gateway, other))[2])["error"]["code"] == -32601


async def test_concurrency_bounds_a_command_too(make):
    """Further calls are refused with a wait."""
    async with serving(make(concurrency=1)) as gateway:
        gateway.upstreams[0].crowd.enter("another route")
        assert (await post(gateway, {"id": 1, "method": "tools/list"}))[0] == 503
        gateway.upstreams[0].crowd.leave("another route")
        assert b"200" in (
            await raw(gateway, b"GET /_amends/health HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        )
