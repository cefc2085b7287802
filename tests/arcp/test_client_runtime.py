"""Our client with our runtime: over WebSockets that break at random, in memory, detached and resumed."""

import asyncio
import random

import pytest

from amends import Policy
from amends.arcp import Limits, Runtime, connect
from amends.arcp.transports import Connection, ConnectionLost, websocket
from amends.core.backoff import Backoff
from amends.errors.arcp import (
    CancelledError,
    DuplicateKeyError,
    HeartbeatLostError,
    InternalError,
    LeaseSubsetViolationError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from tests.arcp.scripted import Peer

QUICK = Policy(attempts=None, max_wait=20.0, backoff=Backoff(first=0.001, cap=0.01))
EVENTS = 200


class BreakingDial:
    """A dial function whose connections break after a random number of frames."""

    def __init__(self, dial, seed):
        self.dial = dial
        self.dice = random.Random(seed)
        self.connections = 0

    async def __call__(self):
        connection = await self.dial()
        self.connections += 1
        # The first connection survives the handshake; later ones may break during it.
        return BreakingConnection(connection, self.dice.randint(3 if self.connections == 1 else 1, 40))


class BreakingConnection:
    """A connection that breaks after so many frames."""

    def __init__(self, connection, frames):
        self.connection = connection
        self.left = frames
        self.peer = connection.peer

    async def spend(self):
        self.left -= 1
        if self.left == 0:
            self.connection._socket.transport.abort()

    async def send(self, data):
        await self.spend()
        await self.connection.send(data)

    async def send_all(self, frames):
        for frame in frames:
            await self.send(frame)

    def post(self, frames):
        return False

    async def receive(self):
        frame = await self.connection.receive()
        await self.spend()
        # A frame in transit is lost when the connection breaks.
        return frame if self.left > 0 else None

    async def receive_into(self, take):
        return await Connection.receive_into(self, take)

    async def close(self, code=1000, reason=""):
        await self.connection.close(code, reason)


def register(runtime):
    runs = {}

    @runtime.register_agent("talk")
    async def talk(given, ctx):
        for number in range(EVENTS):
            await ctx.log(str(number))
            if number % 10 == 0:
                await asyncio.sleep(0)
        return given

    @runtime.register_agent("echo")
    async def echo(given, ctx):
        runs[ctx.job_id] = runs.get(ctx.job_id, 0) + 1
        return given

    @runtime.register_agent("stream")
    async def stream(given, ctx):
        for number in range(50):
            yield f"{number} "

    @runtime.register_agent("slow")
    async def slow(given, ctx):
        await ctx.status("waiting")
        await asyncio.sleep(60)

    @runtime.register_agent("flaky")
    async def flaky(given, ctx):
        runs[ctx.job_id] = runs.get(ctx.job_id, 0) + 1
        if ctx.run < 3:
            raise InternalError("not yet", details={"run": ctx.run})
        return ctx.run

    @runtime.register_agent("climber")
    async def climber(given, ctx):
        ctx.authorize("fs.read", given)
        return "read"

    @runtime.register_agent("greedy")
    async def greedy(given, ctx):
        child = await ctx.delegate("echo", 1, lease=given)
        return await child.done if hasattr(child, "done") else child

    return runs


@pytest.fixture
async def served():
    """A served runtime, its URL, and how often each job ran."""
    runtime = Runtime(tokens={"secret": "alice"}, limits=Limits(drain=0.0, cancel_grace=0.2))
    runs = register(runtime)
    async with asyncio.timeout(100), runtime, runtime.listen(port=0) as listening:
        yield runtime, listening.url, runs


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(4, 200))]
)
async def test_nothing_is_lost_or_doubled_when_connections_break(served, seed):
    """6.3, 8.3: every event once and in order, every result, and one job per key, however often the connection breaks."""
    _, url, runs = served
    breaking = BreakingDial(lambda: websocket.dial(url), seed)
    async with connect(breaking, token="secret", resuming=QUICK) as client:
        handles = await asyncio.gather(
            *(client.submit("talk", number, idempotency_key=f"talk-{seed}-{number}") for number in range(3)),
            client.submit("stream", idempotency_key=f"stream-{seed}"),
        )
        echoes = await asyncio.gather(
            *(client.submit("echo", number, idempotency_key=f"echo-{seed}-{number}") for number in range(10))
        )
        assert [await handle.done for handle in echoes] == list(range(10))
        for number, handle in enumerate(handles[:3]):
            assert [event.body["message"] async for event in handle.events()] == [
                str(each) for each in range(EVENTS)
            ]
            assert await handle.done == number
        assert await handles[3].done == "".join(f"{number} " for number in range(50))
    assert breaking.connections > 5
    assert set(runs.values()) == {1}


async def test_events_are_numbered_without_gaps(served):
    """8.3: the numbers are consecutive over all jobs of a session."""
    _, url, _ = served
    async with connect(url, token="secret") as client:
        handles = await asyncio.gather(*(client.submit("talk") for _ in range(3)))
        numbers = sorted([event.seq for handle in handles async for event in handle.events()])
        await asyncio.gather(*(handle.done for handle in handles))
        # The three results have numbers too.
        assert len(numbers) == 3 * EVENTS
        assert client._session.last_seq == 3 * EVENTS + 3


