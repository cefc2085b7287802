"""
The gateway beside its floor, beside a disturbance, and what the recorder and a start cost.

- floor: Starlette, uvloop and aiohttp that pass a request through, and nothing else; and httptools and uvloop alone, which copy the same
  bytes and headers. Each server is a process of its own in front of the same upstream, and gets the same calls, answered with 200
  or with 404: 16 at once, a small JSON body. Medians of five interleaved runs.
- disturbance: the p99 of one upstream's calls while another hangs, closes, sends garbage or floods its callers, over the p99
  of the same calls without it. Medians of five interleaved runs.
- recorder: CPU of the calling thread and of the process for a failing HTTP call with and without a recorder.
- page: from the answer of a failed call to its event on the page's live stream.
- start: from the command to the answer of the first call.

`python -m bench.gateway [floor disturbance recorder page start]`; `bench.gateway_peers` compares it with other proxies.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CALLS, AT_ONCE, RUNS = 3000, 16, 5

UPSTREAM = """
import sys, uvicorn
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body = b'{"id":17,"name":"table","items":[1,2,3]}'
    await send({"type": "http.response.start", "status": 404 if scope["path"] == "/none" else 200,
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

COPY = """
import asyncio, sys, httptools, uvloop
TARGET = int(sys.argv[2])
HOP = {b"connection", b"keep-alive", b"te", b"trailer", b"upgrade", b"host"}
IDLE = []
class Side(asyncio.Protocol):
    # One side of an exchange: parses its messages and writes them to the other side.
    peer = None
    def connection_made(self, transport):
        self.transport = transport
        self.parser = self.PARSER(self)
    def connection_lost(self, error):
        if self in IDLE:
            IDLE.remove(self)
    def data_received(self, data):
        self.parser.feed_data(data)
    def on_message_begin(self):
        self.headers, self.url, self.pieces = [], b"", []
    def on_header(self, name, value):
        if name.lower() not in HOP:
            self.headers.append(name + b": " + value)
    def on_body(self, data):
        self.pieces.append(data)
    def message(self, *first):
        return b"\\r\\n".join([*first, *self.headers, b"", b"".join(self.pieces)])
class Caller(Side):
    PARSER = httptools.HttpRequestParser
    def on_url(self, url):
        self.url += url
    def on_message_complete(self):
        sent = self.message(self.parser.get_method() + b" " + self.url + b" HTTP/1.1", b"host: 127.0.0.1")
        if IDLE:
            self.forward(IDLE.pop(), sent)
        else:
            asyncio.ensure_future(self.connect(sent))
    async def connect(self, sent):
        _, upstream = await asyncio.get_running_loop().create_connection(Upstream, "127.0.0.1", TARGET)
        self.forward(upstream, sent)
    def forward(self, upstream, sent):
        upstream.peer = self.transport
        upstream.transport.write(sent)
class Upstream(Side):
    PARSER = httptools.HttpResponseParser
    def on_status(self, reason):
        self.reason = reason
    def on_message_complete(self):
        peer, self.peer = self.peer, None
        peer.write(self.message(b"HTTP/1.1 %d %s" % (self.parser.get_status_code(), self.reason)))
        IDLE.append(self)
async def main():
    server = await asyncio.get_running_loop().create_server(Caller, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()
uvloop.run(main())
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


async def load(port: int, calls: int, path: str = "/orders/17?x=1") -> None:
    """Make the calls over kept connections, with as little code as possible."""
    request = f"GET {path} HTTP/1.1\r\n".encode()
    request += b"host: localhost\r\naccept: */*\r\nauthorization: Bearer x\r\nuser-agent: bench\r\n\r\n"

    async def one(count: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(count):
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            await reader.readexactly(length)
        writer.close()

    await asyncio.gather(*(one(calls // AT_ONCE) for _ in range(AT_ONCE)))


def floor_ratio() -> None:
    upstream, floor, copy, gateway = (free_port() for _ in range(4))
    scratch = tempfile.mkdtemp()
    target = f"http://127.0.0.1:{upstream}"
    processes = [
        start("-c", UPSTREAM, str(upstream)),
        start("-c", FLOOR, str(floor), target),
        start("-c", COPY, str(copy), str(upstream)),
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
        for port in (upstream, floor, copy, gateway):
            wait_for(port)
        ports = {"Starlette": floor, "httptools": copy, "gateway": gateway}
        pids = {name: process.pid for name, process in zip(ports, processes[1:], strict=True)}
        print(f"{'':20}{'calls/s':>10}{'CPU ms':>10}{'of httptools':>14}")
        for work, path in (("200", "/orders/17?x=1"), ("404", "/none")):
            rates: dict[str, list[float]] = {name: [] for name in ports}
            cpus: dict[str, list[float]] = {name: [] for name in ports}
            for port in ports.values():
                asyncio.run(load(port, CALLS // 4, path))
            for _ in range(RUNS):
                for name, port in ports.items():
                    before, began = cpu_of(pids[name]), time.perf_counter()
                    asyncio.run(load(port, CALLS, path))
                    rates[name].append(CALLS / (time.perf_counter() - began))
                    cpus[name].append((cpu_of(pids[name]) - before) / CALLS)
            cpu = {name: statistics.median(each) for name, each in cpus.items()}
            for name in ports:
                rate, ratio = statistics.median(rates[name]), cpu[name] / cpu["httptools"]
                print(f"{work} {name:16}{rate:>10.0f}{cpu[name] * 1000:>10.3f}{ratio:>14.2f}")
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(20)
        resource.getrusage(resource.RUSAGE_CHILDREN)


BAD = """
import asyncio, sys
async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            kind = head.split(b" ")[1].rpartition(b"/")[2]
            if kind == b"hang":
                await asyncio.sleep(3600)
            elif kind == b"garbage":
                writer.write(b"\\x00\\x01 garbage\\r\\n\\r\\n")
                break
            elif kind == b"flood":
                writer.write(b"HTTP/1.1 200 OK\\r\\ncontent-length: 100000000\\r\\n\\r\\n")
                for _ in range(1600):
                    writer.write(b"x" * 62500)
                    await writer.drain()
            elif kind == b"half":
                writer.write(b"HTTP/1.1 200 OK\\r\\ncontent-length: 100\\r\\n\\r\\nhalf")
                break
            elif kind == b"close":
                break
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        pass
    writer.close()
async def main():
    async with await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1])) as server:
        await server.serve_forever()
