"""
Interoperability with the Go SDK in both directions (`make arcp-sdks` with AMENDS_GO_SDK), and on its recorded frames without it.

A key that one session of its client repeats hangs in the client: it gives the second acceptance of a job to the first handle.
"""

import asyncio
import os
from functools import partial

import pytest

from amends.arcp import Limits, Runtime, connect
from amends.arcp.client.dial import UrlDial
from amends.errors import FaultError
from amends.errors.arcp import PermissionDeniedError
from tests.arcp.golang.cases import CASES, NOT_RECORDED, SETTINGS
from tests.arcp.golang.sdk import PROGRAMS, SOURCES, build, client, server
from tests.arcp.typescript.recording import Recorder, read, replay, write

FILE = PROGRAMS / "recorded.jsonl"
RECORDED = read(FILE)
real = pytest.mark.skipif(SOURCES is None, reason="AMENDS_GO_SDK does not name the sources of the Go SDK")


@pytest.fixture(scope="module")
def sdk(tmp_path_factory):
    return build(tmp_path_factory.mktemp("go"))


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


@real
@pytest.mark.soak
async def test_our_client_on_its_runtime(sdk):
    """Each case ends within seconds."""
    failed, recorded = {}, {}
    async with server(sdk) as url:
        for case in CASES:
            recorder = Recorder(UrlDial(url, {}))
            try:
                async with asyncio.timeout(30):
                    await case(partial(connect, recorder, settings=SETTINGS))
            except Exception as error:
                failed[case.__name__] = repr(error)
            if case.__name__ not in NOT_RECORDED:
                recorded[case.__name__] = recorder.connections
    assert failed == {}
    if os.environ.get("AMENDS_GO_RECORD"):
        write(recorded, FILE)


EXPECTED = [
    'result {"n":5}',
    "unknown agent AGENT_NOT_AVAILABLE",
    "unknown version AGENT_VERSION_NOT_AVAILABLE",
    "invalid name INVALID_REQUEST",
    "failure PERMISSION_DENIED",
    "own code INTERNAL_ERROR",
    "key 1",
    "conflicting key DUPLICATE_KEY",
    "time limit TIMEOUT",
    "budget 1",
    "unknown job JOB_NOT_FOUND",
    "page 2",
    "cancelled CANCELLED",
    "after all that 1",
    "close closed",
]


@real
@pytest.mark.soak
@pytest.mark.parametrize("features", [(), ("ack", "list_jobs", "subscribe")], ids=["all", "some"])
@pytest.mark.parametrize("name", ["", "shop"])
async def test_its_client_on_our_runtime(sdk, name, features):
    """No call hangs, with the SDK's name or the user's, and with all features or a list of the user's."""
    runtime = Runtime(tokens={"secret": "alice"}, limits=Limits(drain=0.0, cancel_grace=0.1))

    @runtime.register_agent("echo")
    async def echo(given, ctx):
        return given

    @runtime.register_agent("denied")
    async def denied(given, ctx):
        raise PermissionDeniedError("no", details={"a": 1})

    @runtime.register_agent("own")
    async def own(given, ctx):
        raise FaultError("The seat is taken", code="SEAT_TAKEN")

    @runtime.register_agent("slow")
    async def slow(given, ctx):
        await asyncio.sleep(60)

    async with runtime, runtime.listen(port=0) as listening:
        lines = await client(sdk, listening.url, name, *features)
    if name and features:
        # Nothing in such a hello is the SDK's own. A refused subscription is answered before it ends.
        assert lines[10] == "unknown job subscribed"
        lines[10] = EXPECTED[10]
    assert lines == EXPECTED
