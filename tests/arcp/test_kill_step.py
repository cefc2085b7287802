"""An agent of twenty steps, ten of them delegated payments, whose process is killed at any point and started again."""

import asyncio
import json
import random
import sys
import uuid
from contextlib import suppress

import pytest

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


async def started(url, folder, at):
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.arcp.stepping",
        url,
        str(folder),
        str(at),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(120):
            out, err = await process.communicate()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
    return process.returncode, out.decode(), err.decode()


async def survives(url, folder, at):
    """Kill the agent at a point, start it again, and check what it did. Returns the number of points of a whole run."""
    folder.mkdir()
    code, out, err = await started(url, folder, at)
    assert code == (KILLED if at else 0), err[-2000:]
    if at:
        code, out, err = await started(url, folder, 0)
        assert code == 0, err[-2000:]
    seen, _, result = out.partition(" ")
    result = json.loads(result)
    everything = list(range(stepping.PAYMENTS))
    assert stepping.calls(folder, "charge") == everything, f"killed at {at}"
    assert result["receipts"] == [f"receipt {number}" for number in everything]
    # Each payment cost 1 of 100, never twice, also if its job was rejoined. Killed between the payment and its report, it is lost.
    assert result["budget"] in ({"USD": "90"}, {"USD": "91"}), f"killed at {at}"
    thoughts = stepping.calls(folder, "think")
    assert sorted(set(thoughts)) == everything
    # Only the step in which the process died may have been called again.
    assert len(thoughts) <= stepping.PAYMENTS + 1, f"killed at {at}"
    return int(seen)


async def test_a_sample_of_kills(new_url, tmp_path):
    """Ten payments, each made once and paid for once, whatever the point; a finished step is not called again."""
    points = await survives(new_url(tmp_path / "whole"), tmp_path / "whole", 0)
    assert points > 200
    chosen = random.Random(45).sample(range(1, points + 1), 4)
    for at in chosen:
        await survives(new_url(tmp_path / str(at)), tmp_path / str(at), at)


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
