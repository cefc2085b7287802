"""Our client on recorded frames of the TypeScript SDK's runtime; `make soak` runs the same cases on that runtime itself."""

import asyncio
from functools import partial

import pytest

from amends.arcp import connect
from tests.arcp.typescript.cases import CASES, SETTINGS
from tests.arcp.typescript.recording import NOT_RECORDED, read, replay

RECORDED = read()


def test_every_case_is_recorded():
    assert RECORDED.keys() == {case.__name__ for case in CASES} - NOT_RECORDED


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.__name__ in RECORDED], ids=lambda case: case.__name__
)
async def test_a_recorded_case(case):
    dial = replay(RECORDED[case.__name__])
    async with asyncio.timeout(30):
        await case(partial(connect, dial, settings=SETTINGS))
    await dial.finished()
