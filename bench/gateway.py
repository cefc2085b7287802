"""
The gateway beside its floor: Starlette, uvloop and aiohttp that pass a request through, and nothing else.

Each server is a process of its own in front of the same upstream, and gets the same calls: 16 at once, a small JSON body.
Throughput and CPU per call are medians of five interleaved runs. `python -m bench.gateway`.
"""

from __future__ import annotations

import asyncio
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

CALLS, AT_ONCE, RUNS = 3000, 16, 5

UPSTREAM = """
import sys, uvicorn
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body = b'{"id":17,"name":"table","items":[1,2,3]}'
    await send({"type": "http.response.start", "status": 200,
                "headers": [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})
uvicorn.run(app, port=int(sys.argv[1]), loop="uvloop", http="httptools", log_level="error", access_log=False, lifespan="off")
"""
FLOOR = """
import sys, contextlib, aiohttp, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
TARGET = sys.argv[2]
@contextlib.asynccontextmanager
async def lifespan(app):
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        app.state.session = session
        yield
HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "host"}
async def forward(request):
    headers = [(name, value) for name, value in request.headers.items() if name not in HOP]
    body = await request.body()
    url = TARGET + request.url.path + ("?" + request.url.query if request.url.query else "")
    response = await request.app.state.session.request(
        request.method, url, headers=headers, data=body or None, allow_redirects=False)
    kept = {name: value for name, value in response.headers.items() if name.lower() not in HOP}
    return Response(await response.read(), status_code=response.status, headers=kept)
app = Starlette(routes=[Route("/{path:path}", forward, methods=["GET", "POST"])], lifespan=lifespan)
uvicorn.run(app, port=int(sys.argv[1]), loop="uvloop", http="httptools", log_level="error", access_log=False)
"""


def free_port() -> int:
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def start(*command: str, **env: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, *command],
        env={**os.environ, **env},
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )


def wait_for(port: int) -> None:
    import socket

    for _ in range(400):
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError("the server did not start")


def cpu_of(pid: int) -> float:
    """Return the seconds of CPU that a process has used."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def load(port: int, calls: int) -> None:
    """Make the calls over kept connections, with as little code as possible."""
    request = b"GET /orders/17?x=1 HTTP/1.1\r\nhost: shop\r\naccept: */*\r\nauthorization: Bearer x\r\nuser-agent: bench\r\n\r\n"

    async def one(count: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(count):
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            await reader.readexactly(length)
        writer.close()

    await asyncio.gather(*(one(calls // AT_ONCE) for _ in range(AT_ONCE)))


def main() -> None:
    upstream, floor, gateway = free_port(), free_port(), free_port()
    scratch = tempfile.mkdtemp()
    target = f"http://127.0.0.1:{upstream}"
    processes = [
        start("-c", UPSTREAM, str(upstream)),
        start("-c", FLOOR, str(floor), target),
        start(
            "-m",
            "amends",
            "gateway",
            "--listen",
            f"127.0.0.1:{gateway}",
            target,
            AMENDS_RECORD=f"sqlite:///{scratch}/record.db",
        ),
    ]
    try:
        for port in (upstream, floor, gateway):
            wait_for(port)
        servers = {"floor": (floor, processes[1].pid), "gateway": (gateway, processes[2].pid)}
        rates: dict[str, list[float]] = {name: [] for name in servers}
        cpus: dict[str, list[float]] = {name: [] for name in servers}
        for port, _ in servers.values():
            asyncio.run(load(port, CALLS // 4))
        for _ in range(RUNS):
            for name, (port, pid) in servers.items():
                before, began = cpu_of(pid), time.perf_counter()
                asyncio.run(load(port, CALLS))
                rates[name].append(CALLS / (time.perf_counter() - began))
                cpus[name].append((cpu_of(pid) - before) / CALLS)
        rate = {name: statistics.median(each) for name, each in rates.items()}
        cpu = {name: statistics.median(each) for name, each in cpus.items()}
        print(f"{'':10}{'calls/s':>10}{'CPU ms':>10}")
        for name in servers:
            print(f"{name:10}{rate[name]:>10.0f}{cpu[name] * 1000:>10.3f}")
        print(
            f"throughput {rate['gateway'] / rate['floor']:.0%} of the floor, CPU {cpu['gateway'] / cpu['floor']:.2f} times"
        )
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(20)
        resource.getrusage(resource.RUSAGE_CHILDREN)


if __name__ == "__main__":
    main()
