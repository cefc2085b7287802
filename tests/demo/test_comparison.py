"""The comparison of the agents ends when its task is cancelled, as Ctrl-C does."""

import asyncio

import pytest

from amends.demo.agents import Endpoints
from amends.demo.comparison import _run_step

ENDPOINTS = Endpoints(http="", mcp="", a2a="", arcp="", token="")


async def test_a_cancellation_as_a_step_ends_is_not_lost():
    """asyncio.wait_for of Python 3.11 returns the result instead; the demo then ran on after Ctrl-C."""

    async def step(context):
        running.cancel()
        return True

    running = asyncio.create_task(_run_step("prices", step, ENDPOINTS, 7))
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_client_that_raises_another_exception_does_not_hide_a_cancellation():
    """An exception of a client is the step's result, but not while the demo is being cancelled."""
    waiting = asyncio.Event()

    async def step(context):
        try:
            waiting.set()
            await asyncio.Event().wait()
        finally:
            raise ConnectionError("closed")

    running = asyncio.create_task(_run_step("prices", step, ENDPOINTS, 7))
    await waiting.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
