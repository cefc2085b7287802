"""Long tests: a million jobs in constant memory, two thousand idle sessions, and simulated networks."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from amends.arcp import Limits, Runtime
from amends.arcp.transports import websocket
from amends.arcp.wire import envelope, write
from tests.arcp.agents import echo
from tests.arcp.raw import TOKENS, connected

pytestmark = pytest.mark.soak


def resident():
    """Return the resident memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def drive(raw, jobs, at_once, **more):
    """Run jobs, and check that every event number arrives once."""
    sent = ended = 0
    last = None
    while ended < jobs:
        while sent < jobs and sent - ended < at_once:
            key = {name: f"{value}-{sent}" for name, value in more.items()}
            await raw.connection.send(write(envelope("job.submit", {"agent": "echo", "input": sent, **key})))
            sent += 1
        frame = await raw.connection.receive()
        if b'"type":"job.result"' in frame:
            ended += 1
            number = int(frame.partition(b'"event_seq":')[2].partition(b",")[0])
            assert last is None or number == last + 1
            last = number
            if ended % 1000 == 0:
                await raw.send("session.ack", {"last_processed_seq": number})


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("keyed", [False, True])
async def test_a_million_jobs_in_flat_memory(keyed):
    """The stored data of ended jobs is bounded, with and without keys, so memory does not grow in the second half."""
    limits = Limits(finished=5_000, keyed=5_000)
    runtime = Runtime(tokens=TOKENS, limits=limits)
    runtime.register_agent("echo", echo)
    jobs = 1_000_000 if not keyed else 200_000
    async with runtime:
        raw = await connected(runtime)
        held = []
        for part in range(10):
            more = {"idempotency_key": f"k{part}"} if keyed else {}
            await drive(raw, jobs // 10, 50, **more)
            gc.collect()
            held.append(resident())
        await raw.close()
        assert sum(len(each.kept) for each in (runtime._node.ended.plain, runtime._node.ended.keyed)) < 5_400
    growth = held[-1] - held[3]
    assert growth < 8 * 1024 * 1024, [size // 1024 for size in held]


IDLE = """
import asyncio, resource, sys
from amends.arcp import Limits, Runtime
from tests.arcp.agents import echo

async def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    limits = Limits(sessions_per_principal=5_000, handshakes=3_000, heartbeat=20.0)
    runtime = Runtime(tokens={"alice-token": "alice"}, limits=limits)
    runtime.register_agent("echo", echo)
    async with runtime, runtime.listen("127.0.0.1", 0) as listening:
        print(listening.url, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        with open("/proc/self/status") as status:
            print(next(line for line in status if line.startswith("VmRSS")).split()[1], flush=True)
        print(len(runtime._node.sessions.attached), flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
asyncio.run(main())
"""


@pytest.mark.timeout(600)
async def test_two_thousand_idle_sessions():
    """Over WebSockets, with heartbeats, in a separate process: less than 250 MB. The file limit is set to 8192."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard >= 8192 or hard == resource.RLIM_INFINITY
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, hard))
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", IDLE, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        url = (await server.stdout.readline()).decode().strip()
        from tests.arcp.raw import Raw

        raws = []
        for _ in range(2_000):
            raw = Raw(await websocket.dial(url, ping_interval=None))
            assert (await raw.hello())["type"] == "session.welcome"
            raws.append(raw)
        server.stdin.write(b"\n")
        kilobytes = int(await server.stdout.readline())
        assert int(await server.stdout.readline()) == 2_000
        print(f"2,000 idle sessions: {kilobytes / 1024:.0f} MB resident")
        assert kilobytes < 250 * 1024
        assert (await raws[1_234].run("echo", 1))["payload"]["result"] == 1
        await asyncio.gather(*(raw.close() for raw in raws))
    finally:
        server.stdin.write(b"\n")
        await asyncio.wait_for(server.wait(), 60)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def new_python():
    """Find a Python of version 3.12 or newer, which the simulation needs."""
    if sys.version_info >= (3, 12):
        return sys.executable
    found = [shutil.which(f"python3.{minor}") for minor in (13, 12)]
    found += sorted(str(path) for path in Path.home().glob(".pyenv/versions/3.1[2-9]*/bin/python"))
    for path in filter(None, found):
        version = subprocess.run(
            [path, "-c", "import sys; print(sys.version_info[1])"],
            capture_output=True,
            text=True,
            check=False,
        )
        if version.returncode == 0 and int(version.stdout) >= 12:
            return path
    raise AssertionError("the simulation needs Python 3.12 or newer")


@pytest.mark.timeout(3600)
def test_simulated_networks(tmp_path):
    """Hundreds of histories of cuts, late frames and killed nodes; a failure reports the seed that reproduces it."""
    subprocess.run([new_python(), "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "install", "-q", "simloop==0.2.2", "msgspec", "websockets"], check=True
    )
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}"}
    done = subprocess.run(
        [python, "-m", "tests.arcp.simulation", "1000", "250"],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
