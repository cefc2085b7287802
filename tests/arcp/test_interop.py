"""
Interoperability with the published SDK 1.1.3, in both directions. Its deviations from the specification are listed.

A test checks each deviation, so that a release that fixes one is noticed.
"""

import asyncio
from importlib.metadata import version

import arcp._errors as theirs
import pytest
from arcp._messages.session import SessionResume
from arcp.client import ARCPClient

from amends.arcp import Limits, Runtime, connect
from amends.arcp.transports import websocket
from amends.errors.arcp import (
    AgentNotAvailableError,
    AgentVersionNotAvailableError,
    ARCPError,
    CancelledError,
    DuplicateKeyError,
    InternalError,
    InvalidRequestError,
    JobNotFoundError,
    PermissionDeniedError,
    UnauthenticatedError,
    is_retryable_by_default,
)
from amends.errors.arcp import TimeoutError as JobTimeoutError
from tests.arcp.published import published_client, published_runtime
from tests.arcp.scripted import Peer

WAIT = 20


def test_the_published_version():
    """The deviations below are those of this version."""
    assert version("agentruntimecontrolprotocol") == "1.1.3"


# -- our client, its runtime


async def test_our_client_with_its_runtime():
    """Submitting, events, progress, chunks, versions, listing, and the lease in the answer."""
    async with asyncio.timeout(WAIT), published_runtime() as (_, url), connect(url, token="secret") as client:
        assert {"heartbeat", "ack", "subscribe"} <= client.features
        assert client.agents["pinned"].versions == ["1.0.0", "2.0.0"]
        handle = await client.submit(
            "echo", {"a": [1, None, "ü"]}, lease={"fs.read": ["/a/**"], "cost.budget": ["USD:5.00"]}
        )
        assert await handle.done == {"a": [1, None, "ü"]}
        assert handle.lease == {"fs.read": ["/a/**"], "cost.budget": ["USD:5.00"]}
        talking = await client.submit("talk")
        assert [event.kind async for event in talking.events()] == ["log", "progress", "status"]
        assert await talking.done == "done"
        streamed = await client.submit("stream")
        assert await streamed.done == "héllo world".encode()
        assert streamed.summary == "two parts"
        assert (await client.submit("pinned@1.0.0", 5)).agent == "pinned@1.0.0"
        with pytest.raises(AgentVersionNotAvailableError):
            await client.submit("pinned@3.0.0")
        assert {entry.agent for entry in await client.jobs()} >= {"echo", "talk", "stream", "pinned@1.0.0"}


async def test_its_failures_are_raised_by_our_client():
    """R5: `done` raises for every failed job; a refusal affects only its request."""
    async with asyncio.timeout(WAIT), published_runtime() as (_, url), connect(url, token="secret") as client:
        running = await client.submit("slow")
        with pytest.raises(PermissionDeniedError) as caught:
            await (await client.submit("denied")).done
        assert not caught.value.retryable
        with pytest.raises(InternalError):
            await (await client.submit("broken")).done
        with pytest.raises(JobTimeoutError) as caught:
            await (await client.submit("slow", max_runtime_sec=1)).done
        assert caught.value.retryable
        refusals = await asyncio.gather(
            client.submit("unknown"),
            client.submit("echo", 7),
            client.submit("not a name!"),
            return_exceptions=True,
        )
        assert isinstance(refusals[0], AgentNotAvailableError)
        assert await refusals[1].done == 7
        assert isinstance(refusals[2], ARCPError)
        with pytest.raises(JobNotFoundError):
            await client.subscribe("job_01ARZ3NDEKTSV4RRFFQ69G5FAV")
        await running.cancel()
        with pytest.raises(CancelledError):
            await running.done
    with pytest.raises(UnauthenticatedError):
        async with published_runtime() as (_, url), connect(url, token="wrong"):
            pass


async def test_keys_with_its_runtime():
    """The same key gives the same job, during its run and after; another input is refused and affects no other job."""
    async with asyncio.timeout(WAIT), published_runtime() as (_, url), connect(url, token="secret") as client:
        first, second = await asyncio.gather(*(client.submit("talk", idempotency_key="k") for _ in range(2)))
        assert first.job_id == second.job_id
        assert (await first.done, await second.done) == ("done", "done")
        again = await client.submit("talk", idempotency_key="k")
        assert (again.job_id, await again.done) == (first.job_id, "done")
        with pytest.raises(DuplicateKeyError):
            await client.submit("talk", 2, idempotency_key="k")
        assert await (await client.submit("echo", 1)).done == 1


