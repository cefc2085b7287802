"""The migration from a file to a cluster, a backup and its restoration, and an upgrade, with the commands of the docs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import subprocess
import time

import pytest

from amends.arcp import connect
from amends.errors.arcp import InternalError
from tests.arcp.test_websocket import certificate  # noqa: F401 - a fixture
from tests.cluster.documented import Place, commands, stop
from tests.cluster.machines import TOKEN, RuntimeProcess, announcement, balancer, start_all
from tests.stores.servers import NatsCluster, nats_binary

AGENTS = """
import asyncio, pathlib

async def summarise(input, ctx):
    return input[:3]

async def render(input, ctx):
    await ctx.log("started")
    while input != "at once":
        await asyncio.sleep(0.05)
    return "{version}"

async def cut_fast(input, ctx):
    return "cut"
"""


class Cluster(NatsCluster):
    """Three servers, each started by the page's command."""

    def __init__(self, directory):
        super().__init__(directory)
        for number, node in enumerate(self.nodes, 1):
            node.place = Place(directory, self._names(number, node))

    def _names(self, number, node):
        names = {"/var/lib/nats": str(node.directory), "--name n1": f"--name n{number}"}
        names["nats://0.0.0.0:6222"] = f"nats://127.0.0.1:{node.cluster_port}"
        names |= {f"n{i}:6222": f"127.0.0.1:{one.cluster_port}" for i, one in enumerate(self.nodes, 1)}
        return names | {"nats-server ": f"{nats_binary()} "}

    def start(self):
        (command,) = commands("From one file to a cluster in three steps", "nats-server")
        for node in self.nodes:
            node.directory.mkdir(parents=True, exist_ok=True)
            arguments = [*node.place.arguments(command), "-a", "127.0.0.1", "-p", str(node.port)]
            node.process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for node in self.nodes:
            node.wait()


def place_of(directory, servers, certificate):  # noqa: F811
    """Prepare a directory for the commands: agents, a certificate, and the servers under the page's names."""
    (directory / "agents.py").write_text(AGENTS.format(version="old"))
    cert, key = certificate
    (directory / "host.pem").write_text(key.read_text() + cert.read_text())
    ports = {f"n{number}:4222": f"127.0.0.1:{node.port}" for number, node in enumerate(servers.nodes, 1)}
    return Place(directory, ports | {"--host 0.0.0.0": "--host 127.0.0.1"})


def client_of(process, certificate):  # noqa: F811
    url = announcement(process)["listening"]
    trust = ssl.create_default_context(cafile=str(certificate[0])) if url.startswith("wss") else None
    return connect(url, token=TOKEN, transport={"ssl": trust} if trust else None)


@contextlib.contextmanager
def started(place, command, *more):
    """Start a command, and kill it at the end of the block if it still runs."""
    process = place.start(command, *more)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


async def test_three_steps_a_backup_and_back(machines, tmp_path, certificate):  # noqa: F811
    """A key has the same job in the file, in the cluster, in the backup and in the restored cluster."""
    servers = Cluster(tmp_path / "servers")
    place = place_of(tmp_path, servers, certificate)
    alone, copied, node, worker = commands("From one file to a cluster in three steps")
    backup, check, restore = commands("Backup")
    (status,) = commands("Status and metrics")
    with started(place, alone, "--port", "0") as process:
        async with client_of(process, certificate) as client:
            first = await client.submit("summarise", "abcdef", idempotency_key="k")
            assert await first.done == "abc"
        await asyncio.to_thread(stop, process)

    await asyncio.to_thread(servers.start)
    machines.callback(servers.stop)
    assert (await asyncio.to_thread(place.run, copied))["differences"] == []

    # A shorter lease than the page's, so that the test does not wait half a minute for a dead node.
    short = ("--lease", "1.5")
    with started(place, node, "--port", "0", *short) as front, started(place, worker, *short) as working:
        announcement(working)
        async with client_of(front, certificate) as client:
            again = await client.submit("summarise", "abcdef", idempotency_key="k")
            assert (again.job_id, await again.done) == (first.job_id, "abc")
            assert await (await client.submit("render", "at once", idempotency_key="r")).done == "old"
            running = await client.submit("render", "for ever", idempotency_key="broken off")
            async for _ in running.events():
                break
            found = await asyncio.to_thread(place.run, status)
            assert sorted(node["agents"] for node in found["nodes"]) == [
                ["render@1.0.0"],
                ["summarise@1.0.0"],
            ]
            working.kill()
        await asyncio.to_thread(stop, front)

    assert (await asyncio.to_thread(place.run, backup))["differences"] == []
    assert (await asyncio.to_thread(place.run, check))["problems"] == []
    servers.stop()
    servers = Cluster(tmp_path / "others")
    place = place_of(tmp_path, servers, certificate)
    await asyncio.to_thread(servers.start)
    machines.callback(servers.stop)
    assert (await asyncio.to_thread(place.run, restore))["differences"] == []

    with started(place, node, "--port", "0", *short) as front, started(place, worker, *short) as working:
        announcement(working)
        async with client_of(front, certificate) as client:
            again = await client.submit("summarise", "abcdef", idempotency_key="k")
            assert (again.job_id, await again.done) == (first.job_id, "abc")
            assert await (await client.submit("render", "at once", idempotency_key="r")).done == "old"
            # Its worker was killed and the job may have had its effect, so it ends in doubt.
            again = await client.submit("render", "for ever", idempotency_key="broken off")
            assert again.job_id == running.job_id
            with pytest.raises(InternalError) as caught:
                await again.done
            assert caught.value.fault.details["in_doubt"] is True
            assert await (await client.submit("render", "at once")).done == "old"


