"""What tests of several bindings share: a service that fails as told, a clock, and a look at what was left behind."""

import asyncio
import gc
import logging
import time
from contextlib import suppress
from pathlib import Path

import pytest

from amends.testing import FakeClock
from tests.http.flaky import Flaky
from tests.http.serving import serve

LOUD = ("mcp", "fastmcp", "amends.mcp")
ROOM = 15.0
"""Seconds a busy machine may take to clean up; a hang would be minutes."""


@pytest.fixture
def quiet():
    """What MCP's servers and clients log is looked at where a test means to; the rest is not written."""
    for name in LOUD:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    yield
    for name in LOUD:
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.fixture
def clock():
    with FakeClock() as fake:
        yield fake


@pytest.fixture(scope="module")
def service():
    flaky = Flaky()
    with serve(flaky) as url:
        flaky.url = url
        yield flaky


@pytest.fixture
def flaky(service):
    """The service, with nothing said to it yet."""
    service.script.clear()
    service.calls.clear()
    service.effects.clear()
    return service


def files():
    return len(list(Path("/proc/self/fd").iterdir()))


def children():
    """The processes started here that were not waited for yet."""
    found = set()
    for thread in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            found.update((thread / "children").read_text().split())
    return found


@pytest.fixture
async def nothing_left():
    """Whatever a test did, no task, no open file and no process is left of it."""
    # The loop's own signal pipe and the resolver's threads are there from the first use on.
    await asyncio.sleep(0)
    tasks, before, others = asyncio.all_tasks(), files(), children()
    yield
    until = time.monotonic() + ROOM
    while time.monotonic() < until:
        left = asyncio.all_tasks() - tasks - {asyncio.current_task()}
        if not left and files() <= before and children() <= others:
            return
        gc.collect()
        await asyncio.sleep(0.01)
    raise AssertionError(f"left behind: {left}, {files() - before} files, {children() - others}")
