"""A client connected to a scripted runtime."""

import asyncio
from contextlib import asynccontextmanager

from amends import Policy
from amends.arcp import connect
from amends.core.backoff import Backoff
from tests.arcp.scripted import Scripted

QUICK = Policy(attempts=3, max_wait=30.0, backoff=Backoff(first=0.001, cap=0.002))
NOW = Policy(attempts=3, backoff=Backoff(first=0.0, cap=0.0))


@asynccontextmanager
async def scripted_client(*scripts, frames=256, **bounds):
    """Open a client whose runtime runs these scripts, one per connection."""
    scripted = Scripted(*scripts, frames=frames)
    bounds.setdefault("resuming", QUICK)
    async with asyncio.timeout(100), connect(scripted, token="secret", **bounds) as client:
        yield client, scripted
    await scripted.finished()


async def hangs_up(peer):
    await peer.take()


async def drops(peer):
    await peer.welcome()
    await peer.accept()
