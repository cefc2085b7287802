"""
What guard and client cost a tool call that succeeds, in memory: CPU time per call, ours and the plain SDK's in turn.

Both sides are connected once and stay so: the 2026-07-28 path, which dispatches directly, where there is the least to
hide behind, and the handshake path over memory streams.
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

ROUNDS, CALLS = 60, 200


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
WANTED = {"our client, guarded server": "≤ 1.05"}


async def measured(mode, rounds, calls):
    clients = {name: make(server(guarded=ours), mode=mode) for name, (make, ours) in CONTENDERS.items()}
    found = {name: [] for name in CONTENDERS}
    order = list(CONTENDERS)
    for client in clients.values():
        await client.__aenter__()
        await timed(client, calls)
    gc.disable()
    for _ in range(rounds):
        random.shuffle(order)
        gc.collect()
        for name in order:
            found[name].append(await timed(clients[name], calls))
    gc.enable()
    for client in reversed(clients.values()):
        await client.__aexit__(None, None, None)
    return found


def main(rounds=ROUNDS, calls=CALLS):
    logging.disable(logging.CRITICAL)
    lines = ["| tool call, in memory | CPU µs | ratio (middle half) | want |", "|---|---|---|---|"]
    for mode, title in (("2026-07-28", "2026-07-28"), ("legacy", "2025-11-25")):
        found = asyncio.run(measured(mode, rounds, calls))
        for name, times in found.items():
            ratios = [a / b for a, b in zip(times, found[BARE], strict=True)]
            low, middle, high = quantiles(ratios, n=4)
            ratio = "" if name == BARE else f"{middle:.3f} ({low:.3f}–{high:.3f})"
            lines.append(f"| {title}: {name} | {median(times):.1f} | {ratio} | {WANTED.get(name, '')} |")
    return lines


if __name__ == "__main__":
    print("\n".join(main(*(int(each) for each in sys.argv[1:]))))
