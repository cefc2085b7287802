"""Recovery on asyncio, on trio and on anyio with either: waits, time-outs, cancellation, shared upstreams."""

import asyncio
import logging
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anyio
import httpx2
import pytest
import trio

from amends import FaultError, Operation, Policy, Upstream, arecover, recover
from amends.bindings.httpx import AsyncTransport
from amends.errors import RateLimitedError, ServiceUnavailableError, UnauthenticatedError
from amends.errors import TimeoutError as TimedOut
from amends.recovery import attempts, recovering, time_left
from amends.recovery.async_library import (
    TaskWaiter,
    ThreadWaiter,
    TrioWaiter,
    Waiter,
    in_event_loop,
    time_limit,
)
from amends.testing import Script

RUNNERS = {
    "asyncio": lambda main: asyncio.run(main()),
    "trio": lambda main: trio.run(main),
    "anyio on asyncio": lambda main: anyio.run(main, backend="asyncio"),
    "anyio on trio": lambda main: anyio.run(main, backend="trio"),
}


@pytest.fixture(params=RUNNERS.values(), ids=RUNNERS.keys())
def run(request):
    """Run an async function on one of the libraries."""
    return request.param


def test_a_call_is_repeated_after_its_wait(run, clock):
    """Waits, hooks, the decorator and the block work the same on each library."""

    async def main():
        limited = RateLimitedError(retry_after=3)
        assert await arecover(Script(limited, "page").acall) == "page"
        decorated = recovering(upstream=Upstream())(Script(limited, "page").acall)
        assert await decorated() == "page"
        script = Script(limited, "page")
        async for attempt in attempts():
            with attempt:
                assert script() == "page"

        async def renew():
            await anyio.sleep(0)

        assert await arecover(Script(UnauthenticatedError(), "ok").acall, refresh=renew) == "ok"

    run(main)
    assert clock.waits.count(3) >= 2


def test_real_waits(run):
    """Without a fake clock the wait is the library's own sleep."""

    async def main():
        return await arecover(Script(RateLimitedError(retry_after=0.01), "page").acall)

    assert run(main) == "page"


def test_callers_wait_for_one_upstream(run):
    """All tasks obey the hint that one of them received, and are woken when the service works again."""
    upstream, calls = Upstream(), []

    async def call():
        calls.append(1)
        if len(calls) == 1:
            raise RateLimitedError(retry_after=0.05)
        return "ok"

    async def main():
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(one)

    async def one():
        assert await arecover(call, upstream=upstream) == "ok"

    run(main)
    assert upstream.snapshot().parked == 0


def test_a_waiter_of_trio_is_woken_from_another_thread():
    """Threads and tasks of different loops share an upstream; waking a finished run changes nothing."""
    waiters = []

    async def main():
        waiter = TrioWaiter()
        waiters.append(waiter)
        threading.Thread(target=waiter.wake).start()
        with trio.fail_after(30):
            await waiter.event.wait()
        waiter.clear()
        assert not waiter.event.is_set()
        waiter.wake()
        assert waiter.event.is_set()

    trio.run(main)
    late = threading.Thread(target=waiters[0].wake)
    late.start()
    late.join()


def test_a_call_that_takes_too_long_is_cancelled(run, clock):
    """The failure is a TIMEOUT whose effect is unknown: it is repeated if a repeat is safe."""
    started, cancelled = [], []

    async def hang():
        started.append(time_left())
        if len(started) == 2:
            return "page"
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.append(1)

    async def main():
        return await arecover(hang, timeout=0.01, read_only=True)

    assert run(main) == "page"
    assert len(cancelled) == 1
    assert all(left <= 0.01 for left in started)

    async def unsafe():
        with pytest.raises(TimedOut) as caught:
            await arecover(anyio.sleep_forever, timeout=0.01)
        assert caught.value.decision.reason == "effect-unknown"
        with pytest.raises(TimeoutError):
            await arecover(anyio.sleep_forever, timeout=0.01, raises="original")

    run(unsafe)


def test_a_time_out_of_the_call_itself_is_kept(run, clock):
    """A TimeoutError that the call raises is not taken for the limit."""

    async def main():
        own = TimeoutError("own")
        with pytest.raises(TimeoutError) as caught:
            await arecover(Script(own).acall, timeout=60, raises="original")
        assert caught.value is own
        return await arecover(Script("page").acall, timeout=60)

    assert run(main) == "page"


