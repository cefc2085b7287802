"""The client against peers played from scripts: refusals, garbage, gaps, duplicates, silence, lost connections."""

import asyncio
import json
import time
from contextlib import asynccontextmanager

import pytest

from amends import Policy
from amends.arcp import Handle, Settings, Ticket, connect
from amends.arcp.transports import ConnectionLost
from amends.core.backoff import Backoff
from amends.core.fault import Origin
from amends.core.terms import Executed, Recovery
from amends.errors.arcp import (
    AgentNotAvailableError,
    ARCPError,
    CancelledError,
    DuplicateKeyError,
    HeartbeatLostError,
    InternalError,
    InvalidRequestError,
    JobNotFoundError,
    PermissionDeniedError,
    ResumeWindowExpiredError,
    UnauthenticatedError,
)
from amends.errors.arcp import TimeoutError as JobTimeoutError
from tests.arcp.scripted import SESSION, TOKEN, Scripted

QUICK = Policy(attempts=3, max_wait=30.0, backoff=Backoff(first=0.001, cap=0.002))
NOW = Policy(attempts=3, backoff=Backoff(first=0.0, cap=0.0))


@asynccontextmanager
async def talking(*scripts, frames=256, **bounds):
    """A client whose runtime plays these scripts, one per connection."""
    scripted = Scripted(*scripts, frames=frames)
    bounds.setdefault("resuming", QUICK)
    async with asyncio.timeout(100), connect(scripted, token="secret", **bounds) as client:
        yield client, scripted
    await scripted.finished()


# -- greeting


async def test_the_greeting():
    """6.2: who we are, the token, what we can do; the effective features are the intersection."""

    async def script(peer):
        hello = await peer.welcome(
            capabilities={"features": ["ack", "telepathy"], "agents": ["a", {"name": "b"}]}
        )
        assert hello["auth"] == {"scheme": "bearer", "token": "secret"}
        assert hello["client"]["name"] == "amends"
        assert "heartbeat" in hello["capabilities"]["features"]
        assert "resume" not in hello
        await peer.goodbye()

    async with talking(script) as (client, _):
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
        await peer.say("session.welcome", {"resume_token": "x"}, session_id="sess_9")
        await peer.goodbye()

    async with talking(script) as (client, _):
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
    """R6: with its class, its details, where it was found; unknown codes are kept."""

    async def script(peer):
        await peer.take()
        details = {"scheme": "basic"}
        await peer.say(
            "session.error", {"code": code, "message": "no", "details": details}, trace_id="ab" * 16
        )

    with pytest.raises(kind) as caught:
        async with talking(script):
            pass
    error = caught.value
    assert (error.code, error.details, error.fault.trace_id) == (code, {"scheme": "basic"}, "ab" * 16)
    assert error.fault.origin == Origin("arcp", "session.error", "transport")


async def test_an_error_without_a_code():
    """It is a failure all the same, and says what a conformant runtime would have done."""

    async def script(peer):
        await peer.take()
        await peer.say("session.error", {"message": 5})

    with pytest.raises(InternalError) as caught:
        async with talking(script):
            pass
    assert caught.value.fault.origin.gap == "an error has a code"


async def hangs_up(peer):
    await peer.take()


async def garbage(peer):
    await peer.raw(b"\xff\x00")
    await peer.take("nothing")


async def no_session(peer):
    await peer.say("session.welcome", {"resume_token": "x"})
    await peer.take("nothing")


async def wrong_types(peer):
    await peer.say("session.welcome", {"session_id": ["x"]})
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
async def test_what_does_not_greet_back(script, reason):
    """HEARTBEAT_LOST, retryable, and surely nothing happened."""
    with pytest.raises(HeartbeatLostError) as caught:
        async with talking(script, connect_timeout=0.05):
            pass
    fault = caught.value.fault
    assert fault.details == {"reason": reason}
    assert (fault.executed, fault.recovery) == (Executed.NO, Recovery.TRANSIENT)
    assert fault.origin.layer == "transport"


async def test_nobody_there():
    """Dialling that fails, dialling that never ends, dialling that breaks."""

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
    """Then closing is the caller's."""

    async def script(peer):
        await peer.welcome()
        await peer.goodbye()

    scripted = Scripted(script)
    client = await connect(scripted, settings=Settings(name="mine"))
    assert scripted.peers[0].heard[0]["payload"]["client"]["name"] == "mine"
    await client.close()
    await client.close()
    with pytest.raises(HeartbeatLostError):
        await client.submit("echo")
    await scripted.finished()


# -- submitting


async def test_a_job():
    """Everything asked for is asked for; everything granted can be seen; `done` gives the result, again and again."""
    asked = {}

    async def script(peer):
        await peer.welcome()
        asked.update(
            await peer.accept(
                lease={"fs.read": ["/a/**"]}, budget={"USD": 5.0}, credentials=[{"value": "s3cr3t"}]
            )
        )
        await peer.result(1, {"a": [1, 2.5, None, "ü"]}, summary="fine")
        await peer.goodbye()

    async with talking(script) as (client, _):
        handle = await client.submit(
            "echo@1",
            {"a": 1},
            idempotency_key="k",
            max_runtime_sec=30.0,
            lease={"fs.read": ("/a/**",)},
            expires_at=1_778_715_720.0,
            trace_id="ef" * 16,
            parent_job_id="job_0",
        )
        assert isinstance(handle, Handle)
        for _ in range(2):
            assert await handle.done == {"a": [1, 2.5, None, "ü"]}
        assert (handle.job_id, handle.agent, handle.lease) == ("job_1", "echo@1", {"fs.read": ["/a/**"]})
        assert (handle.summary, handle.trace_id, handle.run, handle.finished) == ("fine", "ab" * 16, 1, True)
        assert "s3cr3t" not in repr(handle) + repr(handle.accepted)
        assert [event async for event in handle.events()] == []
    assert asked["trace_id"] == "ef" * 16
    assert asked["session_id"] == SESSION
    assert asked["payload"] == {
        "agent": "echo@1",
        "input": {"a": 1},
        "idempotency_key": "k",
        "max_runtime_sec": 30,
        "lease_request": {"fs.read": ["/a/**"]},
        "lease_constraints": {"expires_at": "2026-05-13T23:42:00Z"},
        "parent_job_id": "job_0",
    }


async def test_what_was_not_said_is_not_sent():
    """A strict writer: no nulls."""

    async def script(peer):
        await peer.welcome()
        submit = await peer.accept()
        assert submit["payload"] == {"agent": "echo"}
        assert "trace_id" not in submit
        await peer.goodbye()

    async with talking(script) as (client, _):
        handle = await client.submit("echo", expires_at=None)
        assert "running" in repr(handle)
        with pytest.raises(TypeError):
            await client.submit("echo", object())
    with pytest.raises(HeartbeatLostError) as caught:
        await handle.done
    assert caught.value.details == {"reason": "closed"}


