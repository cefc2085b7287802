"""Runtimes on every embedded store, which stop at the end of their test."""

from __future__ import annotations

import uuid
from contextlib import AsyncExitStack

import pytest

from amends.arcp import Limits, Runtime
from tests.arcp.agents import register
from tests.arcp.raw import TOKENS
from tests.stores.backends import backends, new_database
from tests.stores.conftest import nats_server

__all__ = ["begin", "nats_server", "node", "sqlite_url", "store_url"]

# Data still survives the process. Only a power failure would need more, which every commit would have to pay for.
SQLITE = "sqlite:///{}/arcp.db?synchronous=normal"


@pytest.fixture(params=backends("memory", "sqlite"))
def store_url(request, tmp_path):
    """The URL of a store that several runtimes can share."""
    if request.param == "postgres":
        return new_database()
    if request.param == "nats":
        return f"{request.getfixturevalue('nats_server').url}/a{uuid.uuid4().hex[:12]}"
    return f"memory:{uuid.uuid4().hex}" if request.param == "memory" else SQLITE.format(tmp_path)


@pytest.fixture
def sqlite_url(tmp_path):
    return SQLITE.format(tmp_path)


@pytest.fixture
async def begin():
    """Starts runtimes with all test agents; by default on an exclusive memory store."""
    async with AsyncExitStack() as stack:

        async def start(store=None, *, limits=None, agents=True, **options):
            settings = {"drain": 0.0, "cancel_grace": 0.2, "node_lease": 30.0, **(limits or {})}
            options.setdefault("tokens", None if "authenticate" in options else TOKENS)
            runtime = Runtime(store, limits=Limits(**settings), **options)
            if agents:
                register(runtime)
            await stack.enter_async_context(runtime)
            return runtime

        yield start


@pytest.fixture
async def node(begin):
    """The node of a runtime on a memory store that others could share."""
    runtime = await begin(f"memory:{uuid.uuid4().hex}")
    return runtime._node
