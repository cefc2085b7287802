"""Interoperability with the TypeScript SDK in both directions (`make soak`): its example clients, and our client on its runtime."""

import asyncio
import json
from functools import partial

import pytest

from amends.arcp import Limits, Runtime, connect
from amends.arcp.client.dial import UrlDial
from amends.errors.arcp import ARCPError, InternalError, PermissionDeniedError
from tests.arcp.client.test_sent_frames import sent_frames as client_frames
from tests.arcp.conftest import begin  # noqa: F401 - a fixture
from tests.arcp.sent_frames import TYPESCRIPT, TYPESCRIPT_ID, sent_frames
from tests.arcp.typescript.agents import EXAMPLES, TOKEN, runtime_for
from tests.arcp.typescript.cases import CASES, SETTINGS
from tests.arcp.typescript.recording import NOT_RECORDED, Recorder, recording, write
from tests.arcp.typescript.sdk import checkout, client_lines, invalid_frames, run_client, sdk_runtime

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def sdk(tmp_path_factory):
    return checkout(tmp_path_factory.mktemp("typescript") / "sdk")


@pytest.mark.parametrize("example", EXAMPLES)
async def test_an_example_client_on_our_runtime(sdk, example):
    """It ends with exit 0."""
    runtime = runtime_for(example)
    async with runtime, runtime.listen(port=0) as listening:
        code, output = await run_client(sdk, example, listening.url)
    assert code == 0, output


@pytest.mark.parametrize(
    "features", [(), ("ack", "progress"), ("progress", "ack", "subscribe")], ids=["all", "some", "unordered"]
)
async def test_no_call_of_its_client_hangs(sdk, features):
    """With the SDK's list of features, with some of them, and with some in another order, which makes it an unknown client."""
    runtime = Runtime(tokens={TOKEN: "alice"}, limits=Limits(drain=0.0, cancel_grace=0.1))

    @runtime.register_agent("echo")
    async def echo(given, ctx):
        return given

    @runtime.register_agent("denied")
    async def denied(given, ctx):
        raise PermissionDeniedError("no")

    @runtime.register_agent("own")
    async def own(given, ctx):
        raise ARCPError("SEAT_TAKEN", "The seat is taken", retryable=False)

    @runtime.register_agent("doubtful")
    async def doubtful(given, ctx):
        raise InternalError("It may have been paid", retryable=False)

    @runtime.register_agent("slow")
    async def slow(given, ctx):
        await asyncio.sleep(60)

    async with runtime, runtime.listen(port=0) as listening:
        lines = await client_lines(sdk, listening.url, *features)
    assert lines == [
        'result {"n":5}',
        "unknown agent AGENT_NOT_AVAILABLE",
        "unknown version AGENT_VERSION_NOT_AVAILABLE",
        "failure PERMISSION_DENIED",
        "own code CANCELLED",
        "in doubt CANCELLED",
        "key 1",
        "conflicting key DUPLICATE_KEY",
        "time limit TIMEOUT",
        "after all that 1",
    ]


async def test_our_client_on_its_runtime(sdk):
    """Thirty cases on one runtime; each ends within seconds."""
    failed, recorded = {}, {}
    async with sdk_runtime(sdk) as url:
        for case in CASES:
            recorder = Recorder(UrlDial(url, {}))
            try:
                async with asyncio.timeout(30):
                    await case(partial(connect, recorder, settings=SETTINGS))
            except Exception as error:
                failed[case.__name__] = repr(error)
            if case.__name__ not in NOT_RECORDED:
                recorded[case.__name__] = recorder.connections
    assert len(CASES) == 30
    assert failed == {}
    if recording():
        write(recorded)


async def test_the_frames_of_our_runtime_fit_its_schemas(sdk, begin):  # noqa: F811
    """All but `session.closed`, which the specification has and the SDK has not, and a tool's code that an agent chose."""
    frames = [json.dumps(frame) for frame in await sent_frames(begin, TYPESCRIPT, TYPESCRIPT_ID)]
    frames = [frame for frame in frames if '"tool_result"' not in frame or "NOT_OURS" not in frame]
    assert await invalid_frames(sdk, frames, "session.closed") == []


async def test_the_frames_of_our_client_fit_its_schemas(sdk):
    """All but `session.close`: a runtime that does not know it gets `session.bye`."""
    frames = [json.dumps(frame) for frame in await client_frames()]
    assert await invalid_frames(sdk, frames, "session.close") == []
