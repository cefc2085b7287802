"""An agent of twenty steps, ten of them delegated payments, whose process is killed at any point and started again."""

import asyncio
import json
import os
import random
import signal
import sys
import uuid
from contextlib import suppress
from pathlib import Path

import pytest

from amends import stores
from amends.arcp import Limits
from amends.arcp.runtime.ledger import Ledger
from amends.tasks.entries import Ended
from amends.tasks.journal import read_records
from tests.arcp import stepping
from tests.stores.backends import backends, new_database
from tests.stores.conftest import nats_server

__all__ = ["nats_server"]

KILLED = -9


@pytest.fixture(params=backends("sqlite", "nats"))
def new_url(request, tmp_path):
    """Return a function that returns the URL of an empty store."""
    if request.param == "postgres":
        return lambda folder: new_database()
    if request.param == "nats":
        server = request.getfixturevalue("nats_server")
        return lambda folder: f"{server.url}/k{uuid.uuid4().hex[:12]}"
    return lambda folder: f"sqlite:///{folder}/jobs.db?synchronous=normal"


async def begun(url, folder, at, *more, program="tests.arcp.stepping"):
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        program,
        url,
        str(folder),
        str(at),
        *more,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def ended(process):
    """Wait for the process; returns its exit code and what it wrote."""
    try:
        async with asyncio.timeout(120):
            out, err = await process.communicate()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
    return process.returncode, out.decode(), err.decode()


async def started(url, folder, at, *more, program="tests.arcp.stepping"):
    return await ended(await begun(url, folder, at, *more, program=program))


def check(folder, out, *, kills=1, where="", doubled=0):
    """Check what a run that ended did. Returns its number of points."""
    seen, _, result = out.partition(" ")
    result = json.loads(result)
    everything = list(range(stepping.PAYMENTS))
    paid = stepping.calls(folder, "charge")
    assert sorted(set(paid)) == everything, where
    assert len(paid) <= len(everything) + doubled, (where, paid)
    assert result["receipts"] == [f"receipt {number}" for number in everything]
    if "budget" in result:
        # Each payment cost 1 of 100, never twice, also if its job was rejoined. Killed between the payment and its report, it is
        # lost.
        least = 100 - stepping.PAYMENTS
        assert least <= int(result["budget"]["USD"]) <= least + kills, where
    thoughts = stepping.calls(folder, "think")
    assert sorted(set(thoughts)) == everything
    # Only the step in which the process died may have been called again.
    assert len(thoughts) <= stepping.PAYMENTS + kills, where
    return int(seen)


async def survives(url, folder, at, program="tests.arcp.stepping"):
    """Kill the agent at a point, start it again, and check what it did. Returns the number of points of a whole run."""
    folder.mkdir()
    code, out, err = await started(url, folder, at, program=program)
    assert code == (KILLED if at else 0), err[-2000:]
    if at:
        code, out, err = await started(url, folder, 0, program=program)
        assert code == 0, err[-2000:]
    return check(folder, out, where=f"killed at {at}")


async def killed_often(new_url, tmp_path, points, kills, program="tests.arcp.stepping"):
    """Kill agents at random points, again and again, and let each end."""
    dice, made, number = random.Random(45), 0, 0
    while made < kills:
        number += 1
        folder = tmp_path / f"often{number}"
        folder.mkdir()
        url, here = new_url(folder), 0
        for _ in range(dice.randrange(1, 6)):
            code, out, err = await started(url, folder, dice.randrange(1, points), program=program)
            if code != KILLED:
                break
            here += 1
        else:
            code, out, err = await started(url, folder, 0, program=program)
        assert code == 0, err[-2000:]
        check(folder, out, kills=here, where=f"job {number} after {here} kills")
        made += here
    return made, number