async def test_an_input_that_is_no_json_harms_no_other_request():
    """It is the caller's mistake, said at once."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await peer.result(1, 7)
        await peer.goodbye()

    async with talking(script) as (client, _):
        with pytest.raises(TypeError):
            await client.submit("echo", {"a": object()})
        assert await (await client.submit("echo")).done == 7


FAILURES = [
    (
        {"code": "TIMEOUT", "message": "m", "retryable": True, "final_status": "timed_out"},
        JobTimeoutError,
        True,
    ),
    ({"code": "CANCELLED", "message": "m", "final_status": "cancelled"}, CancelledError, False),
    ({"code": "INTERNAL_ERROR", "message": "m", "details": None}, InternalError, True),
    ({"code": "INTERNAL_ERROR", "message": "m", "retryable": False}, InternalError, False),
    (
        {"code": "PERMISSION_DENIED", "message": "m", "details": {"a": {"b": [1]}}},
        PermissionDeniedError,
        False,
    ),
    ({"code": "OUT_OF_INK", "message": "m", "retryable": True}, ARCPError, True),
    ({}, InternalError, True),
]


@pytest.mark.parametrize(("payload", "kind", "retryable"), FAILURES)
async def test_every_job_error_is_raised(payload, kind, retryable):
    """R5, R2, R4: the class of its code, its details as sent, its retryability, for every await anew."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await peer.say("job.error", payload, job_id="job_1", event_seq=1)
        await peer.goodbye()

    async with talking(script) as (client, _):
        handle = await client.submit("echo")
        with pytest.raises(kind) as caught:
            await handle.done
        first = caught.value
        assert first.retryable is retryable
        assert first.details == payload.get("details")
        assert first.fault.trace_id == "ab" * 16
        assert first.fault.extensions == {}
        # R10: context can be added, and only here.
        first.details = {**(first.details or {}), "job_id": handle.job_id}
        assert first.fault.details["job_id"] == "job_1"
        with pytest.raises(kind) as caught:
            await handle.done
        assert caught.value is not first
        assert caught.value.details == payload.get("details")


ENDS = [
    ({"final_status": "timed_out"}, TimeoutError),
    ({"final_status": "cancelled"}, CancelledError),
    ({"status": "cancelled"}, CancelledError),
    ({"final_status": "error"}, InternalError),
    (
        {"final_status": "failed", "error": {"code": "PERMISSION_DENIED", "message": "m"}},
        PermissionDeniedError,
    ),
    ({"error": {"code": "PERMISSION_DENIED", "message": "m"}}, PermissionDeniedError),
    ({"final_status": "exploded"}, InternalError),
]


@pytest.mark.parametrize(("payload", "kind"), ENDS)
async def test_every_failed_result_is_raised(payload, kind):
    """R5: a published runtime ends failed jobs with job.result; a status nobody knows is no success."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await peer.say("job.result", payload, job_id="job_1", event_seq=1)
        await peer.goodbye()

    async with talking(script) as (client, _):
        with pytest.raises(kind) as caught:
            await (await client.submit("echo")).done
        assert caught.value.fault.origin.gap


@pytest.mark.parametrize(
    ("payload", "result"),
    [
        ({"final_status": "success", "result": 1, "summary": [], "completed_at": 5, "result_size": "x"}, 1),
        ({"result": 1, "summary": 5}, 1),
        ({"status": "completed", "result": 2}, 2),
        (None, None),
    ],
)
async def test_a_result_with_odd_members_is_a_result(payload, result):
    """A member of a wrong type must not cost the result."""

    async def script(peer):
        await peer.welcome()
        await peer.accept(lease="none", budget=5)
        await peer.say("job.result", payload, job_id="job_1", event_seq=1)
        await peer.goodbye()

    async with talking(script) as (client, _):
        assert await (await client.submit("echo")).done == result


REFUSALS = [
    ("job.error", {"code": "AGENT_NOT_AVAILABLE", "message": "m"}, True, AgentNotAvailableError),
    ("job.error", {"code": "DUPLICATE_KEY", "message": "m"}, False, DuplicateKeyError),
    ("session.error", {"code": "DUPLICATE_KEY", "message": "m"}, True, DuplicateKeyError),
    ("session.error", {"code": "INVALID_REQUEST", "message": "m"}, False, InvalidRequestError),
]


@pytest.mark.parametrize(("type", "payload", "named", "kind"), REFUSALS)
async def test_a_refusal_is_for_that_request_alone(type, payload, named, kind):
    """R9: whether it names the request or not, whichever message it comes in; nobody else is harmed."""

    async def script(peer):
        await peer.welcome()
        first = await peer.accept("job_1")
        second = await peer.take("job.submit")
        third = await peer.take("job.submit")
        assert first["payload"]["input"] == 1
        await peer.say(type, {**payload, **({"request_id": second["id"]} if named else {})})
        await peer.say("job.accepted", {"job_id": "job_3", "request_id": third["id"]})
        await peer.result(1, "one", "job_1")
        await peer.result(2, "three", "job_3")
        await peer.goodbye()

    async with talking(script) as (client, _):
        one, two, three = await asyncio.gather(
            *(client.submit("echo", number) for number in (1, 2, 3)), return_exceptions=True
        )
        assert isinstance(two, kind)
        assert (await one.done, await three.done) == ("one", "three")


async def test_answers_that_name_nobody_come_in_order():
    """Older runtimes answer without request_id; a child that a job delegated to answers nobody."""

    async def script(peer):
        await peer.welcome()
        for _ in range(2):
            await peer.take("job.submit")
        await peer.say("job.accepted", {"job_id": "job_c", "parent_job_id": "job_0", "delegate_id": "del_1"})
        await peer.say("job.accepted", {"job_id": 5})
        await peer.say("job.accepted", {"job_id": "job_1"})
        await peer.say("job.accepted", {"job_id": "job_2", "lease": 5})
        await peer.result(1, "a", "job_1")
        await peer.result(2, "b", "job_2")
        await peer.result(3, "c", "job_c")
        await peer.say("job.accepted", {"job_id": "job_3"})
        await peer.goodbye()

    async with talking(script) as (client, _):
        one, two = await asyncio.gather(client.submit("echo"), client.submit("echo"))
        assert (await one.done, await two.done) == ("a", "b")


async def test_a_session_error_that_ends_the_connection_ends_the_session():
    """R6: fatal. Everything that waits raises it, and a new session is the recovery."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await peer.say("session.error", {"code": "INTERNAL_ERROR", "message": "m", "retryable": False})
        await peer.close()

    async with talking(script, script) as (client, scripted):
        handle = await client.submit("echo")
        with pytest.raises(InternalError) as caught:
            await handle.done
        assert caught.value.fault.origin.path == "session.error"
        for again in (client.submit("echo"), client.resume(), client.unsubscribe("job_9")):
            with pytest.raises(InternalError):
                await again
        assert len(scripted.peers) == 1