async def test_an_upgrade_while_jobs_run(machines, nats_url, tmp_path, certificate):  # noqa: F811
    """New code in a new worker, then a new front: every job succeeds, the last ones with the new code."""
    place = Place(tmp_path, {"nats://n1:4222,n2:4222,n3:4222/jobs?replicas=3": nats_url})
    worker = commands("Upgrade")[0]
    fronts = [RuntimeProcess(nats_url, agents=()) for _ in range(2)]
    await asyncio.to_thread(start_all, machines, fronts[0])
    versions = []
    (tmp_path / "agents.py").write_text(AGENTS.format(version="old"))
    with started(place, worker) as old:
        announcement(old)
        async with connect(balancer(fronts), token=TOKEN) as client:
            going = asyncio.ensure_future(stream(client, versions))
            await reached(versions, "old", going)
            # The text is longer too: Python's cache identifies a source file by its second and size.
            (tmp_path / "agents.py").write_text(AGENTS.format(version="new version"))
            with started(place, worker) as new:
                announcement(new)
                await asyncio.to_thread(stop, old)
                await asyncio.to_thread(start_all, machines, fronts[1])
                assert await asyncio.to_thread(fronts[0].stop) == 0
                versions.append("between")
                await reached(versions, "new version", going)
                await cancelled(going)
    assert set(versions) == {"old", "new version", "between"}


@pytest.mark.soak
async def test_servers_restarted_one_after_the_other(machines, tmp_path, certificate):  # noqa: F811
    """Each server is restarted after the check finds no problems: no job fails."""
    servers = NatsCluster(tmp_path / "servers")
    await asyncio.to_thread(servers.start)
    machines.callback(servers.stop)
    place = place_of(tmp_path, servers, certificate)
    worker, check = commands("Upgrade")
    front = RuntimeProcess(servers.url("jobs"), agents=())
    await asyncio.to_thread(start_all, machines, front)
    versions = []
    with started(place, worker) as working:
        announcement(working)
        async with connect(front.url, token=TOKEN) as client:
            going = asyncio.ensure_future(stream(client, versions))
            for server in servers.nodes:
                await reached(versions, "old", going)
                await asyncio.to_thread(server.stop)
                await asyncio.to_thread(server.start)
                await asyncio.to_thread(in_order, place, check)
                versions.append("between")
            await reached(versions, "old", going)
            await cancelled(going)


async def cancelled(going):
    """Stop the stream of jobs, and check that none has failed."""
    going.cancel()
    await asyncio.wait([going])
    assert going.cancelled(), going.exception()


async def stream(client, versions):
    """Run one job after another, each with its own key, since a submission may be interrupted when its front stops."""
    while True:
        versions.append(await client.submit_with_recovery("render", "at once"))


async def reached(versions, wanted, going):
    """Wait until a job has returned `wanted`; raises if a job has failed."""
    async with asyncio.timeout(100):
        while not versions or versions[-1] != wanted:
            if going.done():
                going.result()
            await asyncio.sleep(0.02)


def in_order(place, check):
    """Wait until the check finds no problems, as the page advises."""
    end = time.monotonic() + 100
    while time.monotonic() < end:
        process = place.start(check)
        out, _ = process.communicate(timeout=60)
        if process.returncode == 0:
            assert json.loads(out)["problems"] == []
            return
    raise AssertionError(out)