async def test_resuming_with_its_runtime():
    """After a broken connection the session is resumed, and no event is lost or doubled."""
    async with (
        asyncio.timeout(WAIT),
        published_runtime() as (runtime, url),
        connect(url, token="secret") as client,
    ):
        session = client.session_id
        talked = await client.submit("talk")
        assert await talked.done == "done"
        client._session._outbox.connection._socket.transport.abort()
        while session in runtime._sessions:
            await asyncio.sleep(0.005)
        talking = await client.submit("talk")
        assert client.session_id == session
        seen = [event.seq for handle in (talked, talking) async for event in handle.events()]
        assert seen == [1, 2, 3, 5, 6, 7]


async def test_subscribing_with_its_runtime():
    """A subscription gets a job of another session from its first event on; jobs of other principals are refused."""
    async with asyncio.timeout(WAIT), published_runtime() as (_, url):
        async with connect(url, token="secret") as one, connect(url, token="secret") as two:
            done = await one.submit("talk")
            await done.done
            watched = await two.subscribe(done.job_id)
            assert await watched.done == "done"
            assert [event.kind async for event in watched.events()] == ["log", "progress", "status"]
        async with connect(url, token="other") as other:
            assert await other.jobs() == []
            with pytest.raises(PermissionDeniedError):
                await other.subscribe(done.job_id)


# -- its client, our runtime


@pytest.fixture
async def ours():
    """Our runtime, served over a WebSocket."""
    limits = Limits(drain=0.0, cancel_grace=0.1)
    runtime = Runtime(tokens={"secret": "alice", "other": "bob"}, limits=limits)

    @runtime.register_agent("echo")
    async def echo(given, ctx):
        return given

    @runtime.register_agent("echo", version="2.0.0")
    async def echo_two(given, ctx):
        return [given]

    @runtime.register_agent("talk")
    async def talk(given, ctx):
        await ctx.log("one")
        await ctx.progress(1, total=2, units="steps")
        await ctx.status("half")
        return "done"

    @runtime.register_agent("denied")
    async def denied(given, ctx):
        raise PermissionDeniedError("not allowed", details={"capability": "net.fetch", "n": 1})

    @runtime.register_agent("broken")
    async def broken(given, ctx):
        raise RuntimeError("the password is hunter2")

    @runtime.register_agent("stream")
    async def stream(given, ctx):
        yield "héllo "
        yield "world"

    @runtime.register_agent("slow")
    async def slow(given, ctx):
        await ctx.log("started")
        await asyncio.sleep(60)

    async with asyncio.timeout(WAIT), runtime, runtime.listen(port=0) as listening:
        yield listening.url


async def test_its_client_with_our_runtime(ours):
    """Jobs, events, chunks, versions, listing, details, a repeated key and resuming work with its client."""
    async with published_client(ours) as client:
        assert client.has_feature("heartbeat")
        assert [entry.name for entry in client.welcome.capabilities.agents][:2] == ["broken", "denied"]
        handle = await client.submit(
            agent="echo", input={"a": 1}, lease_request={"fs.read": ["/a/**"], "cost.budget": ["USD:5.00"]}
        )
        assert (await handle.done).result == {"a": 1}
        assert handle.budget == {"USD": "5.00"}
        assert handle.agent_ref == "echo@1.0.0"
        assert (await (await client.submit(agent="echo@2.0.0", input=1)).done).result == [1]
        talking = await client.submit(agent="talk")
        assert [event["kind"] async for event in talking.events()] == ["log", "progress", "status"]
        streamed = await client.submit(agent="stream")
        assert await streamed.collect_chunks() == "héllo world".encode()
        assert (await streamed.done).result_size == 12
        with pytest.raises(theirs.PermissionDeniedError) as caught:
            await (await client.submit(agent="denied")).done
        assert caught.value.details == {"capability": "net.fetch", "n": 1}
        with pytest.raises(theirs.InternalError) as caught:
            await (await client.submit(agent="broken")).done
        assert "hunter2" not in str(caught.value)
        first = await client.submit(agent="echo", input=1, idempotency_key="k")
        await first.done
        again = await client.submit(agent="echo", input=1, idempotency_key="k")
        assert (again.job_id, (await again.done).result) == (first.job_id, 1)
        listed = await client.list_jobs()
        assert len(listed.jobs) == 7
        page = await client.list_jobs(limit=2)
        assert len(page.jobs) == 2
        assert page.next_cursor


