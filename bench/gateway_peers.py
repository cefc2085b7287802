"""
The gateway beside other proxies, on the same work: FastMCP's proxy, mcp-proxy and LiteLLM.

Each proxy is a process of its own in front of the same upstream. 16 callers at once for some seconds; throughput and the
proxy's CPU per call are medians of five interleaved runs. Then one failure of each kind is sent through each of them, to see
what the caller gets. The peers are in virtual environments of their own:

    python -m bench.gateway_peers FOLDER     # FOLDER/fastmcp, FOLDER/mcpproxy and FOLDER/litellm, made with venv and pip

A peer that does not start, or fails a call, is reported so.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from bench.gateway import cpu_of, free_port

SECONDS, AT_ONCE, RUNS = 2.0, 16, 5
KEY = "sk-" + "0123456789abcdef" * 4
"""LiteLLM does not start without a key."""

UPSTREAM = """
import json, sys, uuid, uvicorn
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("look", "fail", "busy")]
DATA = {"adcp_error": {"code": "RATE_LIMITED", "message": "m", "retry_after": 7}, "extra": [1, {"n": 1.5}]}
def answer(message):
    method, params = message.get("method"), message.get("params") or {}
    if method == "initialize":
        return {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                           "serverInfo": {"name": "bench", "version": "1"}}}
    if method == "tools/list":
        return {"result": {"tools": TOOLS}}
    if method == "ping":
        return {"result": {}}
    if method == "tools/call" and params.get("name") == "fail":
        return {"error": {"code": -32029, "message": "slow down", "data": DATA}}
    if method == "tools/call":
        return {"result": {"content": [{"type": "text", "text": "seen"}], "isError": False}}
    return {"error": {"code": -32601, "message": "Method not found"}}
"""
HTTP = (
    UPSTREAM
    + """
CHAT = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": "hi"}}], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
LIMIT = {"error": {"message": "Rate limit reached", "type": "tokens", "code": "rate_limit_exceeded", "extra": 1}}
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        piece = await receive()
        body, more = body + piece.get("body", b""), piece.get("more_body", False)
    status, headers, found = 200, [(b"content-type", b"application/json")], b""
    if scope["path"].endswith("/chat/completions"):
        limited = b"busy" in body
        status, found = (429, json.dumps(LIMIT).encode()) if limited else (200, json.dumps(CHAT).encode())
        headers += [(b"retry-after", b"7")] if limited else []
    elif scope["method"] != "POST":
        status = 405
    else:
        message = json.loads(body)
        busy = (message.get("params") or {}).get("name") == "busy"
        if "id" not in message:
            status = 202
        elif busy:
            status, found, headers = 429, b'{"detail":"busy"}', [*headers, (b"retry-after", b"7")]
        else:
            found = json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message)}).encode()
            if message["method"] == "initialize":
                headers.append((b"mcp-session-id", uuid.uuid4().hex.encode()))
    await send({"type": "http.response.start", "status": status,
                "headers": [*headers, (b"content-length", b"%d" % len(found))]})
    await send({"type": "http.response.body", "body": found})
uvicorn.run(app, port=int(sys.argv[1]), loop="uvloop", http="httptools", log_level="error", access_log=False, lifespan="off")
"""
)
STDIO = (
    UPSTREAM.replace("import json, sys, uuid, uvicorn", "import json, sys")
    + """
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message)}) + "\\n")
        sys.stdout.flush()
"""
)
FASTMCP = """
import sys
from fastmcp.server import create_proxy
create_proxy(sys.argv[2]).run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), path="/mcp", show_banner=False,
                              stateless_http=sys.argv[3] == "stateless", log_level="ERROR")
"""
LITELLM = """
model_list:
- model_name: m
  litellm_params: {{model: openai/m, api_key: x, api_base: "{url}/v1"}}
mcp_servers:
  bench: {{url: "{url}/mcp", transport: http, allow_all_keys: true}}
