"""
What a durable step costs, beside one fenced append to the log of the same job.

    python bench/steps.py [URL ...]

Blocks of each kind are interleaved in one agent; printed are medians per call, in µs of wall time and of the process's CPU time.
`begin and end` writes two entries, and is shown per entry.
"""

import asyncio
import statistics
import sys
import tempfile
import time

from amends.arcp import Runtime, connect

BLOCK, ROUNDS = 50, 12


async def measure(url):
    """Return for each kind the medians of wall and CPU seconds per entry."""
    runtime = Runtime(url, tokens={"secret": "alice"})
    taken = {}

    @runtime.register_agent("bench")
    async def bench(input, ctx):
        payload = ctx.job.entry(
            "step.end", b'{"step":"[\\"look\\",1]","called":"%s","result":"17"}' % (b"0" * 64)
        ).payload

        async def append(_):
            await ctx.job.write_step(ctx.job.entry("step.note", payload))

        async def repeat(number):
            await ctx.step("look", lambda number: number, number, repeat=True)

        async def both(number):
            await ctx.step("pay", lambda number: number, number, key=number)

        kinds = {
            "fenced append": (append, 1),
            "step, repeat=True": (repeat, 1),
            "step, begin and end": (both, 2),
        }
        number = 0
        for _ in range(ROUNDS):
            for name, (call, entries) in kinds.items():
                wall, cpu = time.perf_counter(), time.process_time()
                for _ in range(BLOCK):
                    number += 1
                    await call(number)
                wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
                taken.setdefault(name, []).append((wall / BLOCK / entries, cpu / BLOCK / entries))

    async with runtime, connect(runtime, token="secret") as client:
        await (await client.submit("bench")).done
    return {
        name: [statistics.median(each) for each in zip(*times[1:], strict=True)]
        for name, times in taken.items()
    }


async def main(urls):
    """Print a row per store and kind."""
    with tempfile.TemporaryDirectory() as folder:
        for url in urls or ["memory:", f"sqlite:///{folder}/jobs.db?synchronous=normal"]:
            found = await measure(url)
            base = found["fenced append"]
            for name, (wall, cpu) in found.items():
                print(
                    f"{url.partition(':')[0]:<10} {name:<22} {wall * 1e6:8.0f} µs wall ({wall / base[0]:.2f}) "
                    f"{cpu * 1e6:8.0f} µs CPU ({cpu / base[1]:.2f})"
                )


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
