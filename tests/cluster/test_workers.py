"""Workers as separate processes: they run jobs submitted elsewhere, and are drained and restarted without a failure."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pty
import signal
import subprocess
import sys

import pytest
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from amends import commands, stores
from amends.arcp import Runtime, otel
from amends.arcp.runtime.entries import JobEntry
from amends.arcp.runtime.ledger import Ledger
from amends.arcp.runtime.limits import Limits
from amends.arcp.runtime.status import read_status
from amends.commands.runtime import status, worker
from amends.errors.cli import ServiceUnavailableError
from amends.stores.nats.queue import NatsQueue
from tests.arcp.agents import echo
from tests.arcp.raw import Raw, connected
from tests.cluster.load_client import LoadClient
from tests.cluster.machines import ROOT, RuntimeProcess, balancer, start_all


async def test_rolling_restarts_without_a_failed_job(machines, nats_url):
    """One front, and workers replaced one after another under load: every job succeeds once, and none is in doubt."""
    front = RuntimeProcess(nats_url, agents=(), lease=15.0)
    # Not repeatable, so that a job that its worker does not finish would end in doubt.
    options = {"worker": True, "lease": 15.0}
    workers = [RuntimeProcess(nats_url, "--drain", "20", **options) for _ in range(2)]
    await asyncio.to_thread(start_all, machines, front, *workers)
    client = LoadClient(balancer([front]), "c", at_once=4, pause=0.02)
    going = asyncio.ensure_future(client.go())
    for old in list(workers):
        new = RuntimeProcess(nats_url, "--drain", "20", **options)
        await asyncio.to_thread(start_all, machines, new)
        assert await asyncio.to_thread(old.stop) == 0
    client.more = False
    await asyncio.wait_for(going, 100)
    async with await stores.open(nats_url) as store:
        await client.compare(Ledger(store, "test", Limits()))
        health = await read_status(store)
    assert client.wrong == []
    assert len(client.ends) > 4
    assert len(health.nodes) == 3
    assert health.errors == {}


async def test_a_drain_that_is_too_short_hands_back(machines, nats_url, tmp_path):
    """A repeatable job is requeued at once, and the next worker runs it without waiting for a lease to expire."""
    front = RuntimeProcess(nats_url, agents=(), lease=30.0)
    options = ("--drain", "0.1", "--repeatable")
    worker = RuntimeProcess(nats_url, *options, worker=True, lease=30.0)
    await asyncio.to_thread(start_all, machines, front, worker)
    raw = Raw(await balancer([front])())
    await raw.hello()
    go, done = tmp_path / "go", tmp_path / "done"
    job = (await raw.submit("patient", {"go": str(go), "done": str(done)}))["payload"]["job_id"]
    await raw.until("job.event")
    assert await asyncio.to_thread(worker.stop) == 0
    go.touch()
    await asyncio.to_thread(start_all, machines, RuntimeProcess(nats_url, *options, worker=True, lease=30.0))
    end = await raw.end(job, 100)
    assert end["type"] == "job.result"
    assert len(done.read_text().splitlines()) == 1
    numbers = [message["event_seq"] for message in raw.seen if "event_seq" in message]
    assert numbers == list(range(1, len(numbers) + 1))
    await raw.close()


async def test_budgets_are_shared_by_all_nodes(begin, nats_url):
    """The node that takes a job over continues with the rest of its budget, under the same lease."""
    started = asyncio.Event()

    async def spender(input, ctx):
        await ctx.metric("cost.model", 0.4, unit="USD")
        if not started.is_set():
            started.set()
            await asyncio.Event().wait()
        ctx.authorize("tool.call", "search")
        return ctx.budget

    first = await begin(nats_url, agents=False, limits={"node_lease": 0.5})
    first.register_agent("spender", spender, repeatable=True)
    second = await begin(nats_url, agents=False, limits={"node_lease": 0.5})
    raw = await connected(first)
    lease = {"tool.call": ["search"], "cost.budget": ["USD:1.00"]}
    job = (await raw.submit("spender", lease_request=lease, idempotency_key="k"))["payload"]["job_id"]
    await started.wait()
    await raw.until("job.event")
    await first.abandon()
    second.register_agent("spender", spender, repeatable=True)
    watcher = await connected(second)
    assert (await watcher.submit("spender", lease_request=lease, idempotency_key="k"))["payload"][
        "job_id"
    ] == job
    end = await watcher.end(job, 100)
    assert end["payload"]["result"] == {"USD": "0.20"}
    await watcher.close()


async def test_versions_of_other_nodes(begin, nats_url):
    """Versions of other nodes are found, also ones that were announced later."""
    front, back = [await begin(nats_url, agents=False) for _ in range(2)]
    raw = await connected(front)
    assert (await raw.submit("late", 1))["payload"]["code"] == "AGENT_NOT_AVAILABLE"

    async def late(input, ctx):
        return input

    back.register_agent("late", late, version="2")
    await back.node.membership.announce()
    assert (await raw.run("late@2", 1))["payload"]["result"] == 1
    assert (await raw.submit("late@3", 1))["payload"]["code"] == "AGENT_VERSION_NOT_AVAILABLE"
    await raw.close()


async def test_the_status_of_a_cluster(begin, nats_url):
    """Nodes with their leases and agents, queues with their lag, errors by code, and a dead node with its jobs."""
    front = await begin(nats_url, agents=False, name="front")
    back = await begin(nats_url, name="back", limits={"running": 1})
    raw = await connected(front)
    await raw.run("echo", 1)
    await raw.run("raising", {"code": "PERMISSION_DENIED"})
    running = (await raw.submit("waiting"))["payload"]["job_id"]
    await raw.until(lambda m: m["type"] == "job.event" and m["job_id"] == running)
    await raw.submit("echo", 2)
    dead = Ledger(front.node.store, "node_dead", Limits())
    spec = await front.node.ledger.spec(running)
    await dead.write_owner(spec, JobEntry("accepted", 1, 1, dead.node, spec.created))
    await back.node.membership.announce()
    await front.node.membership.announce()
    found = await read_status(front.node.store)
    by_name = {node.name: node for node in found.nodes}
    assert set(by_name) == {"front", "back", None}
    assert by_name["back"].running == by_name["back"].holds == by_name["back"].room == 1
    assert 0 < by_name["back"].lease_left <= 30
    assert by_name["front"].sessions == 1
    assert by_name[None].lease_left == 0
    queue = next(queue for queue in found.queues if queue.agent == "echo@1.0.0")
    assert (queue.waiting, queue.nodes, queue.dead) == (1, 1, 0)
    assert queue.lag > 0
    assert (found.waiting, found.succeeded, found.errors) == (1, 1, {"PERMISSION_DENIED": 1})
    await raw.close()


def run_status(url, **options):
    return subprocess.run(
        [sys.executable, "-m", "amends", "runtime", "status", "--store", url],
        cwd=ROOT,
        check=False,
        **options,
    )


async def test_the_status_command(begin, nats_url, tmp_path):
    """JSON in a pipe, and lines on a terminal."""
    # A long lease, so that no round of maintenance changes the rows in the meantime.
    runtime = await begin(nats_url, name="one", limits={"node_lease": 3600.0})
    raw = await connected(runtime)
    await raw.run("raising", {"code": "PERMISSION_DENIED"})
    await runtime.node.membership.announce()
    printed = json.loads((await asyncio.to_thread(run_status, nats_url, capture_output=True)).stdout)
    assert [node["name"] for node in printed["nodes"]] == ["one"]
    assert printed["errors"] == {"PERMISSION_DENIED": 1}
    dead = Ledger(runtime.node.store, "node_dead", Limits())
    spec = await runtime.node.ledger.spec(raw.seen[-1]["job_id"])
    await dead.write_owner(spec, JobEntry("accepted", 1, 1, dead.node, spec.created))
    ours, theirs = pty.openpty()
    await asyncio.to_thread(run_status, nats_url, stdout=theirs, stderr=theirs, stdin=theirs)
    os.close(theirs)
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert "2 nodes, 1 running" in shown
    assert "PERMISSION_DENIED" in shown
    assert "dead, jobs waiting for take-over: 1" in shown
    await raw.close()


def test_stores_that_cannot_be_reached(capfd, tmp_path, monkeypatch):
    """The commands fail with an envelope and its exit code."""
    monkeypatch.chdir(ROOT)
    for arguments in (
        ["runtime", "status", "--store", "ftp://x"],
        ["runtime", "worker", "--agents", "tests.cluster.work:steps"],
        ["runtime", "worker", "--agents", "tests.cluster.work:steps", "--store", "ftp://x"],
        ["runtime", "worker", "--agents", "tests.cluster.work:steps", "--store", "memory:"],
        ["runtime", "worker", "--agents", "tests.cluster.work:steps", "--store", "memory:x", "--lease", "0"],
        ["runtime", "serve"],
    ):
        kept = os.dup(1)
        try:
            assert commands.main(arguments) != 0
        finally:
            os.dup2(kept, 1)
            os.close(kept)
        answer = json.loads(capfd.readouterr().out)
        assert answer["ok"] is False
        assert answer["error"]["code"] in {"VALIDATION_ERROR", "USAGE_ERROR"}


@pytest.fixture
def measured(monkeypatch):
    reader = InMemoryMetricReader()
    monkeypatch.setattr(metrics, "get_meter", MeterProvider([reader]).get_meter)
    otel._instruments.cache_clear()
    yield reader
    otel._instruments.cache_clear()


async def test_metrics(begin, nats_url, measured):
    """Gauges of this node and of the queues, counters by code; no values while the runtime is stopped."""
    idle = Runtime(nats_url, tokens="t")
    otel.instrument(idle)
    assert not _numbers(measured)
    runtime = await begin(nats_url, limits={"running": 1, "node_lease": 0.3})
    otel.instrument(runtime)
    raw = await connected(runtime)
    await raw.run("raising", {"code": "PERMISSION_DENIED"})
    await raw.run("echo", 1)
    await raw.submit("waiting")
    await raw.submit("echo", 2)
    async with asyncio.timeout(100):
        while not runtime.node.takeover.waiting:
            await asyncio.sleep(0.02)
    numbers = _numbers(measured)
    assert numbers["amends.arcp.jobs.running", ""] == 1
    assert numbers["amends.arcp.sessions", ""] == 1
    assert numbers["amends.arcp.nodes", ""] == 1
    assert numbers["amends.arcp.queue.waiting", "echo@1.0.0"] == 1
    assert numbers["amends.arcp.queue.lag", "echo@1.0.0"] > 0
    assert numbers["amends.arcp.jobs.ended", "PERMISSION_DENIED"] == 1
    assert numbers["amends.arcp.jobs.ended", ""] == 1
    assert numbers["amends.arcp.jobs.taken_over", ""] == 0
    otel.uninstrument(runtime)
    assert not _numbers(measured)
    await raw.close()


def _numbers(reader):
    found = {}
    data = reader.get_metrics_data()
    for resource in data.resource_metrics if data is not None else ():
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                for point in metric.data.data_points:
                    assert point.attributes["amends.node"] == "amends"
                    name = [value for key, value in point.attributes.items() if key != "amends.node"]
                    found[metric.name, "".join(name)] = point.value
    return found


def namespace(output, **more):
    return argparse.Namespace(output=output, json=output == "json", job_id=None, **more)


async def test_the_text_of_the_status(begin, nats_url, capsys):
    """The command in this process, with JSON and with text."""
    runtime = await begin(nats_url, name="one")
    raw = await connected(runtime)
    await raw.run("raising", {"code": "PERMISSION_DENIED"})
    await runtime.node.membership.announce()
    dead = Ledger(runtime.node.store, "node_dead", Limits())
    spec = await runtime.node.ledger.spec(raw.seen[-1]["job_id"])
    await dead.write_owner(spec, JobEntry("accepted", 1, 1, dead.node, spec.created))
    assert await status.work(namespace("json", store=nats_url, url=None)) == 0
    assert json.loads(capsys.readouterr().out)["errors"] == {"PERMISSION_DENIED": 1}
    assert await status.work(namespace("text", store=nats_url, url=None)) == 0
    shown = capsys.readouterr().out
    assert "one" in shown
    assert "PERMISSION_DENIED" in shown
    assert "echo@1.0.0" in shown
    with pytest.raises(ServiceUnavailableError):
        await status.work(namespace("json", store="nats://127.0.0.1:9/x?timeout=0.2", url=None))
    await raw.close()


@pytest.mark.parametrize("output", ["json", "text"])
async def test_a_worker_in_this_process(nats_url, capsys, monkeypatch, output):
    """It announces itself, works until a signal, and stops."""
    monkeypatch.chdir(ROOT)
    agents = ["steps=tests.cluster.work:steps"]
    bounds = {"name": None, "repeatable": False, "jobs": 2, "lease": 5.0, "drain": 1.0}
    args = namespace(output, agents=agents, more_agents=[], store=nats_url, token=None, stdio=False, **bounds)
    working_ = asyncio.ensure_future(worker.work(args))
    async with await stores.open(nats_url) as store, asyncio.timeout(100):
        while not (await read_status(store)).nodes:
            await asyncio.sleep(0.02)
        while "steps@1.0.0" not in (printed := capsys.readouterr().out):
            await asyncio.sleep(0.02)
        os.kill(os.getpid(), signal.SIGTERM)
        assert await working_ == 0
        assert not (await read_status(store)).nodes
    assert "working" in printed


async def test_queue_messages_that_are_not_jobs(begin, nats_url):
    """Messages of ended, deleted, running or cancelled jobs are removed, and later jobs run."""
    runtime = await begin(nats_url, limits={"running": 2})
    node = runtime.node
    raw = await connected(runtime)
    ended = (await raw.run("echo", 1))["job_id"]
    for job in (ended, "job_unknown"):
        await node.store.queue("arcp.run.echo@1.0.0").put(job.encode(), key=job)
    held = (await raw.submit("waiting"))["payload"]["job_id"]
    await raw.until("job.event")
    spec, tail = await node.ledger.spec(held), await node.ledger.tail(held)
    await node.store.table("arcp.cancels").put(held, b"", expires_in=60)
    await node.ledger.requeue(spec, tail)
    node.jobs[held].drop()
    assert (await raw.end(held))["payload"]["code"] == "CANCELLED"
    assert (await raw.run("echo", 2))["payload"]["result"] == 2
    async with asyncio.timeout(100):
        while (await node.store.queue("arcp.run.echo@1.0.0").size()).ready:
            await asyncio.sleep(0.02)
    await raw.close()


async def test_a_queue_that_cannot_be_read(begin, nats_url, monkeypatch, caplog):
    """A store failure is logged, and the queue is read again."""
    runtime = await begin(nats_url, agents=False)
    take, failed = NatsQueue.take, asyncio.Event()

    async def failing(self, *, wait=0.0):
        if not failed.is_set():
            failed.set()
            raise stores.StoreUnavailableError("no")
        return await take(self, wait=wait)

    monkeypatch.setattr(NatsQueue, "take", failing)
    runtime.register_agent("echo", echo)
    async with asyncio.timeout(100):
        await failed.wait()
    front = await begin(nats_url, agents=False)
    await runtime.node.membership.announce()
    raw = await connected(front)
    assert (await raw.run("echo", 1))["payload"]["result"] == 1
    assert "the store failed" in caplog.text
    await raw.close()
