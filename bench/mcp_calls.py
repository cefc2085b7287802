"""
What guard and client cost a tool call that succeeds, in memory: CPU time per call, ours and the plain SDK's in turn.

Both sides are connected once and stay so: the 2026-07-28 path, which dispatches directly, where there is the least to
hide behind, and the handshake path over memory streams. Each pair has an event loop of its own, so that the plain ones
do not pay for our timer; rounds are short, because a busy machine disturbs long ones more.
"""

import asyncio
import gc
import logging
import random
import sys
import time
from statistics import median, quantiles

import mcp
from mcp.server.mcpserver import MCPServer

from amends.bindings.mcp import Client, guard

ROUNDS, CALLS = 1000, 10


def server(*, guarded):
    """One tool that adds."""
    made = MCPServer("bench")

    @made.tool()
    async def add(a: int, b: int) -> int:
        return a + b

    return guard(made) if guarded else made


async def timed(client, calls):
    """Microseconds of CPU per call."""
    began = time.process_time_ns()
    for _ in range(calls):
        await client.call_tool("add", {"a": 1, "b": 2})
    return (time.process_time_ns() - began) / calls / 1000


CONTENDERS = {
    "plain client, plain server": (mcp.Client, False),
    "plain client, guarded server": (mcp.Client, True),
    "our client, plain server": (Client, False),
    "our client, guarded server": (Client, True),
}
BARE = "plain client, plain server"
WANTED = {"our client, guarded server": "≤ 1.08"}


class Contender:
    """One client and its server, connected for as long as it takes, in a loop where nothing else happens."""

    def __init__(self, make, guarded, mode):
        self._loop = asyncio.new_event_loop()
        self._asked, self._answers = asyncio.Queue(), asyncio.Queue()
        self._task = self._loop.create_task(self._live(make(server(guarded=guarded), mode=mode)))

    async def _live(self, client):
        async with client:
            while calls := await self._asked.get():
                self._answers.put_nowait(await timed(client, calls))

    def timed(self, calls):
        """Microseconds of CPU per call."""
        self._asked.put_nowait(calls)
        return self._loop.run_until_complete(self._answers.get())

    def close(self):
        self._asked.put_nowait(0)
        self._loop.run_until_complete(self._task)
        self._loop.close()


def measured(mode, rounds, calls):
    contenders = {name: Contender(make, ours, mode) for name, (make, ours) in CONTENDERS.items()}
    found = {name: [] for name in CONTENDERS}
    order = list(CONTENDERS)
    for each in contenders.values():
        each.timed(20 * calls)
    gc.collect()
    gc.freeze()  # what is there by now need not be looked at in every round
    gc.disable()
    for _ in range(rounds):
        random.shuffle(order)
        gc.collect()
        for name in order:
            found[name].append(contenders[name].timed(calls))
    gc.enable()
    gc.unfreeze()
    for each in contenders.values():
        each.close()
    return found


def main(rounds=ROUNDS, calls=CALLS):
    logging.disable(logging.CRITICAL)
    lines = ["| tool call, in memory | CPU µs | ratio (middle half) | want |", "|---|---|---|---|"]
    for mode, title in (("2026-07-28", "2026-07-28"), ("legacy", "2025-11-25")):
        found = measured(mode, rounds, calls)
        for name, times in found.items():
            ratios = [a / b for a, b in zip(times, found[BARE], strict=True)]
            low, middle, high = quantiles(ratios, n=4)
            ratio = "" if name == BARE else f"{middle:.3f} ({low:.3f}–{high:.3f})"
            lines.append(f"| {title}: {name} | {median(times):.1f} | {ratio} | {WANTED.get(name, '')} |")
    return lines


if __name__ == "__main__":
    print("\n".join(main(*(int(each) for each in sys.argv[1:]))))
