"""Clients for every binding, version and mode of the protocol, and helpers for their events."""

from contextlib import asynccontextmanager

import pytest
from a2a.types.a2a_pb2 import TaskState

from amends.bindings.a2a import Client
from tests.bindings.agents import PATHS, SOME, card, config, http_client, works

every_path = pytest.mark.parametrize("path", PATHS, ids=str)
some_paths = pytest.mark.parametrize("path", SOME, ids=str)
ONCE, STREAM = PATHS[0], PATHS[1]
STREAMS = [path for path in PATHS if path.streaming]


@asynccontextmanager
async def client_for(base, path, *, http_timeout=100, **options):
    async with (
        http_client(timeout=http_timeout) as http,
        Client(card(base, path), config=config(path, httpx_client=http), **options) as it,
    ):
        yield it


def states(events):
    return [TaskState.Name(event.task.status.state)[11:] for event in events if event.HasField("task")]


def failing_until(number, error):
    """Work that succeeds at the nth call."""
    count = 0

    async def work(context, updater):
        nonlocal count
        count += 1
        if count < number:
            raise error
        await works(context, updater)

    return work