async def check_logs(url):
    """Check that no entry of an earlier owner is behind one of a later owner, and that each job and task has one end."""
    async with await stores.open(url) as store:
        for name in (await store.names())["logs"]:
            if name.startswith("arcp.job/"):
                entries = [entry async for _, entry in Ledger(store, "", Limits()).history(name[9:])]
                epochs = [entry.epoch for entry in entries]
                assert epochs == sorted(epochs), name
                assert sum(entry.ended for entry in entries) == 1, name
            elif name.startswith("tasks/"):
                records = await read_records(store, "tasks", name[6:])
                assert sum(isinstance(record, Ended) for record in records) == 1, name


async def resumed_late(url, folder, at, *world, program="tests.arcp.stepping", doubled=0):
    """
    Stop the agent's process at a point until another one has taken its job over and ended it, and let it go on.

    Returns whether it was stopped, and how many payments were made twice.
    """
    folder.mkdir()
    stopped = await begun(url, folder, at, "stop", *world, program=program)
    state = Path(f"/proc/{stopped.pid}/stat")
    async with asyncio.timeout(60):
        while state.exists() and state.read_text().rpartition(")")[2].split()[0] not in "TZ":
            await asyncio.sleep(0.02)
    other = await begun(url, folder, 0, "kill", *world, program=program)
    if world[:1] == ("verify",):
        # Shorter than the time limit of a payment, and longer than the lease.
        await asyncio.sleep(1.5)
        os.kill(stopped.pid, signal.SIGCONT)
    ending = asyncio.ensure_future(ended(other))
    # A process that is stopped inside a write keeps the lock of an SQLite file, so that the other one has to wait for it.
    await asyncio.wait({ending}, timeout=30)
    with suppress(ProcessLookupError):
        os.kill(stopped.pid, signal.SIGCONT)
    code, out, err = await ending
    assert code == 0, err[-2000:]
    await ended(stopped)
    check(folder, out, kills=2, where=f"stopped at {at}", doubled=doubled)
    await check_logs(url)
    return len(stepping.calls(folder, "charge")) - stepping.PAYMENTS


async def test_a_sample_of_kills(new_url, tmp_path):
    """Ten payments, each made once and paid for once, whatever the point; a finished step is not called again."""
    points = await survives(new_url(tmp_path / "whole"), tmp_path / "whole", 0)
    assert points > 200
    chosen = random.Random(45).sample(range(1, points + 1), 3)
    for at in chosen:
        await survives(new_url(tmp_path / str(at)), tmp_path / str(at), at)


async def test_a_process_that_was_stopped(new_url, tmp_path):
    """It goes on after another one has ended its job: it writes nothing, and a service that honours keys pays once."""
    [at] = random.Random(45).sample(range(20, 240), 1)
    assert await resumed_late(new_url(tmp_path / "key"), tmp_path / "key", at, "key", "0.2") == 0


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("world", [("key", "0.2"), ("verify", "6")])
async def test_processes_that_were_stopped(new_url, tmp_path, world):
    """With keys nothing is paid twice; with `verify` alone nothing, if the stop is shorter than the time limit."""
    for at in random.Random(46).sample(range(5, 260), 30):
        assert await resumed_late(new_url(tmp_path / str(at)), tmp_path / str(at), at, *world) == 0


@pytest.mark.soak
@pytest.mark.timeout(7200)
async def test_a_thousand_random_kills(new_url, tmp_path):
    """Several in a row for one job, also while it is restored."""
    made, _ = await killed_often(new_url, tmp_path, 250, 1000)
    assert made >= 1000


@pytest.mark.soak
@pytest.mark.timeout(7200)
async def test_a_kill_at_every_point(new_url, tmp_path):
    """The same at each of the points."""
    points = await survives(new_url(tmp_path / "whole"), tmp_path / "whole", 0)
    limit = asyncio.Semaphore(2)

    async def at_point(at):
        async with limit:
            await survives(new_url(tmp_path / str(at)), tmp_path / str(at), at)

    await asyncio.gather(*(at_point(at) for at in range(1, points + 1)))