async def test_its_client_subscribes_and_resumes(ours):
    """It gets live events of another session's job, and resumes its session where it was."""
    async with published_client(ours) as one, published_client(ours) as two:
        handle = await one.submit(agent="slow")
        subscription = await two.subscribe(handle.job_id)
        assert subscription.handle.agent_ref == "slow@1.0.0"
        welcome = one.welcome
        await one._transport.close()
    resume = SessionResume(session_id=welcome.session_id, resume_token=welcome.resume_token, last_event_seq=0)
    async with published_client(ours, resume=resume) as back:
        assert back.session_id == welcome.session_id
        assert back.welcome.resume_token != welcome.resume_token
        while back._highest_seq < 1:
            await asyncio.sleep(0.005)


async def test_its_client_with_a_wrong_token(ours):
    """Its client raises the typed error at once."""
    with pytest.raises(theirs.UnauthenticatedError):
        async with published_client(ours, token="wrong"):
            pass


@pytest.mark.soak
async def test_its_client_subscribes_to_an_ended_job(ours):
    """It drops what arrives before it has seen the answer, so the history comes a moment later."""
    async with asyncio.timeout(WAIT), published_client(ours) as one, published_client(ours) as two:
        handle = await one.submit(agent="talk")
        await handle.done
        subscription = await two.subscribe(handle.job_id, history=True)
        assert (await subscription.handle.done).result == "done"
        assert [event["kind"] async for event in subscription.handle.events()] == [
            "log",
            "progress",
            "status",
        ]


async def test_its_client_reads_refusals(ours):
    """It does not match a refusal with its request, so it gets a job that ends with the error; other jobs go on."""
    async with asyncio.timeout(WAIT), published_client(ours) as client, published_client(ours) as other:
        running = await client.submit(agent="slow")
        refused, fine = await asyncio.gather(
            client.submit(agent="unknown"), client.submit(agent="echo", input=1)
        )
        with pytest.raises(theirs.AgentNotAvailableError):
            await refused.done
        assert (await fine.done).result == 1
        watched = await client.subscribe("job_01ARZ3NDEKTSV4RRFFQ69G5FAV")
        with pytest.raises(theirs.JobNotFoundError):
            await watched.handle.done
        followed = await other.subscribe(running.job_id, history=True)
        await other.cancel_job(running.job_id)
        assert not followed.handle._terminal.done()
        await client.cancel_job(running.job_id)
        for handle in (running, followed.handle):
            with pytest.raises(theirs.CancelledError):
                await handle.done


async def test_its_client_reads_every_end(ours):
    """It accepts no other `final_status` than error in `job.error`, so it gets that."""
    async with asyncio.timeout(WAIT), published_client(ours) as client:
        handle = await client.submit(agent="slow")
        await client.cancel_job(handle.job_id)
        with pytest.raises(theirs.CancelledError):
            await handle.done
        with pytest.raises(theirs.TimeoutError):
            await (await client.submit(agent="slow", max_runtime_sec=1)).done
        assert (await (await client.submit(agent="echo", input=1)).done).result == 1


async def test_heartbeats_in_both_directions():
    """6.4: after several idle intervals both sides consider each other alive."""
    runtime = Runtime(tokens={"secret": "alice"}, limits=Limits(drain=0.0, heartbeat=1.0))

    @runtime.register_agent("echo")
    async def echo(given, ctx):
        return given

    async with (
        asyncio.timeout(WAIT),
        runtime,
        runtime.listen(port=0) as listening,
        published_runtime(heartbeat_interval_sec=1) as (their_runtime, url),
        published_client(listening.url) as theirs,
        connect(url, token="secret") as ours,
    ):
        session, connection = ours.session_id, ours._session._outbox.connection
        await asyncio.sleep(4.5)
        assert (await (await theirs.submit(agent="echo", input=1)).done).result == 1
        assert await (await ours.submit("echo", 1)).done == 1
        assert session in their_runtime._sessions
        assert ours._session._outbox.connection is connection


# -- deviations: (side, where the specification defines it, what the SDK does)

