"""
Injected failures: whatever an upstream does, its last answer passes byte for byte, and nothing unsafe is repeated.

`make test` runs a seeded sample; `make soak` runs 10,000 failures, 500 kills, many connections and large bodies.
"""

import asyncio
import json
import os
import random
import signal
import subprocess
from pathlib import Path

import pytest

from amends.core.backoff import Backoff
from amends.core.policy import Policy
from tests.commands.test_decode import AMENDS
from tests.gateway.peers import Upstream, answer, free_port, get, http, raw, serving
from tests.gateway.test_http_upstream import parts

STATUSES = (
    400,
    401,
    402,
    403,
    404,
    405,
    408,
    409,
    410,
    413,
    422,
    425,
    429,
    451,
    499,
    500,
    501,
    502,
    503,
    504,
    529,
)
OURS = {b"amends-upstream", b"amends-tries", b"amends-waited", b"amends-trace", b"connection"}


def random_value(draw, depth=0):
    """Return any JSON value."""
    kinds = [None, True, draw.randrange(10**12), draw.random(), "\u2028é\x00"[: draw.randrange(4)]]
    if depth < 3 and draw.random() < 0.6:
        if draw.random() < 0.5:
            return [random_value(draw, depth + 1) for _ in range(draw.randrange(4))]
        return {f"k{number}": random_value(draw, depth + 1) for number in range(draw.randrange(4))}
    return draw.choice(kinds)


def random_body(draw):
    """Return the body of an error: problem, vendor error, JSON-RPC, any JSON, or no JSON at all."""
    shape = draw.randrange(6)
    value = random_value(draw)
    if shape == 0:
        value = {
            "type": "about:blank",
            "status": 503,
            "title": "x",
            "extra": value,
            "is_retriable": draw.random() < 0.5,
        }
    elif shape == 1:
        value = {
            "error": {
                "type": draw.choice(["rate_limit_error", "overloaded_error", "x"]),
                "message": "m",
                "d": value,
            }
        }
    elif shape == 2:
        value = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32029, "message": "m", "data": value}}
    elif shape == 3:
        return draw.randbytes(draw.randrange(2000))
    elif shape == 4:
        return b"<html>" + draw.randbytes(20).hex().encode() * draw.choice([1, 5000])
    return json.dumps(value, indent=draw.choice([None, 2])).encode()


async def inject(draw, up, gateway):
    """Let one call fail for good, and compare what the caller gets with what the upstream sent."""
    body, status = random_body(draw), draw.choice(STATUSES)
    headers = [
        b"content-type: " + draw.choice([b"application/json", b"application/problem+json", b"text/html"])
    ]
    headers.append(b"x-request-id: %d" % draw.randrange(10**9))
    if draw.random() < 0.4:
        headers.append(b"retry-after: 0")
    up.script, up.requests = [answer(status, body, *headers)], []
    method = draw.choice(["GET", "POST", "PUT", "DELETE", "PATCH"])
    path = f"/{draw.randrange(10**9)}"
    found, sent, content = parts(
        await raw(gateway, get(path, method=method, body=b"b" * draw.randrange(1, 50)))
    )
    assert (found, content) == (status, body)
    expected = [tuple(each.split(b": ", 1)) for each in headers]
    assert [each for each in sent if each[0] not in OURS] == [
        *expected,
        (b"content-length", b"%d" % len(body)),
    ]
    tries = int(dict(sent)[b"amends-tries"])
    assert tries == len(up.requests) <= 3
    if method in {"POST", "PATCH"} and status in {500, 502, 504} and not body.startswith((b"{", b"[")):
        # A JSON body may say that nothing was executed.
        assert tries == 1


async def run_injections(count, seed):
    draw = random.Random(seed)
    policy = Policy(attempts=3, backoff=Backoff(first=0.0001), max_wait=5)
    async with Upstream() as up, serving(http(up, policy=policy)) as gateway:
        for _ in range(count):
            gateway.upstreams[0].upstream.reset()
            await inject(draw, up, gateway)


