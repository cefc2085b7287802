"""A task of twenty durable steps, ten of them delegated payments, whose process is killed at any point and started again."""

import asyncio
import random

import pytest

from tests.arcp.test_kill_step import killed_often, nats_server, new_url, resumed_late, survives

__all__ = ["nats_server", "new_url"]

PROGRAM = "tests.tasks.stepping"


async def test_a_sample_of_kills(new_url, tmp_path):
    """Ten payments, each made once, whatever the point; a finished step is not called again."""
    points = await survives(new_url(tmp_path / "whole"), tmp_path / "whole", 0, PROGRAM)
    assert points > 150
    for at in random.Random(45).sample(range(1, points + 1), 3):
        await survives(new_url(tmp_path / str(at)), tmp_path / str(at), at, PROGRAM)


async def test_a_process_that_was_stopped(new_url, tmp_path):
    """It goes on after another one has ended its task: it writes nothing, and a service that honours keys pays once."""
    [at] = random.Random(45).sample(range(20, 150), 1)
    folder = tmp_path / "key"
    assert await resumed_late(new_url(folder), folder, at, "key", "0.2", program=PROGRAM) == 0


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("world", [("key", "0.2"), ("verify", "6")])
async def test_processes_that_were_stopped(new_url, tmp_path, world):
    """With keys nothing is paid twice; with `verify` alone nothing, if the stop is shorter than the time limit."""
    for at in random.Random(46).sample(range(5, 150), 30):
        folder = tmp_path / str(at)
        assert await resumed_late(new_url(folder), folder, at, *world, program=PROGRAM) == 0


@pytest.mark.soak
@pytest.mark.timeout(7200)
async def test_a_thousand_random_kills(new_url, tmp_path):
    """Several in a row for one task, also while it is restored."""
    made, _ = await killed_often(new_url, tmp_path, 150, 1000, PROGRAM)
    assert made >= 1000


@pytest.mark.soak
@pytest.mark.timeout(7200)
async def test_a_kill_at_every_point(new_url, tmp_path):
    """The same at each of the points."""
    points = await survives(new_url(tmp_path / "whole"), tmp_path / "whole", 0, PROGRAM)
    limit = asyncio.Semaphore(2)

    async def at_point(at):
        async with limit:
            await survives(new_url(tmp_path / str(at)), tmp_path / str(at), at, PROGRAM)

    await asyncio.gather(*(at_point(at) for at in range(1, points + 1)))