"""
LITELLM_RECOMMENDED = """
litellm_settings: {{set_verbose: false, json_logs: true, request_timeout: 600}}
general_settings: {{disable_error_logs: true, proxy_batch_write_at: 60}}
"""


class Peer(NamedTuple):
    """One proxy."""

    name: str
    kind: str
    """mcp · stdio · llm"""
    command: list[str]
    port: int
    path: str
    env: dict[str, str] = {}


def peers(folder: Path, scratch: Path, url: str) -> list[Peer]:
    """Return the proxies, each with its command."""
    stdio = scratch / "stdio.py"
    stdio.write_text(STDIO)
    found = []

    def add(name: str, kind: str, path: str, command: list[str], **env: str) -> None:
        port = free_port()
        found.append(Peer(name, kind, [each.replace("PORT", str(port)) for each in command], port, path, env))

    gateway = [sys.executable, "-m", "amends", "gateway", "--listen", "127.0.0.1:PORT"]
    record = {"AMENDS_RECORD": f"sqlite:///{scratch}/record.db"}
    add("amends", "mcp", "/mcp", [*gateway, "--mcp", f"{url}/mcp"], **record)
    fastmcp = str(folder / "fastmcp" / "bin" / "python")
    add("FastMCP, default", "mcp", "/mcp", [fastmcp, "-c", FASTMCP, "PORT", f"{url}/mcp", "sessions"])
    add("FastMCP, stateless", "mcp", "/mcp", [fastmcp, "-c", FASTMCP, "PORT", f"{url}/mcp", "stateless"])
    add("amends", "stdio", "/mcp", [*gateway, "--mcp", "--", sys.executable, str(stdio)], **record)
    proxy = [str(folder / "mcpproxy" / "bin" / "mcp-proxy"), "--port", "PORT"]
    served = ["--", sys.executable, str(stdio)]
    add("mcp-proxy, default", "stdio", "/mcp", [*proxy, *served])
    add("mcp-proxy, stateless", "stdio", "/mcp", [*proxy, "--stateless", "--log-level", "ERROR", *served])
    add("amends", "llm", "/v1/chat/completions", [*gateway, url], **record)
    for name, text in (("default", LITELLM), ("recommended", LITELLM + LITELLM_RECOMMENDED)):
        config = scratch / f"litellm-{name}.yaml"
        config.write_text(text.format(url=url))
        litellm = [
            str(folder / "litellm" / "bin" / "litellm"),
            "--config",
            str(config),
            "--host",
            "127.0.0.1",
        ]
        quiet = {"LITELLM_LOG": "ERROR", "LITELLM_MODE": "PRODUCTION"} if name == "recommended" else {}
        quiet["LITELLM_MASTER_KEY"] = KEY
        for kind, path in (("llm", "/v1/chat/completions"), ("mcp", "/bench/mcp")):
            add(f"LiteLLM, {name}", kind, path, [*litellm, "--port", "PORT", "--num_workers", "1"], **quiet)
    return sorted(found, key=lambda peer: ("mcp", "stdio", "llm").index(peer.kind))


class Caller:
    """One connection to a proxy."""

    def __init__(self, peer: Peer) -> None:
        self.peer, self.session, self.number, self.tool = peer, "", 0, "look"

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.peer.port)
        if self.peer.kind != "llm":
            client = {"name": "bench", "version": "1"}
            params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
            await self.post({"id": 0, "method": "initialize", "params": params})
            await self.post({"method": "notifications/initialized"})
            if self.peer.name.startswith("LiteLLM"):
                _, _, found = await self.post({"id": 1, "method": "tools/list", "params": {}})
                self.tool = next(
                    each["name"] for each in found["result"]["tools"] if each["name"].endswith("look")
                )

    async def call(self, name: str = "look") -> tuple[int, dict[str, str], Any]:
        """Make one call, and return status, headers and the document."""
        if self.peer.kind == "llm":
            return await self.post({"model": "m", "messages": [{"role": "user", "content": name}]})
        self.number += 1
        params = {"name": self.tool.replace("look", name), "arguments": {}}
        return await self.post({"id": self.number, "method": "tools/call", "params": params})

    async def post(self, message: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        body = json.dumps(message if self.peer.kind == "llm" else {"jsonrpc": "2.0", **message}).encode()
        head = (
            f"POST {self.peer.path} HTTP/1.1\r\nhost: 127.0.0.1:{self.peer.port}\r\ncontent-type: application/json\r\n"
            f"accept: application/json, text/event-stream\r\nauthorization: Bearer {KEY}\r\ncontent-length: {len(body)}\r\n"
        )
        if self.session:
            head += f"mcp-session-id: {self.session}\r\nmcp-protocol-version: 2025-06-18\r\n"
        self.writer.write(head.encode() + b"\r\n" + body)
        async with asyncio.timeout(60):
            first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
            content = await self._content(headers)
        self.session = headers.get("mcp-session-id", self.session)
        status = int(first.split()[1])
        if "event-stream" in headers.get("content-type", ""):
            events = [line[5:] for line in content.splitlines() if line.startswith(b"data:")]
            content = next((each for each in reversed(events) if b'"id"' in each), b"null")
        return status, headers, json.loads(content) if content[:1] in (b"{", b"[", b" ") else None

    async def _content(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") != "chunked":
            return await self.reader.readexactly(int(headers.get("content-length", 0)))
        content = b""
        while size := int(await self.reader.readline(), 16):
            content += (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readline()
        return content


async def load(peer: Peer, pid: int) -> tuple[float, float]:
    """Open sessions, call for some seconds, and return calls per second and the proxy's CPU per call."""
    callers = [Caller(peer) for _ in range(AT_ONCE)]
    await asyncio.gather(*(each.open() for each in callers))
    before, began = cpu(peer, pid), time.perf_counter()
    end = began + SECONDS

    async def calls(caller: Caller) -> int:
        count = 0
        while time.perf_counter() < end:
            status, _, found = await caller.call()
            if status != 200 or "error" in (found or {"error": 1}):
                raise RuntimeError(f"{status} {str(found)[:200]}")
            count += 1
        caller.writer.close()
        return count

    count = sum(await asyncio.gather(*(calls(each) for each in callers)))
    return count / (time.perf_counter() - began), (cpu(peer, pid) - before) / count