async def test_submit_with_recovery_reruns_one_job(served):
    """After a retryable failure the same key runs the job again, under the same id."""
    _, url, runs = served
    async with connect(url, token="secret") as client:
        attempts = []
        policy = Policy(attempts=5, backoff=Backoff(first=0.001))
        assert await client.submit_with_recovery("flaky", policy=policy, history=attempts) == 3
        assert (len(attempts), list(runs.values())) == (3, [3])


async def test_detaching_and_resuming_with_a_ticket(served):
    """The ticket includes the right to cancel; a used ticket is invalid."""
    _, url, _ = served
    client = await connect(url, token="secret")
    handle = await client.submit("slow")
    ticket = await client.detach()
    with pytest.raises(HeartbeatLostError):
        await handle.done
    async with connect(url, token="secret") as other:
        with pytest.raises(PermissionDeniedError):
            await other.cancel(handle.job_id)
        watched = await other.subscribe(handle.job_id)
        async with connect(url, token="secret", ticket=ticket) as resumed:
            assert resumed.session_id == ticket.session_id
            await resumed.cancel(handle.job_id, "enough")
        with pytest.raises(CancelledError) as caught:
            await watched.done
        assert caught.value.details == {"reason": "enough"}
    with pytest.raises(UnauthenticatedError):
        async with connect(url, token="secret", ticket=ticket):
            pass


async def test_leases_are_enforced_over_the_wire(served):
    """9.3: traversal is PERMISSION_DENIED with its details; a child with a larger lease is refused."""
    _, url, _ = served
    async with connect(url, token="secret") as client:
        lease = {"fs.read": ["/workspace/**"], "agent.delegate": ["echo"]}
        assert await (await client.submit("climber", "/workspace/a", lease=lease)).done == "read"
        with pytest.raises(PermissionDeniedError) as caught:
            await (await client.submit("climber", "/workspace/../etc/passwd", lease=lease)).done
        assert caught.value.details["target"] == "/workspace/../etc/passwd"
        with pytest.raises(LeaseSubsetViolationError):
            await (await client.submit("greedy", {"fs.read": ["/**"]}, lease=lease)).done


async def test_a_duplicate_key_affects_only_its_submission(served):
    """R9: the running job of the same session is not affected."""
    _, url, _ = served
    async with connect(url, token="secret") as client:
        running = await client.submit("slow")
        assert await (await client.submit("echo", 1, idempotency_key="k")).done == 1
        with pytest.raises(DuplicateKeyError):
            await client.submit("echo", 2, idempotency_key="k")
        assert not running.finished
        await running.cancel()


async def test_handles_fail_when_the_runtime_goes_away():
    """If the runtime does not come back, handles raise within the limits of the policy."""
    runtime = Runtime(tokens={"secret": "alice"}, limits=Limits(drain=0.0, cancel_grace=0.1))
    register(runtime)
    short = Policy(attempts=3, backoff=Backoff(first=0.001, cap=0.002))
    async with asyncio.timeout(100):
        await runtime.start()
        async with runtime.listen(port=0) as listening:
            client = await connect(listening.url, token="secret", resuming=short, connect_timeout=2.0)
            handle = await client.submit("slow")
            await runtime.abandon()
        with pytest.raises(HeartbeatLostError):
            await handle.done
        await client.close()


async def test_reconnecting_is_bounded_by_the_policy():
    """The number of dials is limited by the policy."""
    runtime = Runtime(tokens={"secret": "alice"}, limits=Limits(drain=0.0, cancel_grace=0.1))
    register(runtime)
    async with asyncio.timeout(100), runtime, runtime.listen(port=0) as listening:
        dials = 0

        async def once():
            nonlocal dials
            dials += 1
            if dials > 1:
                raise ConnectionLost("cut")
            return BreakingConnection(await websocket.dial(listening.url), 5)

        short = Policy(attempts=4, backoff=Backoff(first=0.001, cap=0.002))
        client = await connect(once, token="secret", resuming=short)
        handle = await client.submit("talk")
        with pytest.raises(HeartbeatLostError) as caught:
            await handle.done
        assert caught.value.details == {"reason": "unreachable"}
        assert dials == 5
        await client.close()


async def test_half_closed_connections():
    """If the peer shuts down only its side of the socket, the client resumes as often as the policy allows."""
    halves = 0

    class Half:
        async def serve(self, connection):
            nonlocal halves
            halves += 1
            peer = Peer(connection)
            await peer.welcome()
            if halves == 1:
                await peer.accept()
            connection._socket.transport.write_eof()
            await peer.take("nothing")

    short = Policy(attempts=3, backoff=Backoff(first=0.001, cap=0.002))
    async with asyncio.timeout(100), websocket.serve(Half()) as listening:
        async with connect(listening.url, token="secret", resuming=short) as client:
            handle = await client.submit("echo")
            with pytest.raises(HeartbeatLostError):
                await handle.done
        assert halves == 4
