"""The agents of the nodes that are processes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path


async def steps(input, ctx):
    """Says so many things with pauses in between, and returns what it was given."""
    for number in range(input["steps"]):
        await ctx.log(f"{input['key']}:{number}")
        await asyncio.sleep(input["pause"])
    return input["key"]


async def patient(input, ctx):
    """Says which process it is, waits for a file, and leaves a line there when it has done its work."""
    await ctx.log(f"begun by {os.getpid()}")
    while not Path(input["go"]).exists():
        await asyncio.sleep(0.02)
    with Path(input["done"]).open("a") as done:
        done.write(f"{os.getpid()}\n")
    return os.getpid()


async def spending(input, ctx):
    """Uses its budget up, in the given steps."""
    for amount in input:
        await ctx.spend(amount, "USD")
    return ctx.budget


async def asking(input, ctx):
    """Whether it may."""
    ctx.authorize("tool.call", input)
    return "allowed"
