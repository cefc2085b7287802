"""Fixtures for several bindings: a service with scripted failures, a fake clock, and a check for leftovers."""

import asyncio
import gc
import logging
import time
from contextlib import suppress
from pathlib import Path

import pytest
import uvloop

from amends.http.key_support import shared_proofs
from amends.testing import FakeClock
from tests.http.flaky import Flaky
from tests.http.serving import serve

LOGGERS = ("mcp", "fastmcp", "amends.mcp")
CLEAN_UP_LIMIT = 15.0
"""Seconds that cleaning up may take on a busy machine."""


@pytest.fixture
def quiet():
    """Switch off the log messages of MCP's servers and clients."""
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    yield
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.fixture(autouse=True)
def no_proofs():
    """Forget which addresses honour keys: another test's server may have had the same port."""
    shared_proofs().clear()


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
    """The service without a script and without recorded calls."""
    service.script.clear()
    service.calls.clear()
    service.effects.clear()
    return service


def files():
    return len(list(Path("/proc/self/fd").iterdir()))


def children():
    """The ids of this process's children."""
    found = set()
    for thread in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            found.update((thread / "children").read_text().split())
    return found


@pytest.fixture
async def nothing_left():
    """Check that the test leaves no task, open file or process behind."""
    # Let the loop create its own signal pipe and threads first. The loops of uvicorn share one pipe, which stays open.
    await asyncio.sleep(0)
    uvloop.new_event_loop().close()
    tasks, before, others = asyncio.all_tasks(), files(), children()
    yield
    until = time.monotonic() + CLEAN_UP_LIMIT
    while time.monotonic() < until:
        left = asyncio.all_tasks() - tasks - {asyncio.current_task()}
        if not left and files() <= before and children() <= others:
            return
        gc.collect()
        await asyncio.sleep(0.01)
    raise AssertionError(f"left behind: {left}, {files() - before} files, {children() - others}")
