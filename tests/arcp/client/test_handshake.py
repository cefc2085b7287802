"""Opening a session: the handshake, invalid answers to it, a runtime in this process."""

import asyncio
import json

import pytest

from amends.arcp import Settings, connect
from amends.arcp.transports import ConnectionLost
from amends.core.enums import Executed, Recovery
from amends.core.fault import Origin
from amends.errors.arcp import (
    ARCPError,
    HeartbeatLostError,
    InternalError,
    InvalidRequestError,
    UnauthenticatedError,
)
from tests.arcp.client.scripted_client import hangs_up, scripted_client
from tests.arcp.scripted import SESSION, Scripted


async def test_the_handshake():
    """6.2: the client sends its name, token and features; the effective features are the intersection."""

    async def script(peer):
        hello = await peer.welcome(
            capabilities={"features": ["ack", "telepathy"], "agents": ["a", {"name": "b"}]}
        )
        assert hello["auth"] == {"scheme": "bearer", "token": "secret"}
        assert hello["client"]["name"] == "amends"
        assert "heartbeat" in hello["capabilities"]["features"]
        assert "resume" not in hello
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        assert client.session_id == SESSION
        assert client.features == {"ack"}
        assert set(client.agents) == {"a", "b"}
        with pytest.raises(InvalidRequestError):
            await client.jobs()
        with pytest.raises(InvalidRequestError):
            await client.subscribe("job_1")


async def test_a_welcome_with_the_session_in_the_envelope_only():
    """v1.1's own example has it there; a published runtime has it in the payload."""

    async def script(peer):
        await peer.take()
        await peer.send("session.welcome", {"resume_token": "x"}, session_id="sess_9")
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        assert client.session_id == "sess_9"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("UNAUTHENTICATED", UnauthenticatedError),
        ("INVALID_REQUEST", InvalidRequestError),
        ("SOMETHING_NEW", ARCPError),
    ],
)
async def test_a_session_error_is_what_connect_raises(code, kind):
    """R6: with its class, its details and its origin; unknown codes are kept."""

    async def script(peer):
        await peer.take()
        details = {"scheme": "basic"}
        await peer.send(
            "session.error", {"code": code, "message": "no", "details": details}, trace_id="ab" * 16
        )

    with pytest.raises(kind) as caught:
        async with scripted_client(script):
            pass
    error = caught.value
    assert (error.code, error.details, error.fault.trace_id) == (code, {"scheme": "basic"}, "ab" * 16)
    assert error.fault.origin == Origin("arcp", "session.error", "transport")


async def test_an_error_without_a_code():
    """It is still a failure, and its origin contains what a conformant runtime would have sent."""

    async def script(peer):
        await peer.take()
        await peer.send("session.error", {"message": 5})

    with pytest.raises(InternalError) as caught:
        async with scripted_client(script):
            pass
    assert caught.value.fault.origin.gap == "an error has a code"


async def garbage(peer):
    await peer.raw(b"\xff\x00")
    await peer.take("nothing")


async def no_session(peer):
    await peer.send("session.welcome", {"resume_token": "x"})
    await peer.take("nothing")


async def wrong_types(peer):
    await peer.send("session.welcome", {"session_id": ["x"]})
    await peer.take("nothing")


async def silent(peer):
    await peer.take("nothing")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (hangs_up, "no_protocol"),
        (garbage, "no_protocol"),
        (no_session, "no_protocol"),
        (wrong_types, "no_protocol"),
        (silent, "no_answer"),
    ],
)
async def test_invalid_answers_to_the_handshake(script, reason):
    """HEARTBEAT_LOST, retryable, with `executed` no."""
    with pytest.raises(HeartbeatLostError) as caught:
        async with scripted_client(script, connect_timeout=0.05):
            pass
    fault = caught.value.fault
    assert fault.details == {"reason": reason}
    assert (fault.executed, fault.recovery) == (Executed.NO, Recovery.TRANSIENT)
    assert fault.origin.layer == "transport"


async def test_an_unreachable_runtime():
    """A dial function that fails, that never returns, and that raises an unexpected error."""

    async def never():
        await asyncio.sleep(60)

    for dial, bound in ((Scripted(), 5), (never, 0.02)):
        with pytest.raises(HeartbeatLostError) as caught:
            await connect(dial, connect_timeout=bound)
        assert caught.value.details == {"reason": "unreachable"}

    async def broken():
        raise KeyError("x")

    with pytest.raises(KeyError):
        await connect(broken)
    with pytest.raises(TypeError):
        connect(5)


async def test_connect_can_be_awaited():
    """Then the caller closes the client."""

    async def script(peer):
        await peer.welcome()
        await peer.goodbye()

    scripted = Scripted(script)
    client = await connect(scripted, settings=Settings(name="mine"))
    assert scripted.peers[0].received[0]["payload"]["client"]["name"] == "mine"
    await client.close()
    await client.close()
    with pytest.raises(HeartbeatLostError):
        await client.submit("echo")
    await scripted.finished()


async def test_a_runtime_in_this_process():
    """Any object with `serve` is a runtime."""

    class Runtime:
        async def serve(self, connection):
            while (frame := await connection.receive()) is not None:
                message = json.loads(frame)
                if message["type"] == "session.hello":
                    welcome = {
                        "arcp": "1",
                        "id": "x",
                        "type": "session.welcome",
                        "payload": {"session_id": "s"},
                    }
                    await connection.send(json.dumps(welcome))
                elif message["type"] == "session.close":
                    await connection.close()

    async with connect(Runtime()) as client:
        assert client.session_id == "s"
        assert client.agents == {}


async def test_the_trace_of_the_caller_is_sent():
    """Section 11: OpenTelemetry's current trace is sent with a submission."""
    from opentelemetry.sdk.trace import TracerProvider

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await peer.result(1)
        await peer.goodbye()

    async with scripted_client(script) as (client, scripted):
        with TracerProvider().get_tracer("test").start_as_current_span("outer") as span:
            await (await client.submit("echo")).done
    submit = next(message for message in scripted.peers[0].received if message["type"] == "job.submit")
    assert submit["trace_id"] == f"{span.get_span_context().trace_id:032x}"


async def test_a_connection_lost_during_the_handshake():
    """Sending `session.hello` fails."""

    class Dead:
        peer = "dead"

        async def send(self, data):
            raise ConnectionLost("gone")

        async def close(self, code=1000, reason=""):
            pass

    async def dial():
        return Dead()

    with pytest.raises(HeartbeatLostError) as caught:
        await connect(dial)
    assert caught.value.details == {"reason": "no_protocol"}
