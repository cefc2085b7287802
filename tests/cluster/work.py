"""The agents of nodes that run as processes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path


async def steps(input, ctx):
    """Logs a number of lines with pauses in between, and returns its key."""
    for number in range(input["steps"]):
        await ctx.log(f"{input['key']}:{number}")
        await asyncio.sleep(input["pause"])
    return input["key"]


async def patient(input, ctx):
    """Logs its process id, waits for a file, appends a line to another file, and returns."""
    await ctx.log(f"started by {os.getpid()}")
    while not Path(input["go"]).exists():
        await asyncio.sleep(0.02)
    with Path(input["done"]).open("a") as done:
        done.write(f"{os.getpid()}\n")
    return os.getpid()


async def spending(input, ctx):
    """Spends the given amounts of its budget."""
    for amount in input:
        await ctx.spend(amount, "USD")
    return ctx.budget


async def asking(input, ctx):
    """Requests authority for its input."""
    ctx.authorize("tool.call", input)
    return "allowed"