DEVIATIONS = {
    "details_dropped": ("runtime", "S5 wire shape", "job.error leaves the details of an error out"),
    "time_out_as_result": ("runtime", "7.3, S5", "a time-out ends in job.result with final_status timed_out"),
    "cancel_as_result": ("runtime", "7.4", "a cancellation ends in job.result, and is not acknowledged"),
    "text_on_the_wire": ("runtime", "S5", "the text of a foreign exception is the message of job.error"),
    "refusal_ends_nothing": (
        "runtime",
        "S5",
        "refuses a request with session.error, names none, and goes on",
    ),
    "failure_replayed": (
        "runtime",
        "S5 retry guidance",
        "a retryable failure is replayed for its key, never run again",
    ),
    "forgotten_is_denied": (
        "runtime",
        "6.3",
        "an unknown session is PERMISSION_DENIED, not RESUME_WINDOW_EXPIRED",
    ),
    "resumed_job_is_silent": (
        "runtime",
        "6.3, 8.3",
        "no further message of a job arrives that was running when the connection was lost",
    ),
    "short_token": ("runtime", "v1.0 section 14", "a resume token is a time and 80 bits; 128 are asked for"),
    "climbs": ("runtime", "v1.0 section 14", "a lease on /workspace/** grants /workspace/../etc/passwd"),
    "numbers_per_subscription": (
        "runtime",
        "7.6, 8.3",
        "events of a subscription are numbered from 1 beside the session's own",
    ),
    "not_retryable": ("errors", "S5 table", "TIMEOUT and HEARTBEAT_LOST are not retryable by default"),
    "unknown_code_lost": ("errors", "v1.0 section 12", "a code it does not know becomes INTERNAL_ERROR"),
    "done_does_not_raise": (
        "client",
        "S5",
        "done gives the payload of a job that was cancelled or timed out",
    ),
    "session_error_fails_all": ("client", "7.2", "one refused request fails every handle of the session"),
    "replaced_handle_hangs": (
        "client",
        "7.2",
        "a key repeated in flight leaves the first handle without an end",
    ),
    "history_not_read": ("client", "7.6", "history comes before its handle is there, and is dropped"),
    "lost_connection_fails_all": (
        "client",
        "6.3",
        "a lost connection fails every handle with a transport's exception",
    ),
}


async def raw(url, token="secret", **more):
    """Open a raw connection to its runtime."""
    peer = Peer(await websocket.dial(url))
    hello = {"client": {"name": "raw", "version": "1"}, "auth": {"scheme": "bearer", "token": token}}
    features = ["heartbeat", "ack", "subscribe", "list_jobs"]
    await peer.send("session.hello", {**hello, "capabilities": {"features": features}, **more})
    welcome = await peer.take("session.welcome")
    return peer, welcome


async def submitted(peer, agent, **payload):
    """Submit a job, and return its terminal message."""
    await peer.send("job.submit", {"agent": agent, **payload})
    while (message := await peer.take())["type"] not in {"job.result", "job.error"}:
        pass
    return message


async def time_out_as_result(url):
    peer, _ = await raw(url)
    end = await submitted(peer, "slow", max_runtime_sec=1)
    await peer.close()
    return end["type"] == "job.result" and end["payload"]["final_status"] == "timed_out"


async def details_dropped(url):
    peer, _ = await raw(url)
    end = await submitted(peer, "denied")
    await peer.close()
    return end["payload"].get("details") is None


async def cancel_as_result(url):
    peer, _ = await raw(url)
    await peer.send("job.submit", {"agent": "slow"})
    accepted = await peer.take("job.accepted")
    await peer.take("job.event")
    await peer.send("job.cancel", {"reason": "x"}, job_id=accepted["job_id"])
    answer = await peer.take()
    await peer.close()
    return answer["type"] == "job.result" and answer["payload"]["final_status"] == "cancelled"


async def text_on_the_wire(url):
    peer, _ = await raw(url)
    end = await submitted(peer, "broken")
    await peer.close()
    return "hunter2" in end["payload"]["message"]


async def refusal_ends_nothing(url):
    peer, _ = await raw(url)
    await peer.send("job.submit", {"agent": "unknown"})
    refusal = await peer.take()
    after = await submitted(peer, "echo", input=1)
    await peer.close()
    return (
        refusal["type"] == "session.error"
        and "request_id" not in refusal["payload"]
        and after["payload"]["result"] == 1
    )


async def failure_replayed(url):
    peer, _ = await raw(url)
    first = await submitted(peer, "flaky", idempotency_key="f")
    second = await submitted(peer, "flaky", idempotency_key="f")
    await peer.close()
    return first["payload"]["retryable"] and first["id"] == second["id"]


async def forgotten_is_denied(url):
    peer = Peer(await websocket.dial(url))
    resume = {"session_id": "sess_01ARZ3NDEKTSV4RRFFQ69G5FAV", "resume_token": "x", "last_event_seq": 0}
    hello = {
        "client": {"name": "raw", "version": "1"},
        "auth": {"scheme": "bearer", "token": "secret"},
        "resume": resume,
    }
    await peer.send("session.hello", hello)
    refusal = await peer.take()
    await peer.close()
    return refusal["payload"]["code"] == "PERMISSION_DENIED"


