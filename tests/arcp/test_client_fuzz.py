"""A runtime that sends random messages: the client raises only documented errors, and no handle waits forever."""

import asyncio
import json
import random

import pytest

from amends import Policy
from amends.arcp import connect
from amends.core.backoff import Backoff
from amends.errors.arcp import ARCPError
from tests.arcp.scripted import Scripted

TYPES = [
    *(
        "job.event",
        "job.result",
        "job.error",
        "job.accepted",
        "job.subscribed",
        "job.cancelled",
        "job.nonsense",
    ),
    *("session.error", "session.ping", "session.pong", "session.jobs", "session.welcome", "session.bye"),
]
MEMBERS = [
    *("code", "kind", "body", "job_id", "request_id", "final_status", "result", "result_id", "chunk_seq"),
    *("data", "run", "details", "retryable", "jobs", "nonce", "encoding", "result_size", "error"),
]
PLAIN = (None, True, 0, 3, -1, 0.5, "job_1", "", "success", "TIMEOUT", "result_chunk", "base64")
BOUND = 20


def value(dice, depth=0):
    """Return a random JSON value."""
    choice = dice.randrange(4 if depth < 2 else 2)
    if choice == 2:
        return [value(dice, depth + 1) for _ in range(dice.randrange(3))]
    if choice == 3:
        return {dice.choice(MEMBERS): value(dice, depth + 1) for _ in range(dice.randrange(5))}
    return dice.choice(PLAIN)


def frame(dice):
    """Return a random frame, mostly an almost valid one."""
    if dice.random() < 0.1:
        return dice.randbytes(dice.randrange(30))
    message = {"arcp": "1.1", "id": "x", "type": dice.choice(TYPES), "payload": value(dice)}
    if dice.random() < 0.8:
        message["payload"] = {dice.choice(MEMBERS): value(dice, 1) for _ in range(6)}
    if dice.random() < 0.7:
        message["job_id"] = dice.choice(["job_1", "job_2", None])
    if dice.random() < 0.7:
        message["event_seq"] = dice.choice([1, 2, 3, dice.randrange(1, 20)])
    return json.dumps(message)


async def use_client(client, number):
    """Use the client in every way; every failure is an ARCPError."""
    try:
        if number % 3 == 0:
            handle = await client.subscribe(f"job_{number % 2 + 1}", history=number == 0)
        else:
            handle = await client.submit("echo", number, idempotency_key=str(number) if number % 2 else None)
        if number == 4:
            await handle.cancel()
        async for _ in handle.events():
            pass
        await handle.done
    except ARCPError:
        pass


@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(12, 400))]
)
async def test_random_messages_from_a_runtime(seed):
    """Every call ends in time with a result or a typed error, and the event loop logs no exception."""
    dice = random.Random(seed)

    async def script(peer):
        await peer.welcome(heartbeat_interval_sec=0.05, token=dice.choice(["rt_1", "rt_1", None]))
        for _ in range(dice.randrange(60)):
            if dice.random() < 0.2:
                await peer.accept(dice.choice(["job_1", "job_2", "job_3"]))
            await peer.raw(frame(dice))

    unhandled = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    scripted = Scripted(*[script] * 6)
    policy = Policy(attempts=3, backoff=Backoff(first=0.001, cap=0.002))
    bounds = {
        "resuming": policy,
        "request_timeout": 0.2,
        "slow_reader_timeout": 0.01,
        "buffer": 4,
        "max_result": 10,
    }
    async with asyncio.timeout(BOUND), connect(scripted, token="secret", **bounds) as client:
        await asyncio.gather(*(use_client(client, number) for number in range(6)))
    for task in scripted.tasks:
        task.cancel()
    await asyncio.gather(*scripted.tasks, return_exceptions=True)
    assert unhandled == []