async def test_injected_failures():
    """A seeded sample: no member of an error is lost or changed."""
    await run_injections(60, 20261116)


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_ten_thousand_injected_failures():
    """The whole number."""
    await run_injections(10_000, 7)


class Killed:
    """A gateway in a process of its own, in front of an upstream that counts."""

    def __init__(self, url, tmp_path):
        self.port = free_port()
        env = {**os.environ, "AMENDS_RECORD": f"sqlite:///{tmp_path}/r.db"}
        command = [*AMENDS, "gateway", "--listen", f"127.0.0.1:{self.port}", url]
        self.process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE)
        self.process.stderr.readline()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stderr.close()


async def kill_at(offset, up, tmp_path):
    """Send a POST byte by byte and kill the gateway after `offset` bytes of the exchange. Return how often it arrived."""
    request = get("/pay", b"content-type: text/plain", method="POST", body=b"x" * 64)
    gateway = await asyncio.to_thread(Killed, up.url, tmp_path)
    up.requests = []
    try:
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
                break
            except ConnectionError:
                await asyncio.sleep(0.01)
        writer.write(request[:offset])
        await writer.drain()
        if offset > len(request):
            await reader.read(offset - len(request))
        gateway.kill()
        writer.close()
    finally:
        if gateway.process.poll() is None:
            gateway.kill()
    return len([each for each in up.requests if each.startswith(b"POST /pay")])


async def run_kills(count, seed, tmp_path):
    draw = random.Random(seed)
    for script in (answer(500, b"{}"), answer(200, b"o" * 300), "close"):
        async with Upstream(script) as up:
            for _ in range(count):
                assert await kill_at(draw.randrange(400), up, tmp_path) <= 1


async def test_a_killed_gateway_repeats_nothing_unsafe(tmp_path):
    """A seeded sample: a POST arrives at most once, wherever the gateway is killed."""
    await run_kills(1, 1, tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_five_hundred_kills(tmp_path):
    """The whole number."""
    await run_kills(167, 2, tmp_path)


def rss(pid):
    """Return the largest resident memory of a process so far, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


@pytest.mark.soak
@pytest.mark.timeout(600)
async def test_large_bodies_and_many_connections_in_constant_memory(tmp_path):
    """1,000 idle and 200 busy connections, and 100 MB both ways beside a slow reader: at most 120 MB."""
    size = 100 * 1024 * 1024

    async def echo(request, writer):
        if b"/large" not in request[:40]:
            writer.write(answer(200, b"ok"))
            return
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        for _ in range(size // 65536):
            writer.write(b"x" * 65536)
            await writer.drain()

    class Discarding(Upstream):
        @staticmethod
        async def _body(reader, head):
            left = int((head.partition(b"content-length:")[2] or b"0").split(b"\r\n")[0])
            while left:
                left -= len(await reader.read(min(left, 65536)))
            return b""

    async with Discarding(echo) as up:
        gateway = await asyncio.to_thread(Killed, up.url, tmp_path)
        try:
            idle = [await asyncio.open_connection("127.0.0.1", gateway.port) for _ in range(1000)]
            slow_reader, slow_writer = await asyncio.open_connection("127.0.0.1", gateway.port)
            slow_writer.write(get("/large"))

            async def busy():
                for _ in range(20):
                    assert parts(await raw(gateway, get("/small")))[0] == 200

            await asyncio.gather(*(busy() for _ in range(200)))
            reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
            writer.write(
                b"POST /large HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
                % size
            )

            async def upload():
                for _ in range(size // 65536):
                    writer.write(b"y" * 65536)
                    await writer.drain()

            sending = asyncio.create_task(upload())
            got = 0
            while piece := await reader.read(1 << 20):
                got += len(piece)
            await sending
            assert got > size
            assert rss(gateway.process.pid) <= 120
            for _, each in [*idle, (slow_reader, slow_writer), (reader, writer)]:
                each.close()
        finally:
            gateway.kill()