asyncio.run(main())
"""
SECONDS = 2.0


async def timed_calls(port: int, path: str, callers: int, pause: float) -> list[float]:
    """Call for some seconds with pauses, and return how long each call took."""
    request = f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()
    end = time.perf_counter() + SECONDS
    times: list[float] = []

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < end:
            began = time.perf_counter()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]))
            times.append(time.perf_counter() - began)
            await asyncio.sleep(pause)
        writer.close()

    await asyncio.gather(*(one() for _ in range(callers)))
    return times


DISTURB = """
import asyncio, sys
port, kind = int(sys.argv[1]), sys.argv[2]
async def one(number):
    await asyncio.sleep(number / 20)
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET /bad/{kind} HTTP/1.1\\r\\nhost: localhost\\r\\nconnection: close\\r\\n\\r\\n".encode())
        # A slow reader: about 1 MB per second.
        while await reader.read(65536):
            await asyncio.sleep(0.06)
        writer.close()
        await asyncio.sleep(0.05)
async def main():
    await asyncio.gather(*(one(number) for number in range(20)))
asyncio.run(main())
"""
"""20 callers of the bad upstream, in a process of their own."""


def disturbance() -> None:
    good, bad, gateway = free_port(), free_port(), free_port()
    scratch = Path(tempfile.mkdtemp())
    config = f"""
        listen = "127.0.0.1:{gateway}"
        record = "sqlite:///{scratch}/record.db"
        [upstream.good]
        url = "http://127.0.0.1:{good}"
        [upstream.bad]
        url = "http://127.0.0.1:{bad}"
    """
    (scratch / "gateway.toml").write_text(config)
    processes = [
        start("-c", UPSTREAM, str(good)),
        start("-c", BAD, str(bad)),
        start("-m", "amends", "gateway", str(scratch / "gateway.toml")),
    ]

    def run(kind: str | None) -> list[float]:
        if kind is None:
            return asyncio.run(timed_calls(gateway, "/good/x", 8, 0.01))
        callers = start("-c", DISTURB, str(gateway), kind)
        try:
            time.sleep(2.0)
            return asyncio.run(timed_calls(gateway, "/good/x", 8, 0.01))
        finally:
            callers.kill()
            callers.wait()

    try:
        for port in (good, bad, gateway):
            wait_for(port)
        run(None)
        print(
            "| disturbance | p50 ms | p99 ms | p99 without | of medians | median of ratios |\n|---|---|---|---|---|---|"
        )
        for kind in ("hang", "close", "half", "garbage", "flood"):
            rows = []
            for _ in range(RUNS):
                alone, beside = run(None), run(kind)
                rows.append((quantile(beside, 0.5), quantile(beside, 0.99), quantile(alone, 0.99)))
            p50, p99, before = (statistics.median(column) for column in zip(*rows, strict=True))
            each = statistics.median(row[1] / row[2] for row in rows)
            figures = (
                f"{p50 * 1000:.1f} | {p99 * 1000:.1f} | {before * 1000:.1f} | {p99 / before:.2f} | {each:.2f}"
            )
            print(f"| {kind} | {figures} |")
    finally:
        end(processes)


def quantile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


def end(processes: list[subprocess.Popen]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait(40)


FAILING = UPSTREAM.replace('"status": 200', '"status": 503')


PAIRS = 60


def recorder_share() -> None:
    """CPU of a failing HTTP call, without and with a recorder: of the calling thread, and of the whole process."""
    import logging

    import httpx

    import amends
    from amends.bindings.httpx import Transport
    from amends.core import recording

    logging.disable(logging.WARNING)
    port = free_port()
    process = start("-c", FAILING, str(port))
    try:
        wait_for(port)
        policy = amends.Policy(attempts=1)
        pairs: list[tuple[tuple[float, float], tuple[float, float]]] = []
        with (
            httpx.Client(
                transport=Transport(policy=policy, upstream=None), base_url=f"http://127.0.0.1:{port}"
            ) as client,
            amends.record(f"sqlite:///{tempfile.mkdtemp()}/r.db") as recorder,
        ):

            def calls(*, recorded: bool) -> tuple[float, float]:
                recording.set_sink(recorder.take if recorded else None)
                began, all_began = time.thread_time(), time.process_time()
                for _ in range(200):
                    try:
                        client.get("/x").raise_for_status()
                    except Exception:
                        pass
                own = time.thread_time() - began
                recorder.flush()
                return own / 200, (time.process_time() - all_began) / 200

            for number in range(PAIRS + 2):
                first = calls(recorded=bool(number % 2))
                second = calls(recorded=not number % 2)
                if number >= 2:
                    pairs.append((second, first) if number % 2 else (first, second))
        each = statistics.median(without[0] for without, _ in pairs)
        print(f"a failing call {each * 1e6:.0f} µs of CPU; {PAIRS} pairs of 200 calls")
        for index, name in enumerate(("the calling thread", "all threads")):
            shares = [recorded[index] / without[index] - 1 for without, recorded in pairs]
            low, middle, high = statistics.quantiles(shares, n=4)
            print(f"the recorder adds {middle:.1%} ({low:.1%} to {high:.1%}) in {name}")
        taken = []
        with amends.record(f"sqlite:///{tempfile.mkdtemp()}/r.db") as recorder:
            fault = amends.Fault(code="TIMEOUT", status=503)
            for _ in range(200):
                began = time.thread_time_ns()
                for _ in range(20):
                    recorder.take("http client", "gave-up", fault, {"name": "GET /x", "trace_id": "4bf9"})
                taken.append((time.thread_time_ns() - began) / 20)
                time.sleep(0.001)
        print(
            f"taking a note {statistics.median(taken) / 1000:.2f} µs, {statistics.median(taken) / 1e9 / each:.2%} of it"
        )
    finally:
        end([process])


def page_latency() -> None:
    """Seconds from the answer of a failed call to its event on the page's live stream."""
    upstream, gateway = free_port(), free_port()
    scratch = tempfile.mkdtemp()
    record = {
        "AMENDS_RECORD": f"sqlite:///{scratch}/record.db",
        "AMENDS_PAGE_TOKEN": "the-token-of-this-measurement",
    }
    processes = [
        start("-c", FAILING, str(upstream)),
        start(
            "-m",
            "amends",
            "gateway",
            "--listen",
            f"127.0.0.1:{gateway}",
            f"http://127.0.0.1:{upstream}",
            **record,
        ),
    ]

    async def run() -> list[float]:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway)
        writer.write(
            b"GET /_amends/live HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer the-token-of-this-measurement\r\n\r\n"
        )
        await reader.readuntil(b"retry: 2000")
        await asyncio.sleep(1.5)
        found = []
        for number in range(30):
            name = f"/call-{number}-{os.getpid()}"
            caller, to = await asyncio.open_connection("127.0.0.1", gateway)
            to.write(
                f"POST {name} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode()
            )
            await caller.read()
            began = time.perf_counter()
            data = b""
            while name.encode() not in data:
                data = data[-1000:] + await reader.read(1 << 20)
            found.append(time.perf_counter() - began)
            to.close()
            await asyncio.sleep(0.1)
        writer.close()
        return found

    try:
        for port in (upstream, gateway):
            wait_for(port)
        times = asyncio.run(run())
        print(
            f"on the page after {quantile(times, 0.5) * 1000:.0f} ms (median), {max(times) * 1000:.0f} ms at most, of 30"
        )
    finally:
        end(processes)