def tree(pid: int, without: str) -> list[int]:
    """Return a process and its descendants, except those with a text in their command."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            if without not in Path(f"/proc/{child}/cmdline").read_text():
                found += tree(int(child), without)
    return found


def cpu(peer: Peer, pid: int) -> float:
    return sum(cpu_of(each) for each in tree(pid, "stdio.py"))


async def kept(peer: Peer) -> str:
    """Return what of a failure reaches the caller."""
    caller = Caller(peer)
    await caller.open()
    found = []
    if peer.kind != "llm":
        _, _, answer = await caller.call("fail")
        error = (answer or {}).get("error") or {}
        whole = error.get("code") == -32029 and (error.get("data") or {}).get("extra") == [1, {"n": 1.5}]
        found.append(f"error data {'kept' if whole else 'lost'}")
    if peer.kind != "stdio":
        status, headers, answer = await caller.call("busy")
        waits = "kept" if headers.get("retry-after") == "7" else "lost"
        found.append(f"429 as {status}, Retry-After {waits}")
        if peer.kind == "llm":
            found.append(f"body {'kept' if (answer or {}).get('error', {}).get('extra') == 1 else 'changed'}")
    return ", ".join(found)


def started(peer: Peer, scratch: Path) -> subprocess.Popen[bytes] | None:
    log = (scratch / f"{peer.name}-{peer.kind}.log").open("wb")
    process = subprocess.Popen(peer.command, env={**os.environ, **peer.env}, stdout=log, stderr=log)
    end = time.monotonic() + 180
    while time.monotonic() < end and process.poll() is None:
        try:
            asyncio.run(Caller(peer).open())
        except (OSError, StopIteration, TimeoutError, asyncio.IncompleteReadError, KeyError, ValueError):
            time.sleep(0.5)
        else:
            return process
    process.kill()
    return None


def measure(group: list[Peer], scratch: Path) -> None:
    """Measure the proxies of one kind of work, and print their rows."""
    running = [(peer, process) for peer in group if (process := started(peer, scratch)) is not None]
    for peer in group:
        if peer not in [each for each, _ in running]:
            print(f"| {peer.kind} | {peer.name} | did not start | | |")
    rates: dict[str, list[float]] = {peer.name: [] for peer, _ in running}
    cpus: dict[str, list[float]] = {peer.name: [] for peer, _ in running}
    try:
        for number in range(RUNS + 1):
            for peer, process in running:
                try:
                    rate, each = asyncio.run(load(peer, process.pid))
                except Exception as error:  # a peer's failure is a result
                    print(f"{peer.name}: {type(error).__name__} {str(error)[:200]}", file=sys.stderr)
                    continue
                if number:  # the first run warms up
                    rates[peer.name].append(rate)
                    cpus[peer.name].append(each)
        for peer, _ in running:
            if not rates[peer.name]:
                print(f"| {peer.kind} | {peer.name} | failed | | |")
                continue
            rate, each = statistics.median(rates[peer.name]), statistics.median(cpus[peer.name])
            print(
                f"| {peer.kind} | {peer.name} | {rate:.0f} | {each * 1000:.2f} | {asyncio.run(kept(peer))} |"
            )
    finally:
        for _, process in running:
            process.terminate()
        for _, process in running:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    scratch = Path(tempfile.mkdtemp())
    port = free_port()
    upstream = subprocess.Popen([sys.executable, "-c", HTTP, str(port)])
    try:
        print("| work | proxy | calls/s | CPU ms | of failures |\n|---|---|---|---|---|")
        found = peers(folder, scratch, f"http://127.0.0.1:{port}")
        kinds = sys.argv[2:] or ["mcp", "stdio", "llm"]
        for kind in kinds:
            measure([peer for peer in found if peer.kind == kind], scratch)
    finally:
        upstream.terminate()
        upstream.wait(20)


if __name__ == "__main__":
    main()
