"""One of several processes that use one store concurrently: `python -m tests.stores.racing URL NAME COUNT`."""

from __future__ import annotations

import asyncio
import json
import sys

from amends import stores


async def race(url, name, count):
    result = {"seqs": [], "same": [], "increments": 0, "created": [], "messages": []}
    async with await stores.open(url) as store:
        log, table = store.log("l"), store.table("t")
        queue = store.queue("q", lease=20)

        async def step(i):
            result["seqs"].append(await log.append(f"{name}-{i}".encode()))
            result["same"].append([i, await store.log("once").append(b"x", dedupe=str(i))])
            while True:
                row = await table.get("n")
                try:
                    await table.put(
                        "n", b"%d" % (int(row.value) + 1 if row else 1), revision=row.revision if row else 0
                    )
                except stores.ConflictError:
                    continue
                result["increments"] += 1
                break
            try:
                await table.create(f"key-{i}", name.encode())
                result["created"].append(i)
            except stores.ConflictError:
                pass
            await queue.put(f"{i}".encode(), key=f"{i}")
            # Each step creates its own log; every second one drops it again.
            own = store.log(f"own/{name}-{i}")
            assert await own.append(f"{name}-{i}".encode(), last=0) == 1
            assert [entry.value for entry in await own.read()] == [f"{name}-{i}".encode()]
            if i % 2:
                await own.drop()

        for start in range(0, count, 8):
            await asyncio.gather(*(step(i) for i in range(start, min(count, start + 8))))
        while (lease := await queue.take(wait=0.5)) is not None:
            result["messages"].append([lease.id, lease.epoch, lease.attempt])
            await lease.done()
    print(json.dumps(result))


if __name__ == "__main__":
    asyncio.run(race(sys.argv[1], sys.argv[2], int(sys.argv[3])))