def test_cancelling_ends_the_operation(run):
    """Cancellation passes through at once, while the call runs and while it waits; the upstream stays open."""
    upstream = Upstream()

    async def hang(called):
        called.set()
        await anyio.sleep_forever()

    async def main():
        for options in ({}, {"timeout": 60}, {"policy": Policy(deadline=60)}):
            async with anyio.create_task_group() as group:
                called = anyio.Event()

                async def one(called=called, options=options):
                    await arecover(hang, called, upstream=upstream, **options)

                group.start_soon(one)
                await called.wait()
                group.cancel_scope.cancel()

    run(main)
    assert upstream.open


def test_a_plain_call_sees_its_time_limit(clock, caplog):
    """A thread cannot be stopped: the call sees the time left, and a call that took longer is logged once."""
    seen = []

    def slow():
        seen.append(time_left())
        clock.advance(7)
        return "page"

    for _ in range(2):
        assert recover(slow, timeout=5) == "page"
    assert seen == [5, 5]
    late = [record for record in caplog.records if "timeout=5" in record.getMessage()]
    assert [record.levelno for record in late] == [logging.WARNING]
    script = Script(ServiceUnavailableError(), "page")
    assert recover(script, timeout=5, operation=Operation(read_only=True)) == "page"
    with pytest.raises(FaultError):
        recover(Script(ServiceUnavailableError()), timeout=5)


def test_the_running_library_is_found(run):
    """Outside a loop there is none, also in a thread that a loop started."""
    assert not in_event_loop()

    async def main():
        assert in_event_loop()
        assert not await anyio.to_thread.run_sync(in_event_loop)

    run(main)


def test_trio_does_not_load_asyncio():
    """A program on trio does not import asyncio because of recovery."""
    code = (
        "import sys, trio\nfrom amends import arecover\nfrom amends.errors import RateLimitedError\n"
        "outcomes = [RateLimitedError(retry_after=0), None]\n"
        "async def call():\n    if error := outcomes.pop(0): raise error\n    return 1\n"
        "assert trio.run(arecover, call) == 1\n"
        "print('asyncio' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


class Busy(BaseHTTPRequestHandler):
    """Answers the first request with 429 and a wait, and later ones with 200."""

    seen = 0

    def do_GET(self):
        type(self).seen += 1
        body = b"page"
        self.send_response(429 if self.seen == 1 else 200)
        self.send_header("Retry-After", "2")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def test_the_http_client_runs_on_each_library(run, clock):
    """A real server's 429 is repeated after its wait; the bodies have a time limit."""
    handler = type("Handler", (Busy,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()

        async def main():
            transport = AsyncTransport(upstream=Upstream(), policy=Policy(deadline=60))
            async with httpx2.AsyncClient(transport=transport, trust_env=False) as client:
                return (await client.get(f"http://127.0.0.1:{server.server_port}/")).text

        try:
            assert run(main) == "page"
        finally:
            server.shutdown()
            thread.join()
    assert (handler.seen, clock.waited >= 2) == (2, True)


def test_a_time_limit_on_each_library(run):
    """A block that takes too long raises TimeoutError; without a limit it runs."""

    async def main():
        with pytest.raises(TimeoutError):
            async with time_limit(0.01):
                await anyio.sleep_forever()
        async with time_limit(None), time_limit(60):
            await anyio.sleep(0)

    run(main)


def test_a_new_waiter():
    """It has made no call, has no grant, and may be looked at once."""
    for waiter in (Waiter(), ThreadWaiter()):
        assert (waiter.tries, waiter.granted, waiter.look_at) == (0, False, 0.0)
        assert waiter.wake() is None
        assert waiter.clear() is None


def test_threads():
    """A wake ends the next sleep too; `clear` discards it."""
    waiter = ThreadWaiter()
    waiter.wake()
    assert waiter.event.wait(0)
    waiter.clear()
    assert not waiter.event.is_set()


async def test_tasks():
    """A task is woken from its own loop at once, and from another thread through its loop."""
    waiter = TaskWaiter()
    assert (waiter.tries, waiter.granted) == (0, False)
    waiter.wake()
    assert waiter.event.is_set()
    waiter.clear()
    assert not waiter.event.is_set()
    thread = threading.Thread(target=waiter.wake)
    thread.start()
    await asyncio.wait_for(waiter.event.wait(), 30)
    thread.join()


def test_a_closed_loop():
    """Waking a task whose loop is closed does nothing."""

    async def make():
        return TaskWaiter()

    waiter = asyncio.run(make())
    thread = threading.Thread(target=waiter.wake)
    thread.start()
    thread.join()
    assert not waiter.event.is_set()