async def resumed_job_is_silent(url):
    peer, welcome = await raw(url)
    await peer.send("job.submit", {"agent": "brief"})
    await peer.take("job.accepted")
    await peer.close()
    # Its runtime lets a session be resumed only after it has noticed the end of the old connection.
    await asyncio.sleep(0.05)
    payload = welcome["payload"]
    resume = {
        "session_id": payload["session_id"],
        "resume_token": payload["resume_token"],
        "last_event_seq": 0,
    }
    back, _ = await raw(url, resume=resume)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(back.take("job.result"), 0.3)
    await back.close()
    return True


async def short_token(url):
    peer, welcome = await raw(url)
    await peer.close()
    return len(welcome["payload"]["resume_token"].removeprefix("rtk_")) == 26


async def climbs(url):
    peer, _ = await raw(url)
    end = await submitted(
        peer, "climb", input="/workspace/../etc/passwd", lease_request={"fs.read": ["/workspace/**"]}
    )
    await peer.close()
    return end["payload"].get("result") == "read"


async def numbers_per_subscription(url):
    one, _ = await raw(url)
    two, _ = await raw(url)
    await submitted(two, "echo")
    ended = await submitted(one, "echo")
    await two.send("job.subscribe", {"job_id": ended["job_id"], "history": True})
    again = await two.take("job.result")
    await one.close()
    await two.close()
    # The session has already sent an event with number 1.
    return again["event_seq"] == 1


async def not_retryable(url):
    codes = ("TIMEOUT", "HEARTBEAT_LOST")
    return all(
        is_retryable_by_default(code) and not theirs.error_class_for(code).default_retryable for code in codes
    )


async def unknown_code_lost(url):
    return theirs.error_from_payload({"code": "OUT_OF_INK", "message": "m"}).code == "INTERNAL_ERROR"


async def done_does_not_raise(url):
    async with published_client(url) as client:
        handle = await client.submit(agent="slow")
        await client.cancel_job(handle.job_id)
        return (await handle.done).final_status == "cancelled"


async def replaced_handle_hangs(url):
    async with published_client(url) as client:
        first = await client.submit(agent="brief", idempotency_key="r")
        second = await client.submit(agent="brief", idempotency_key="r")
        assert first.job_id == second.job_id
        await second.done
        return not first._terminal.done()


async def session_error_fails_all(url):
    async with published_client(url) as client:
        running = await client.submit(agent="slow")
        with pytest.raises(theirs.AgentNotAvailableError):
            await client.submit(agent="unknown")
        with pytest.raises(theirs.AgentNotAvailableError):
            await running.done
    return True


async def history_not_read(url):
    async with published_client(url) as one, published_client(url) as two:
        done = await one.submit(agent="talk")
        await done.done
        # Its runtime replays before it answers, and its client creates the handle after the answer.
        watched = await two.subscribe(done.job_id, history=True)
        return two._highest_seq == 4 and not watched.handle._terminal.done()


async def lost_connection_fails_all(url):
    async with published_client(url) as client:
        running = await client.submit(agent="slow")
        client._transport._conn.transport.abort()
        with pytest.raises(Exception) as caught:
            await running.done
        return not isinstance(caught.value, theirs.ARCPError)


WITH_ITS_RUNTIME = [
    *(details_dropped, time_out_as_result, cancel_as_result, text_on_the_wire, refusal_ends_nothing),
    *(failure_replayed, forgotten_is_denied, resumed_job_is_silent, short_token, climbs),
    *(numbers_per_subscription, not_retryable, unknown_code_lost, done_does_not_raise),
    *(replaced_handle_hangs, session_error_fails_all, history_not_read, lost_connection_fails_all),
]


def test_every_deviation_has_a_test():
    """The table and the probes have the same names."""
    assert {probe.__name__ for probe in WITH_ITS_RUNTIME} == set(DEVIATIONS)
    assert all(side in {"runtime", "client", "errors"} for side, _, _ in DEVIATIONS.values())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("probe", WITH_ITS_RUNTIME, ids=lambda probe: probe.__name__)
async def test_deviations_of_its_runtime_and_client(probe):
    """The deviation still exists in this version."""
    async with asyncio.timeout(WAIT), published_runtime() as (_, url):
        assert await probe(url), DEVIATIONS[probe.__name__]


def test_assumptions_about_its_client():
    """The private members that the probes use exist."""
    assert {"_read_pump", "_fail_all_handles"} <= set(dir(ARCPClient))
    assert issubclass(InvalidRequestError, ARCPError)