async def test_a_session_error_that_does_not_is_a_refusal():
    """A published runtime goes on after it; a connection lost later is resumed as ever."""

    async def first(peer):
        await peer.welcome()
        await peer.accept()
        await peer.say("session.error", {"code": "JOB_NOT_FOUND", "message": "m"})
        await peer.say("session.ping", {"nonce": "n"})
        await peer.take("session.pong")

    async def second(peer):
        await peer.welcome()
        await peer.result(1, "fine")
        await peer.goodbye()

    async with talking(first, second) as (client, _):
        assert await (await client.submit("echo")).done == "fine"


async def test_a_request_nobody_answers():
    """Bounded: HEARTBEAT_LOST, and whether it happened is unknown."""

    async def script(peer):
        await peer.welcome()
        await peer.goodbye()

    async with talking(script, request_timeout=0.05) as (client, _):
        with pytest.raises(HeartbeatLostError) as caught:
            await client.submit("echo")
        assert caught.value.details == {"reason": "no_answer"}
        assert caught.value.fault.executed is Executed.MAYBE
        given_up = asyncio.create_task(client.submit("echo"))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)


# -- waiting


async def test_many_may_wait_and_any_may_give_up():
    """Cancelling one waiter cancels nobody else."""
    go = asyncio.Event()

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await go.wait()
        await peer.result(1, "fine")
        await peer.goodbye()

    async with talking(script) as (client, _):
        handle = await client.submit("echo")
        waiting = [asyncio.ensure_future(handle.done) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(handle.done, 0.01)
        go.set()
        assert await asyncio.gather(*waiting[1:], handle.done) == ["fine"] * 3
        assert waiting[0].cancelled()


async def test_events_early_late_and_twice():
    """Every iterator sees all that is kept, whenever it begins; unknown kinds are handed on, unreadable ones not."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await peer.event(1, {"message": "a"})
        await peer.event(2, {"x": 1}, kind="x-vendor.new")
        await peer.say("job.event", {"kind": 5}, job_id="job_1", event_seq=3)
        await peer.event(4, kind="progress", job_id="job_unknown")
        await peer.say(
            "job.event", {"kind": "log", "body": {"message": "b"}, "run": 2}, job_id="job_1", event_seq=5
        )
        await peer.result(6, run=2)
        await peer.goodbye()

    async with talking(script) as (client, _):
        handle = await client.submit("echo")
        early = [(event.seq, event.kind, event.body, event.run) async for event in handle.events()]
        assert early == [
            (1, "log", {"message": "a"}, 1),
            (2, "x-vendor.new", {"x": 1}, 1),
            (5, "log", {"message": "b"}, 2),
        ]
        late = [event async for event in handle.events()]
        assert [event.seq for event in late] == [1, 2, 5]
        assert late[0].job_id == "job_1"
        assert late[0].ts == "2026-05-13T19:42:13Z"
        assert (handle.missed, handle.run) == (0, 2)


async def test_the_buffer_is_bounded_while_nobody_reads():
    """The oldest go, and the handle says how many."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        for seq in range(1, 11):
            await peer.event(seq)
        await peer.result(11, 1)
        await peer.accept("job_2")
        for seq in range(12, 22):
            await peer.event(seq, {"message": "x" * 1000}, job_id="job_2")
        await peer.result(22, 1, job_id="job_2")
        await peer.goodbye()

    async with talking(script, buffer=4, buffer_bytes=3000) as (client, _):
        handle = await client.submit("echo")
        await handle.done
        assert [event.seq async for event in handle.events()] == [7, 8, 9, 10]
        assert handle.missed == 6
        large = await client.submit("echo")
        await large.done
        assert [event.seq async for event in large.events()] == [20, 21]


async def test_a_slow_reader_holds_up_the_connection_and_loses_nothing():
    """Back-pressure: the runtime can only send as fast as the slowest iterator reads."""
    sent = 0

    async def script(peer):
        nonlocal sent
        await peer.welcome()
        await peer.accept()
        for seq in range(1, 101):
            await peer.event(seq)
            sent = seq
        await peer.result(101, 1)
        await peer.goodbye()

    async with talking(script, buffer=4, frames=2) as (client, _):
        handle = await client.submit("echo")
        seen = []
        async for event in handle.events():
            seen.append(event.seq)
            for _ in range(5):
                await asyncio.sleep(0)
            assert sent - event.seq < 12
        assert seen == list(range(1, 101))
        assert await handle.done == 1


async def test_a_reader_that_stops_reading_is_told_and_hangs_nobody():
    """Whoever iterates may wait for something else on the same connection: after a while events go on without it."""

    reading = asyncio.Event()

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await peer.event(1)
        await reading.wait()
        for seq in range(2, 21):
            await peer.event(seq)
        await peer.result(21, 1)
        await peer.goodbye()

    async with talking(script, buffer=4, patience=0.01) as (client, _):
        handle = await client.submit("echo")
        events = handle.events()
        assert (await anext(events)).seq == 1
        reading.set()
        assert await handle.done == 1
        with pytest.raises(InternalError) as caught:
            await anext(events)
        assert caught.value.details == {"reason": "slow_reader", "missed": 15}
        assert not caught.value.retryable


# -- results in chunks


def chunk(number, data, encoding="utf8", more=True, result_id="res_1"):
    return {"result_id": result_id, "chunk_seq": number, "data": data, "encoding": encoding, "more": more}


CHUNKS = [
    ([chunk(0, "hé"), chunk(1, "llo", more=False)], 6, "héllo"),
    ([chunk(0, "aGk=", "base64"), chunk(1, "!")], 3, b"hi!"),
    ([chunk(0, "a"), chunk(0, "a"), chunk(1, "b")], None, "ab"),
    ([chunk(0, "x", result_id="res_2"), chunk(0, "a")], 1, "a"),
    ([], 0, ""),
]


@pytest.mark.parametrize(("chunks", "size", "result"), CHUNKS)
async def test_a_result_in_chunks(chunks, size, result):
    """8.4: text stays text, with bytes in it the whole is bytes."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        for number, body in enumerate(chunks, 1):
            await peer.event(number, body, kind="result_chunk")
        more = {} if size is None else {"result_size": size}
        await peer.result(len(chunks) + 1, result_id="res_1", **more)
        await peer.goodbye()

    async with talking(script) as (client, _):
        handle = await client.submit("echo")
        assert await handle.done == result
        assert len([event async for event in handle.events()]) == len(chunks)


SPOILT = [
    ([chunk(0, "a"), chunk(2, "c")], "gap"),
    ([chunk(0, "a" * 101)], "too_large"),
    ([chunk(0, "a" * 60), chunk(1, "a" * 60), chunk(2, "a")], "too_large"),
    ([chunk(0, "???", "base64")], "malformed"),
    ([chunk("0", "a")], "malformed"),
    ([chunk(True, "a")], "malformed"),
    ([chunk(0, 5)], "malformed"),
    ([chunk(0, "a", result_id=5)], "malformed"),
    ([chunk(0, "", result_id=f"res_x{number}") for number in range(9)], "too_many_results"),
    ([], "missing"),
    ([chunk(0, "abc")], "incomplete"),
]


@pytest.mark.parametrize(("chunks", "reason"), SPOILT)
async def test_a_result_that_cannot_be_put_together(chunks, reason):
    """Section 14: INTERNAL_ERROR; the work was done, so it is not to be done again blindly."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        for number, body in enumerate(chunks, 1):
            await peer.event(number, body, kind="result_chunk")
        await peer.result(len(chunks) + 1, result_id="res_1", result_size=2)
        await peer.goodbye()

    async with talking(script, max_result=100) as (client, _):
        with pytest.raises(InternalError) as caught:
            await (await client.submit("echo")).done
        fault = caught.value.fault
        assert fault.details == {"reason": reason, "result_id": "res_1"}
        assert (fault.executed, fault.retryable) == (Executed.YES, False)


# -- cancelling


async def test_cancelling():
    """7.4: acknowledged with job.cancelled; the end is a job.error that `done` raises. Later it does nothing."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        cancel = await peer.take("job.cancel")
        assert cancel["job_id"] == "job_1"
        assert cancel["payload"] == {"reason": "enough"}
        await peer.say("job.cancelled", {"job_id": "job_1"}, job_id="job_1")
        await peer.fail(1, "CANCELLED", final_status="cancelled")
        await peer.goodbye()

    async with talking(script) as (client, _):
        handle = await client.submit("echo")
        await handle.cancel("enough")
        with pytest.raises(CancelledError):
            await handle.done
        await handle.cancel()


async def test_the_end_is_an_answer_to_a_cancellation():
    """A published runtime does not acknowledge; a job may end by itself meanwhile, and then nobody finds it."""
    refused = asyncio.Event()

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await peer.take("job.cancel")
        await peer.say("job.result", {"final_status": "cancelled"}, job_id="job_1", event_seq=1)
        await peer.accept("job_2")
        cancel = await peer.take("job.cancel")
        await peer.result(2, "fine", "job_2")
        await peer.say("job.error", {"code": "JOB_NOT_FOUND", "message": "m", "request_id": cancel["id"]})
        await peer.accept("job_3")
        cancel = await peer.take("job.cancel")
        refusal = {"code": "PERMISSION_DENIED", "message": "m", "request_id": cancel["id"]}
        await peer.say("job.error", refusal, job_id="job_3")
        await refused.wait()
        await peer.result(3, "not cancelled", "job_3")
        await peer.goodbye()

    async with talking(script) as (client, _):
        one = await client.submit("echo")
        await one.cancel()
        with pytest.raises(CancelledError):
            await one.done
        two = await client.submit("echo")
        await two.cancel()
        assert await two.done == "fine"
        three = await client.submit("echo")
        with pytest.raises(PermissionDeniedError):
            await three.cancel()
        refused.set()
        assert await three.done == "not cancelled"


# -- watching and listing


async def test_subscribing():
    """7.6: history first, the end as for any job; a job that is here already is not asked for again."""

    watched_twice = asyncio.Event()

    async def script(peer):
        await peer.welcome()
        asked = await peer.take("job.subscribe")
        assert asked["payload"] == {"job_id": "job_1", "from_event_seq": 0, "history": True}
        await peer.event(1)
        descriptor = {
            "job_id": "job_1",
            "request_id": asked["id"],
            "current_status": "running",
            "agent": "a@1",
        }
        await peer.say(
            "job.subscribed",
            {**descriptor, "lease": {"fs.read": ["/"]}, "trace_id": "ab" * 16, "replayed": 1},
        )
        await watched_twice.wait()
        await peer.event(2)
        await peer.fail(3, "TIMEOUT")
        asked = await peer.take("job.subscribe")
        await peer.say("job.error", {"code": "JOB_NOT_FOUND", "message": "m", "request_id": asked["id"]})
        asked = await peer.take("job.subscribe")
        await peer.say("job.subscribed", {"job_id": ["x"], "request_id": asked["id"]})
        asked = await peer.take("job.subscribe")
        assert asked["payload"] == {"job_id": "job_4", "from_event_seq": 7, "history": True}
        await peer.say("job.subscribed", {"job_id": "job_4"})
        unsubscribe = await peer.take("job.unsubscribe")
        assert unsubscribe["payload"] == {"job_id": "job_4"}
        await peer.goodbye()

    async with talking(script) as (client, _):
        handle = await client.subscribe("job_1")
        again = await client.subscribe("job_1")
        watched_twice.set()
        assert (handle.agent, handle.lease, handle.trace_id) == ("a@1", {"fs.read": ["/"]}, "ab" * 16)
        for each in (handle, again):
            with pytest.raises(JobTimeoutError):
                await each.done
        assert [event.seq async for event in handle.events()] == [1, 2]
        with pytest.raises(JobNotFoundError):
            await client.subscribe("job_2")
        with pytest.raises(InternalError):
            await client.subscribe("job_3")
        watched = await client.subscribe("job_4", from_event_seq=7)
        await client.unsubscribe("job_4")
        with pytest.raises(HeartbeatLostError):
            await watched.done


async def test_a_subscription_that_fails_is_everybodys_who_waits_for_it():
    """Two who watch the same job get the same refusal; one who submitted it goes on."""

    async def script(peer):
        await peer.welcome()
        asked = await peer.take("job.subscribe")
        await watching.wait()
        await peer.say("job.error", {"code": "JOB_NOT_FOUND", "message": "m", "request_id": asked["id"]})
        asked = await peer.take("job.subscribe")
        await peer.accept("job_2")
        await peer.say("job.error", {"code": "PERMISSION_DENIED", "message": "m", "request_id": asked["id"]})
        await peer.result(1, "fine", "job_2")
        await peer.goodbye()

    watching = asyncio.Event()
    async with talking(script) as (client, _):
        first = asyncio.create_task(client.subscribe("job_1"))
        await asyncio.sleep(0)
        second = await client.subscribe("job_1")
        watching.set()
        with pytest.raises(JobNotFoundError):
            await first
        with pytest.raises(JobNotFoundError):
            await second.done
        refused, handle = await asyncio.gather(
            client.subscribe("job_2"), client.submit("echo"), return_exceptions=True
        )
        assert isinstance(refused, PermissionDeniedError)
        assert await handle.done == "fine"
        given_up = asyncio.create_task(client.subscribe("job_3"))
        await asyncio.sleep(0)
        other = await client.subscribe("job_3")
        given_up.cancel()
        with pytest.raises(HeartbeatLostError):
            await other.done


async def test_watching_what_is_over_already():
    """Without history nothing would ever come: then history is asked for."""

    async def script(peer):
        await peer.welcome()
        asked = await peer.take("job.subscribe")
        assert asked["payload"] == {"job_id": "job_1"}
        await peer.say(
            "job.subscribed", {"job_id": "job_1", "request_id": asked["id"], "current_status": "success"}
        )
        asked = await peer.take("job.subscribe")
        assert asked["payload"]["history"] is True
        await peer.result(1, "old")
        await peer.say(
            "job.subscribed", {"job_id": "job_1", "request_id": asked["id"], "current_status": "success"}
        )
        await peer.goodbye()

    async with talking(script) as (client, _):
        assert await (await client.subscribe("job_1", history=False)).done == "old"


async def test_listing():
    """6.6: page by page, no more than asked for; a cursor that goes nowhere ends it."""

    async def script(peer):
        await peer.welcome()
        asked = await peer.take("session.list_jobs")
        assert asked["payload"] == {
            "filter": {"status": ["running"], "agent": "a", "created_after": "2026-05-13T23:42:00Z"},
            "limit": 3,
        }
        entries = [
            {"job_id": f"job_{number}", "agent": "a@1", "status": "running", "lease": None}
            for number in range(2)
        ]
        await peer.say("session.jobs", {"request_id": asked["id"], "jobs": entries, "next_cursor": "c"})
        asked = await peer.take("session.list_jobs")
        assert asked["payload"]["cursor"] == "c"
        assert asked["payload"]["limit"] == 1
        await peer.say("session.jobs", {"request_id": asked["id"], "jobs": entries, "next_cursor": "d"})
        asked = await peer.take("session.list_jobs")
        assert "filter" not in asked["payload"]
        await peer.say("session.jobs", {"jobs": entries, "next_cursor": None})
        asked = await peer.take("session.list_jobs")
        await peer.say("session.jobs", {"request_id": asked["id"], "jobs": [], "next_cursor": "e"})
        await peer.goodbye()

    async with talking(script) as (client, _):
        found = await client.jobs(status=["running"], agent="a", created_after=1_778_715_720.0, limit=3)
        assert [entry.job_id for entry in found] == ["job_0", "job_1", "job_0"]
        assert len(await client.jobs()) == 2
        assert await client.jobs() == []


# -- lost connections


async def test_a_lost_connection_is_resumed_without_loss_or_doubling():
    """6.3: from the last event seen, with the token of the last welcome; what is replayed twice comes once."""

    async def first(peer):
        await peer.welcome(token="rt_1")
        await peer.accept()
        await peer.event(1)
        await peer.event(2)

    async def second(peer):
        hello = await peer.welcome(token="rt_2")
        assert hello["resume"] == {"session_id": SESSION, "resume_token": "rt_1", "last_event_seq": 2}
        for seq in (1, 2, 3):
            await peer.event(seq)

    async def third(peer):
        # v1.0's order: replay first, then the welcome.
        hello = await peer.take("session.hello")
        assert hello["payload"]["resume"] == {
            "session_id": SESSION,
            "resume_token": "rt_2",
            "last_event_seq": 3,
        }
        await peer.event(4)
        await peer.say("session.welcome", {"session_id": SESSION, "resume_token": "rt_3"})
        await peer.event(4)
        await peer.result(5, "fine")
        await peer.result(5, "twice")
        await peer.goodbye()

    async with talking(first, second, third) as (client, _):
        handle = await client.submit("echo")
        assert [event.seq async for event in handle.events()] == [1, 2, 3, 4]
        assert await handle.done == "fine"
        assert client.session_id == SESSION


async def test_a_gap_is_filled_by_resuming():
    """8.3: an unexpected gap means that the session is broken; what is missing is asked for."""

    async def first(peer):
        await peer.welcome()
        await peer.accept()
        await peer.event(1)
        await peer.event(3)
        await peer.take("nothing")

    async def second(peer):
        hello = await peer.welcome()
        assert hello["resume"]["last_event_seq"] == 1
        await peer.event(2)
        await peer.event(3)
        await peer.result(4, 1)
        await peer.goodbye()

    async with talking(first, second) as (client, _):
        handle = await client.submit("echo")
        assert [event.seq async for event in handle.events()] == [1, 2, 3]
        assert await handle.done == 1


async def test_a_gap_that_stays_ends_the_session():
    """The runtime does not have the events any more, whatever it says."""

    async def first(peer):
        await peer.welcome()
        await peer.accept()
        await peer.event(5)
        await peer.take("nothing")

    async def second(peer):
        await peer.welcome()
        await peer.event(5)
        await peer.take("nothing")

    async with talking(first, second, first) as (client, scripted):
        handle = await client.submit("echo")
        with pytest.raises(ResumeWindowExpiredError) as caught:
            await handle.done
        assert caught.value.details == {"reason": "gap", "after": 0}
        assert [event async for event in handle.events()] == []
        assert len(scripted.peers) == 2


async def drops(peer):
    await peer.welcome()
    await peer.accept()


async def test_a_session_that_cannot_be_resumed():
    """Every way it can end: refused, forgotten, nobody there, no token. Never a hang."""

    async def refuses(peer):
        await peer.take()
        await peer.say("session.error", {"code": "RESUME_WINDOW_EXPIRED", "message": "m"})

    async def forgets(peer):
        await peer.welcome(session="sess_2")
        await peer.take("nothing")

    async def no_token(peer):
        await peer.welcome(token=None)
        await peer.accept()

    for scripts, kind, reason in (
        ((drops, refuses), ResumeWindowExpiredError, None),
        ((drops, forgets), ResumeWindowExpiredError, "forgotten"),
        ((drops,), HeartbeatLostError, "unreachable"),
        ((drops, hangs_up, hangs_up, hangs_up), HeartbeatLostError, "no_protocol"),
        ((no_token,), HeartbeatLostError, "disconnected"),
    ):
        async with talking(*scripts) as (client, _):
            handle = await client.submit("echo")
            with pytest.raises(kind) as caught:
                await handle.done
            if reason is not None:
                assert caught.value.details["reason"] == reason
            with pytest.raises(kind):
                await client.submit("echo")


async def test_the_window_bounds_the_tries():
    """Nobody tries longer than the runtime keeps the session."""

    async def script(peer):
        await peer.welcome(window=0.05)
        await peer.accept()

    endless = Policy(attempts=None, max_wait=None, backoff=Backoff(first=0.01, cap=0.01))
    async with talking(script, resuming=endless) as (client, _):
        with pytest.raises(ResumeWindowExpiredError) as caught:
            await (await client.submit("echo")).done
        assert caught.value.details == {"reason": "disconnected"}


async def test_patience_bounds_the_tries_too():
    """A policy shorter than the window: HEARTBEAT_LOST, because the session may still be there."""
    short = Policy(attempts=None, max_wait=0.05, backoff=Backoff(first=0.01, cap=0.01))
    async with talking(drops, resuming=short) as (client, _):
        with pytest.raises(HeartbeatLostError):
            await (await client.submit("echo")).done


async def welcomes_and_leaves(peer):
    await peer.welcome()


async def test_a_runtime_that_welcomes_and_hangs_up():
    """A resumption that brings nothing counts as a failed try: nobody goes round in circles for ever."""
    async with talking(drops, *[welcomes_and_leaves] * 50) as (client, scripted):
        with pytest.raises(HeartbeatLostError):
            await (await client.submit("echo")).done
        assert len(scripted.peers) == 4
    short = Policy(attempts=None, max_wait=0.1, backoff=Backoff(first=0.01, cap=0.01))
    async with talking(drops, *[welcomes_and_leaves] * 500, resuming=short) as (client, scripted):
        with pytest.raises(HeartbeatLostError):
            await (await client.submit("echo")).done
        assert len(scripted.peers) < 100


async def test_a_result_too_large_to_be_read():
    """The transport refuses the frame, again and again: that ends too."""

    async def replays(peer):
        await peer.welcome()
        await peer.result(1, "x" * 5_000_000)
        await peer.take("nothing")

    async with talking(drops, *[replays] * 50) as (client, scripted):
        with pytest.raises(HeartbeatLostError):
            await (await client.submit("echo")).done
        assert len(scripted.peers) == 4


async def test_a_connection_that_lasted_is_no_failed_try(monkeypatch):
    """However quiet it was: tries are counted anew."""
    monkeypatch.setattr("amends.arcp.client.comeback._LASTED", -1.0)
    lost_often = [welcomes_and_leaves] * 10

    async def last(peer):
        await peer.welcome()
        await peer.result(1, "fine")
        await peer.goodbye()

    async with talking(drops, *lost_often, last) as (client, _):
        assert await (await client.submit("echo")).done == "fine"


async def test_an_input_too_large_to_be_sent():
    """Said here: sending it would cost the connection, and with it everybody's."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await peer.result(1, "small")
        await peer.goodbye()

    async with talking(script) as (client, _):
        with pytest.raises(InvalidRequestError) as caught:
            await client.submit("echo", "x" * 5_000_000, idempotency_key="k")
        assert caught.value.details["limit"] < caught.value.details["bytes"]
        assert await (await client.submit("echo", "x")).done == "small"


async def test_resuming_on_request():
    """A connection that is open is left for a new one; the session and its jobs go on."""

    async def first(peer):
        await peer.welcome()
        await peer.accept()
        await peer.event(1)
        await peer.take("nothing")

    async def second(peer):
        hello = await peer.welcome(token="rt_2")
        assert hello["resume"]["resume_token"] == TOKEN
        await peer.event(2)
        await peer.result(3, "fine")
        await peer.goodbye()

    async with talking(first, second) as (client, _):
        handle = await client.submit("echo")
        events = handle.events()
        assert (await anext(events)).seq == 1
        await client.resume()
        assert [event.seq async for event in events] == [2]
        assert await handle.done == "fine"


async def test_resuming_only_on_request():
    """Without auto_resume a lost session waits for the call, as long as its window."""

    async def second(peer):
        await peer.welcome(window=0.05)
        await peer.result(1, "fine")
        await peer.accept("job_2")

    async with talking(drops, second, auto_resume=False) as (client, scripted):
        handle = await client.submit("echo")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(handle.done, 0.02)
        assert len(scripted.peers) == 1
        await client.resume()
        assert await handle.done == "fine"
        second_handle = await client.submit("echo")
        with pytest.raises(ResumeWindowExpiredError):
            await second_handle.done
        assert len(scripted.peers) == 2


async def test_what_was_asked_when_the_connection_was_lost():
    """With a key, and for what only looks, it is asked again; without, nobody knows whether it arrived."""

    async def first(peer):
        await peer.welcome()
        for _ in range(3):
            await peer.take()

    async def second(peer):
        await peer.welcome()
        again = [await peer.take(), await peer.take()]
        assert [message["type"] for message in again] == ["job.submit", "session.list_jobs"]
        assert again[0]["payload"]["idempotency_key"] == "k"
        await peer.say("job.accepted", {"job_id": "job_1", "request_id": again[0]["id"]})
        await peer.say("session.jobs", {"request_id": again[1]["id"], "jobs": []})
        await peer.result(1, "fine")
        await peer.goodbye()

    async with talking(first, second) as (client, scripted):
        keyed, plain, listed = await asyncio.gather(
            client.submit("echo", idempotency_key="k"),
            client.submit("echo"),
            client.jobs(),
            return_exceptions=True,
        )
        assert isinstance(plain, HeartbeatLostError)
        assert plain.details == {"reason": "in_doubt"}
        assert plain.fault.executed is Executed.MAYBE
        assert listed == []
        assert await keyed.done == "fine"
        ids = [message["id"] for message in scripted.peers[0].heard[1:]]
        assert scripted.peers[1].heard[1]["id"] == ids[0]


async def test_asking_while_the_connection_is_away():
    """A request waits for the session to come back; for so long."""

    async def second(peer):
        await peer.welcome()
        await peer.result(1, "one")
        await peer.accept("job_2")
        await peer.result(2, "two", "job_2")
        await peer.goodbye()

    async with talking(drops, second, auto_resume=False, request_timeout=0.2) as (client, scripted):
        one = await client.submit("echo")
        await scripted.finished()
        while client._link._open.is_set():
            await asyncio.sleep(0)
        with pytest.raises(HeartbeatLostError):
            await client.submit("echo")
        waiting = asyncio.create_task(client.submit("echo"))
        await asyncio.sleep(0)
        await client.resume()
        assert (await one.done, await (await waiting).done) == ("one", "two")


async def test_garbage_between_messages_is_passed_over():
    """A few frames that are none are ignored; a stream of them is no session any more."""

    async def first(peer):
        await peer.welcome()
        await peer.accept()
        for frame in (
            b"\xff",
            "[1]",
            "{}",
            '{"arcp":"2","id":"x","type":"job.result","payload":{}}',
            "[" * 5000,
        ):
            await peer.raw(frame)
        await peer.say("job.nonsense", {"a": 1}, job_id="job_1")
        await peer.say("job.result", {"final_status": "success"})
        await peer.say("job.event", {"kind": "log"}, job_id="job_1")
        await peer.event(1)
        for _ in range(20):
            await peer.raw("nonsense")
        await peer.take("nothing")

    async def second(peer):
        hello = await peer.welcome()
        assert hello["resume"]["last_event_seq"] == 1
        await peer.result(2, "fine")
        await peer.goodbye()

    async with talking(first, second) as (client, _):
        handle = await client.submit("echo")
        assert await handle.done == "fine"
        assert [event.seq async for event in handle.events()] == [None, 1]


async def test_a_bug_of_ours_leaves_nobody_waiting(monkeypatch, caplog):
    """Whatever breaks the reading task, everything that waits is told."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await peer.event(1)
        await peer.take("nothing")

    async with talking(script) as (client, _):
        monkeypatch.setattr("amends.arcp.client.job.Job.event", lambda *_: 1 / 0)
        handle = await client.submit("echo")
        with pytest.raises(HeartbeatLostError):
            await handle.done
    assert "ZeroDivisionError" in caplog.text


# -- heartbeats and acknowledgements


async def test_pings_are_answered_and_sent():
    """6.4: an idle client pings; the runtime's pings are answered with their nonce."""

    pinged = asyncio.Event()

    async def script(peer):
        await peer.welcome(heartbeat_interval_sec=1.0)
        await peer.say("session.ping", {"nonce": "n1"})
        pong = await peer.take("session.pong")
        assert pong["payload"]["ping_nonce"] == "n1"
        await peer.say("session.ping", {"nonce": 5})
        await peer.take("session.pong")
        for _ in range(3):
            ping = await peer.take("session.ping")
            assert ping["payload"]["nonce"]
            await peer.say("session.pong", {"ping_nonce": ping["payload"]["nonce"]})
        pinged.set()
        await peer.accept()
        await peer.result(1, "alive")
        await peer.goodbye()

    async with talking(script) as (client, scripted):
        await pinged.wait()
        assert await (await client.submit("echo")).done == "alive"
        assert len(scripted.peers) == 1


async def test_silence_is_noticed():
    """6.4: two intervals without a word, and the connection counts as dead; then it is resumed, or lost."""

    async def first(peer):
        await peer.welcome(heartbeat_interval_sec=0.5)
        await peer.accept()
        await peer.take("nothing")

    async def second(peer):
        await peer.welcome(token=None, heartbeat_interval_sec=0.5)
        await peer.event(1)
        await peer.take("nothing")

    async with talking(first, second) as (client, scripted):
        handle = await client.submit("echo")
        with pytest.raises(HeartbeatLostError) as caught:
            await handle.done
        assert caught.value.details == {"reason": "silent"}
        assert [event.seq async for event in handle.events()] == [1]
        assert len(scripted.peers) == 2


async def test_heartbeats_whose_interval_was_left_open(monkeypatch):
    """Agreed on is agreed on: silence is noticed all the same."""
    monkeypatch.setattr("amends.arcp.client.link._INTERVAL", 0.02)

    async def script(peer):
        await peer.welcome(token=None)
        await peer.accept()
        await peer.take("nothing")

    async with talking(script) as (client, _):
        with pytest.raises(HeartbeatLostError) as caught:
            await (await client.submit("echo")).done
        assert caught.value.details == {"reason": "silent"}


async def test_no_heartbeat_where_it_was_not_agreed():
    """An interval alone is no agreement."""

    async def script(peer):
        await peer.welcome(heartbeat_interval_sec=0.01, capabilities={"features": ["ack"]})
        await asyncio.sleep(0.1)
        await peer.goodbye()
        assert not [message for message in peer.heard if message["type"] == "session.ping"]

    async with talking(script) as (client, _):
        await asyncio.sleep(0.1)
        assert client._link._interval is None


async def test_acknowledgements_come_at_a_bounded_rate():
    """6.5: a few hundred milliseconds apart, or after a few hundred events; the highest number each time."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        begun = time.monotonic()
        for seq in range(1, 1001):
            await peer.event(seq)
        ack = await peer.take("session.ack")
        while ack["payload"]["last_processed_seq"] < 1000:
            ack = await peer.take("session.ack")
        acks = [message for message in peer.heard if message["type"] == "session.ack"]
        assert len(acks) <= 5 + (time.monotonic() - begun) / 0.2
        await peer.result(1001, 1)
        await peer.goodbye()

    async with talking(script) as (client, _):
        assert await (await client.submit("echo")).done == 1


async def test_no_acknowledgements_where_they_were_not_agreed():
    """The feature decides."""

    async def script(peer):
        await peer.welcome(capabilities={"features": []})
        await peer.accept()
        for seq in range(1, 601):
            await peer.event(seq)
        await peer.result(601, 1)
        await peer.goodbye()
        assert {message["type"] for message in peer.heard} == {"session.hello", "job.submit", "session.close"}

    async with talking(script) as (client, _):
        assert await (await client.submit("echo")).done == 1


# -- sending


async def test_a_full_connection_makes_requests_wait():
    """What does not fit is sent when there is room, in order."""

    async def script(peer):
        await peer.welcome()
        for number in range(1, 21):
            await peer.accept(f"job_{number}")
        for number in range(1, 21):
            await peer.result(number, number, f"job_{number}")
        await peer.goodbye()
        submits = [message for message in peer.heard if message["type"] == "job.submit"]
        assert [message["payload"]["input"] for message in submits] == list(range(1, 21))

    async with talking(script, frames=2) as (client, _):
        handles = await asyncio.gather(*(client.submit("echo", number) for number in range(1, 21)))
        assert [await handle.done for handle in handles] == list(range(1, 21))


async def test_a_full_connection_that_is_lost():
    """Nothing is stuck behind it."""

    async def first(peer):
        await peer.welcome()
        await asyncio.sleep(0.01)

    async def second(peer):
        await peer.welcome()
        for number in range(10):
            await peer.accept(f"job_{number}")
            await peer.result(number + 1, number, f"job_{number}")
        await peer.goodbye()

    async with talking(first, second, frames=2) as (client, _):
        handles = await asyncio.gather(
            *(client.submit("echo", idempotency_key=str(number)) for number in range(10))
        )
        assert len([await handle.done for handle in handles]) == 10


async def test_a_runtime_that_does_not_say_goodbye():
    """Leaving is bounded, and a connection that breaks while leaving is no failure."""

    async def script(peer):
        await peer.welcome()
        await peer.take("session.close")
        await peer.say("session.error", {"code": "INVALID_REQUEST", "message": "what is session.close?"})
        await peer.take("nothing")

    async with talking(script):
        pass

    async def gone(peer):
        await peer.welcome()
        await peer.take("session.close")

    async with talking(gone):
        pass


async def test_leaving_a_runtime_that_says_nothing(monkeypatch):
    """Bounded."""
    monkeypatch.setattr("amends.arcp.client.link._GOODBYE", 0.05)

    async def script(peer):
        await peer.welcome()
        await peer.take("nothing")

    async with talking(script):
        pass


async def test_leaving_a_connection_that_is_full(monkeypatch):
    """What waits to be sent is given up."""
    monkeypatch.setattr("amends.arcp.client.link._GOODBYE", 0.05)
    deaf = asyncio.Event()

    async def script(peer):
        await peer.welcome()
        await deaf.wait()

    async with talking(script, frames=2) as (client, _):
        asking = [asyncio.create_task(client.submit("echo", number)) for number in range(10)]
        await asyncio.sleep(0.01)
        await client.close()
        answers = await asyncio.gather(*asking, return_exceptions=True)
        assert {type(answer) for answer in answers} == {HeartbeatLostError}
        deaf.set()


async def test_a_gap_in_what_is_replayed_before_the_welcome():
    """v1.0's order; the missing event is asked for as ever."""

    async def second(peer):
        await peer.take("session.hello")
        await peer.event(2)
        await peer.say("session.welcome", {"session_id": SESSION, "resume_token": "rt_2"})
        await peer.take("nothing")

    async def third(peer):
        hello = await peer.welcome()
        assert hello["resume"]["last_event_seq"] == 0
        await peer.event(1)
        await peer.event(2)
        await peer.result(3, "fine")
        await peer.goodbye()

    async with talking(drops, second, third) as (client, _):
        handle = await client.submit("echo")
        assert await handle.done == "fine"
        assert [event.seq async for event in handle.events()] == [1, 2]


async def test_leaving_while_the_connection_is_away():
    """There is nobody to say goodbye to."""
    async with talking(drops, auto_resume=False) as (client, scripted):
        handle = await client.submit("echo")
        await scripted.finished()
        while client._link._open.is_set():
            await asyncio.sleep(0)
    with pytest.raises(HeartbeatLostError):
        await handle.done


# -- recovery


async def test_the_loop_of_s5():
    """The same key every time; retryable codes are tried again, within the policy."""

    async def script(peer):
        await peer.welcome()
        first = await peer.accept()
        await peer.fail(1, "INTERNAL_ERROR", retryable=True)
        second = await peer.accept()
        await peer.fail(2, "TIMEOUT", run=2)
        third = await peer.accept()
        await peer.result(3, "fine", run=3)
        keys = {message["payload"]["idempotency_key"] for message in (first, second, third)}
        assert len(keys) == 1
        assert keys.pop()
        await peer.goodbye()

    async with talking(script) as (client, _):
        attempts = []
        result = await client.submit_with_recovery("echo", {"a": 1}, policy=NOW, history=attempts)
        assert result == "fine"
        assert len(attempts) == 3


async def test_what_is_not_retryable_is_raised_at_once():
    """With the decision and the history of recovery."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await peer.fail(1, "PERMISSION_DENIED", details={"capability": "net.fetch"})
        await peer.goodbye()

    async with talking(script) as (client, _):
        with pytest.raises(PermissionDeniedError) as caught:
            await client.submit_with_recovery("echo", policy=NOW, idempotency_key="mine", max_runtime_sec=5)
        assert caught.value.details == {"capability": "net.fetch"}
        assert len(caught.value.history) == 1


async def test_the_policy_bounds_the_loop():
    """Three times, then the failure."""

    async def script(peer):
        await peer.welcome()
        for seq in range(1, 4):
            await peer.accept()
            await peer.fail(seq, "INTERNAL_ERROR")
        await peer.goodbye()

    async with talking(script) as (client, _):
        with pytest.raises(InternalError) as caught:
            await client.submit_with_recovery("echo", policy=NOW)
        assert len(caught.value.history) == 3


async def test_a_session_that_is_over_is_replaced():
    """v1.0, 6.3: after RESUME_WINDOW_EXPIRED the same key on a new session is the same job."""

    async def refuses(peer):
        await peer.take()
        await peer.say("session.error", {"code": "RESUME_WINDOW_EXPIRED", "message": "m"})

    async def anew(peer):
        hello = await peer.welcome(session="sess_2")
        assert "resume" not in hello
        submit = await peer.accept()
        assert submit["session_id"] == "sess_2"
        assert submit["payload"]["idempotency_key"] == "mine"
        await peer.result(1, "fine")
        await peer.goodbye()

    async with talking(drops, refuses, anew) as (client, _):
        assert await client.submit_with_recovery("echo", policy=NOW, idempotency_key="mine") == "fine"
        assert client.session_id == "sess_2"


async def test_a_new_session_that_is_refused():
    """What cannot be mended is raised."""

    async def refuses(peer):
        await peer.take()
        await peer.say("session.error", {"code": "UNAUTHENTICATED", "message": "m"})

    async with talking(drops, refuses, refuses) as (client, _):
        handle = await client.submit("echo")
        with pytest.raises(UnauthenticatedError):
            await handle.done
        with pytest.raises(UnauthenticatedError):
            await client.submit_with_recovery("echo", policy=NOW)


# -- tickets


async def test_a_ticket_of_a_session_that_is_forgotten():
    """Another session instead of the one asked for is none."""

    async def script(peer):
        hello = await peer.welcome(session="sess_2")
        assert hello["resume"] == {"session_id": "sess_1", "resume_token": "x", "last_event_seq": 7}
        await peer.take("nothing")

    with pytest.raises(ResumeWindowExpiredError) as caught:
        await connect(Scripted(script), ticket=Ticket("sess_1", "x", 7))
    assert caught.value.details == {"reason": "forgotten"}


async def test_a_runtime_without_tokens_gives_no_ticket():
    """There is nothing to go on with."""

    async def script(peer):
        await peer.welcome(token=None)
        await peer.take("nothing")

    client = await connect(Scripted(script))
    assert await client.detach() is None


async def test_events_of_a_job_whose_acceptance_was_lost():
    """They come before the answer that is asked for again, and belong to its handle; its end comes with that answer."""

    async def first(peer):
        await peer.welcome()
        await peer.take("job.submit")

    async def second(peer):
        await peer.welcome()
        submit = await peer.take("job.submit")
        await peer.event(1, {"message": "a"})
        await peer.event(2, {"message": "other"}, job_id="job_2")
        await peer.fail(3, "TIMEOUT")
        await peer.say("job.accepted", {"job_id": "job_1", "request_id": submit["id"]})
        await peer.event(4, {"message": "b"})
        await peer.result(5, "fine")
        await peer.event(6, job_id="job_3")
        await peer.goodbye()

    async with talking(first, second) as (client, _):
        handle = await client.submit("echo", idempotency_key="k")
        assert await handle.done == "fine"
        assert [event.seq async for event in handle.events()] == [1, 4]
        await asyncio.sleep(0)
        assert client._inbox._unclaimed == {}


# -- this process


async def test_a_runtime_in_this_process():
    """Anything with `serve` is a runtime."""

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


async def test_the_trace_of_the_caller():
    """Section 11: OpenTelemetry's current trace goes along."""
    from opentelemetry.sdk.trace import TracerProvider

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await peer.result(1)
        await peer.goodbye()

    async with talking(script) as (client, scripted):
        with TracerProvider().get_tracer("test").start_as_current_span("outer") as span:
            await (await client.submit("echo")).done
    submit = next(message for message in scripted.peers[0].heard if message["type"] == "job.submit")
    assert submit["trace_id"] == f"{span.get_span_context().trace_id:032x}"


async def test_a_dial_that_is_lost_in_the_greeting():
    """Sending the hello fails: nobody there."""

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
