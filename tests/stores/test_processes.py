"""Several processes that use one store concurrently."""

from __future__ import annotations

import asyncio
import json
import sys
import time

import pytest

from amends import stores
from tests.stores.backends import backends


async def run(*arguments):
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", *arguments, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    return json.loads(out)


@pytest.mark.parametrize("backend", backends("sqlite", "nats"), indirect=True)
async def test_processes_racing_for_everything(url):
    """No number twice or missing, one creator per key, no lost increment, no message delivered to two workers."""
    count, processes = 60, 3
    results = await asyncio.gather(
        *(run("tests.stores.racing", url, f"p{i}", str(count)) for i in range(processes))
    )
    seqs = sorted(seq for result in results for seq in result["seqs"])
    assert seqs == list(range(1, count * processes + 1))
    once = {tuple(pair) for result in results for pair in result["same"]}
    assert sorted(seq for _, seq in once) == list(range(1, count + 1))
    assert sorted(i for result in results for i in result["created"]) == list(range(count))
    messages = [tuple(message) for result in results for message in result["messages"]]
    assert len({message[0] for message in messages}) == len(messages) >= count
    assert {message[2] for message in messages} == {1}
    async with await stores.open(url) as store:
        assert (await store.table("t").get("n")).value == b"%d" % (count * processes)
        assert await store.check() == []
        assert (await store.queue("q").size()).ready == 0


@pytest.mark.parametrize("backend", backends("sqlite", "nats"), indirect=True)
async def test_a_follower_in_another_process_is_notified_soon(url):
    """Not a measurement (bench/stores.py is one), but the median is far below a poll of seconds."""
    code = (
        "import asyncio, sys, time\n"
        "from amends import stores\n"
        "async def main():\n"
        "    async with await stores.open(sys.argv[1]) as store:\n"
        "        print('ready', flush=True)\n"
        "        async for entry in store.log('l').follow():\n"
        "            print(time.time() - float(entry.value), flush=True)\n"
        "            if entry.seq == 20: return\n"
        "asyncio.run(main())"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, url, stdout=asyncio.subprocess.PIPE
    )
    assert await process.stdout.readline() == b"ready\n"
    await asyncio.sleep(0.2)
    async with await stores.open(url) as store:
        for _ in range(20):
            await store.log("l").append(repr(time.time()).encode())
            await asyncio.sleep(0.02)
        waits = sorted(float(line) for line in (await process.communicate())[0].split())
    assert len(waits) == 20
    assert waits[10] < 0.5