def start_time() -> None:
    """Seconds from the command to the answer of the first call."""
    upstream = free_port()
    processes = [start("-c", UPSTREAM, str(upstream))]
    times, cpus = [], []
    try:
        wait_for(upstream)
        for _ in range(2 * RUNS):
            port = free_port()
            record = {"AMENDS_RECORD": f"sqlite:///{tempfile.mkdtemp()}/r.db"}
            began = time.perf_counter()
            command = ("gateway", "--listen", f"127.0.0.1:{port}", f"http://127.0.0.1:{upstream}")
            process = start("-m", "amends", *command, **record)
            while True:
                try:
                    asyncio.run(load(port, AT_ONCE))
                    break
                except OSError:
                    time.sleep(0.005)
            times.append(time.perf_counter() - began)
            cpus.append(cpu_of(process.pid))
            end([process])
        print(
            f"first calls answered {statistics.median(times):.2f} s after the command, {statistics.median(cpus):.2f} s of CPU"
        )
    finally:
        end(processes)


def main(*names: str) -> list[str]:
    """Run the parts, and return their lines."""
    parts = {
        "floor": floor_ratio,
        "disturbance": disturbance,
        "recorder": recorder_share,
        "page": page_latency,
        "start": start_time,
    }
    lines = io.StringIO()
    with contextlib.redirect_stdout(lines):
        for name in names or parts:
            print(f"\n**{name}**\n")
            parts[name]()
    return lines.getvalue().splitlines()


if __name__ == "__main__":
    print("\n".join(main(*sys.argv[1:])))
