"""From one file to a cluster, a backup and back, an upgrade: by the very commands of docs/cluster.md."""

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
from tests.arcp.test_transports import certificate  # noqa: F401 - a fixture
from tests.cluster.documented import Place, commands, ended
from tests.cluster.machines import TOKEN, RuntimeProcess, balancer, told
from tests.cluster.machines import started as started_together
from tests.stores.servers import NatsCluster, nats_binary

AGENTS = """
import asyncio, pathlib

async def summarise(input, ctx):
    return input[:3]

async def render(input, ctx):
    await ctx.log("begun")
    while input != "at once":
        await asyncio.sleep(0.05)
    return "{look}"

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
            words = [*node.place.words(command), "-a", "127.0.0.1", "-p", str(node.port)]
            node.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for node in self.nodes:
            node.wait()


def place_of(directory, servers, certificate):  # noqa: F811
    """Where the commands are typed: agents, a certificate, and the servers under the page's names."""
    (directory / "agents.py").write_text(AGENTS.format(look="old"))
    cert, key = certificate
    (directory / "host.pem").write_text(key.read_text() + cert.read_text())
    ports = {f"n{number}:4222": f"127.0.0.1:{node.port}" for number, node in enumerate(servers.nodes, 1)}
    return Place(directory, ports | {"--host 0.0.0.0": "--host 127.0.0.1"})


def client_of(process, certificate):  # noqa: F811
    url = told(process)["listening"]
    trust = ssl.create_default_context(cafile=str(certificate[0])) if url.startswith("wss") else None
    return connect(url, token=TOKEN, transport={"ssl": trust} if trust else None)


@contextlib.contextmanager
def started(place, command, *more):
    """Somebody who stays, as long as the block lasts or less."""
    process = place.start(command, *more)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


async def test_three_steps_a_backup_and_back(machines, tmp_path, certificate):  # noqa: F811
    """A key stands for the same job in the file, in the cluster, in the backup and in the cluster made anew."""
    servers = Cluster(tmp_path / "servers")
    place = place_of(tmp_path, servers, certificate)
    alone, copied, node, worker = commands("From one file to a cluster in three steps")
    backup, check, restore = commands("Backup")
    (status,) = commands("Status and metrics")
    with started(place, alone, "--port", "0") as process:
        async with client_of(process, certificate) as client:
            first = await client.submit("summarise", "abcdef", idempotency_key="k")
            assert await first.done == "abc"
        await asyncio.to_thread(ended, process)

    await asyncio.to_thread(servers.start)
    machines.callback(servers.stop)
    assert (await asyncio.to_thread(place.run, copied))["differences"] == []

    # A shorter lease than the page's: nobody wants to wait half a minute here for a node that is dead.
    short = ("--lease", "1.5")
    with started(place, node, "--port", "0", *short) as front, started(place, worker, *short) as working:
        told(working)
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
        await asyncio.to_thread(ended, front)

    assert (await asyncio.to_thread(place.run, backup))["differences"] == []
    assert (await asyncio.to_thread(place.run, check))["problems"] == []
    servers.stop()
    servers = Cluster(tmp_path / "others")
    place = place_of(tmp_path, servers, certificate)
    await asyncio.to_thread(servers.start)
    machines.callback(servers.stop)
    assert (await asyncio.to_thread(place.run, restore))["differences"] == []

    with started(place, node, "--port", "0", *short) as front, started(place, worker, *short) as working:
        told(working)
        async with client_of(front, certificate) as client:
            again = await client.submit("summarise", "abcdef", idempotency_key="k")
            assert (again.job_id, await again.done) == (first.job_id, "abc")
            assert await (await client.submit("render", "at once", idempotency_key="r")).done == "old"
            # Its worker was killed, and it may have had its effect: nobody runs it blindly.
            again = await client.submit("render", "for ever", idempotency_key="broken off")
            assert again.job_id == running.job_id
            with pytest.raises(InternalError) as caught:
                await again.done
            assert caught.value.fault.details["in_doubt"] is True
            assert await (await client.submit("render", "at once")).done == "old"


async def test_an_upgrade_while_jobs_run(machines, nats_url, tmp_path, certificate):  # noqa: F811
    """New code in a new worker, then a new front: each job succeeds, at last by the new code."""
    place = Place(tmp_path, {"nats://n1:4222,n2:4222,n3:4222/jobs?replicas=3": nats_url})
    worker = commands("Upgrade")[0]
    fronts = [RuntimeProcess(nats_url, agents=()) for _ in range(2)]
    await asyncio.to_thread(started_together, machines, fronts[0])
    looks = []
    (tmp_path / "agents.py").write_text(AGENTS.format(look="old"))
    with started(place, worker) as old:
        told(old)
        async with connect(balancer(fronts), token=TOKEN) as client:
            going = asyncio.ensure_future(stream(client, looks))
            await reached(looks, "old", going)
            # Longer, too: Python takes a file of the same second and length for the one it has compiled.
            (tmp_path / "agents.py").write_text(AGENTS.format(look="new look"))
            with started(place, worker) as new:
                told(new)
                await asyncio.to_thread(ended, old)
                await asyncio.to_thread(started_together, machines, fronts[1])
                assert await asyncio.to_thread(fronts[0].stop) == 0
                looks.append("between")
                await reached(looks, "new look", going)
                await cancelled(going)
    assert set(looks) == {"old", "new look", "between"}


@pytest.mark.soak
async def test_servers_restarted_one_after_the_other(machines, tmp_path, certificate):  # noqa: F811
    """The next one when the check finds nothing: no job fails."""
    servers = NatsCluster(tmp_path / "servers")
    await asyncio.to_thread(servers.start)
    machines.callback(servers.stop)
    place = place_of(tmp_path, servers, certificate)
    worker, check = commands("Upgrade")
    front = RuntimeProcess(servers.url("jobs"), agents=())
    await asyncio.to_thread(started_together, machines, front)
    looks = []
    with started(place, worker) as working:
        told(working)
        async with connect(front.url, token=TOKEN) as client:
            going = asyncio.ensure_future(stream(client, looks))
            for server in servers.nodes:
                await reached(looks, "old", going)
                await asyncio.to_thread(server.stop)
                await asyncio.to_thread(server.start)
                await asyncio.to_thread(in_order, place, check)
                looks.append("between")
            await reached(looks, "old", going)
            await cancelled(going)


async def cancelled(going):
    """Nothing failed until now."""
    going.cancel()
    await asyncio.wait([going])
    assert going.cancelled(), going.exception()


async def stream(client, looks):
    """One job after the other, each under a key of its own: a submission may be on its way when its front stops."""
    while True:
        looks.append(await client.submit_with_recovery("render", "at once"))


async def reached(looks, wanted, going):
    """Until a job has come back with it; one that failed says why at once."""
    async with asyncio.timeout(100):
        while not looks or looks[-1] != wanted:
            if going.done():
                going.result()
            await asyncio.sleep(0.02)


def in_order(place, check):
    """Wait as the page says: until the check finds nothing."""
    end = time.monotonic() + 100
    while time.monotonic() < end:
        process = place.start(check)
        out, _ = process.communicate(timeout=60)
        if process.returncode == 0:
            assert json.loads(out)["problems"] == []
            return
    raise AssertionError(out)
