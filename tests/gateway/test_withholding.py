"""How long a failure is held back, and what calls get while an upstream fails: never later than somebody waits for it."""

import asyncio
import json
import statistics
import time

import pytest

from amends.core.policy import Policy
from amends.gateway.config import UpstreamConfig
from tests.gateway.peers import OK, Upstream, answer, http, serving
from tests.gateway.test_http_upstream import ask


def slow(reply, seconds=0.02):
    async def script(request, writer):
        await asyncio.sleep(seconds)
        writer.write(reply)

    return script


def plain(up, **options):
    """Return an upstream with the default policy."""
    return UpstreamConfig(name="shop", url=up.url, **options)


async def timed(*call):
    began = time.monotonic()
    status, headers, body = await ask(*call)
    return time.monotonic() - began, status, dict(headers), body


async def test_a_permanent_failure_becomes_no_hang():
    """A sequential caller gets each 500 itself, at once after the first calls, and none after more than five seconds."""
    async with Upstream(slow(answer(500, b"the real one"))) as up, serving(plain(up)) as gateway:
        calls = [await timed(gateway, "/x") for _ in range(12)]
        assert {(status, body) for _, status, _, body in calls} == {(500, b"the real one")}
        assert max(seconds for seconds, *_ in calls) < 7.0
        assert statistics.median(seconds for seconds, *_ in calls) < 1.0
        up.script, up.requests = [OK], []
        assert [(await ask(gateway, "/x"))[0] for _ in range(3)] == [200, 200, 200]
        assert len(up.requests) == 3


async def test_a_failure_is_handed_over_though_its_repeat_hangs():
    """Without a known limit after `patience`; the first failure arrives whole."""
    async with (
        Upstream(answer(503, b"first"), "hang") as up,
        serving(http(up, patience=0.5)) as gateway,
    ):
        seconds, status, headers, body = await timed(gateway, "/x")
        assert (status, body, headers[b"amends-tries"]) == (503, b"first", b"2")
        assert seconds < 5.0


@pytest.mark.parametrize(
    "header", ["request-timeout: 1", "x-stainless-read-timeout: 1.0", "amends-left: 3;deadline-ms=1000"]
)
async def test_the_callers_limit_is_obeyed(header):
    """A failure, and an upstream that hangs, are answered for before the caller stops waiting."""
    async with Upstream(answer(503, b"first"), "hang") as up, serving(http(up, patience=60.0)) as gateway:
        seconds, status, _, body = await timed(gateway, "/x", header.encode())
        assert (status, body) == (503, b"first")
        assert 0.5 < seconds < 20
        status, _headers, body = await ask(gateway, "/y", header.encode())
        assert (status, json.loads(body)["executed"]) == (504, "maybe")


async def test_a_repeat_that_may_have_an_effect_is_not_cut_off_silently():
    """A refused POST is sent again; if its answer does not come in time, the caller does not get the refusal of before."""
    async with Upstream(answer(429, b"{}", b"retry-after: 0"), "hang") as up, serving(http(up)) as gateway:
        status, _, body = await ask(gateway, "/pay", b"request-timeout: 1", method="POST", body=b"{}")
        assert (status, json.loads(body)["executed"]) == (504, "maybe")
        assert len(up.requests) == 2


@pytest.mark.parametrize("status", [429, 503])
async def test_a_held_upstream_is_answered_for_at_once(status):
    """With the code, the status and the remaining wait of the last failure of the same credential and route, and nothing else."""
    failure = answer(
        status, b'{"secret":"of another call"}', b"retry-after: 300", b"x-secret: 1", b"set-cookie: a=b"
    )
    async with Upstream(failure) as up, serving(plain(up)) as gateway:
        assert (await ask(gateway, "/x", b"authorization: a"))[2] == b'{"secret":"of another call"}'
        seconds, found, headers, body = await timed(gateway, "/x", b"authorization: a")
        document = json.loads(body)
        assert (found, document["executed"], headers[b"amends-tries"]) == (status, "no", b"0")
        assert 200 < int(headers[b"retry-after"]) <= 306  # with jitter
        assert b"secret" not in body
        assert not headers.keys() & {b"x-secret", b"set-cookie"}
        assert seconds < 2.0
        assert len(up.requests) == 1
        await ask(gateway, "/x", b"authorization: b")
        assert len(up.requests) == 2


async def test_calls_that_wait_do_not_fill_the_upstream():
    """250 callers of a broken route wait; another credential's calls all succeed. The waiting ones are bounded per route."""

    async def script(request, writer):
        writer.write(answer(503, b"{}", b"retry-after: 15") if b"/bad" in request else OK)

    async with Upstream(script) as up, serving(plain(up, concurrency=80)) as gateway:
        crowd = gateway.upstreams[0].crowd
        waiting = [asyncio.create_task(ask(gateway, "/bad", b"authorization: a")) for _ in range(250)]
        async with asyncio.timeout(30):
            while crowd.waiting + sum(task.done() for task in waiting) < 250:
                await asyncio.sleep(0.01)
        assert {(await ask(gateway, "/good", b"authorization: b"))[0] for _ in range(50)} == {200}
        assert (crowd.waiting, crowd.in_flight) == (40, 0)
        assert {task.result()[0] for task in waiting if task.done()} == {503}
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        async with asyncio.timeout(30):
            while crowd.waiting:
                await asyncio.sleep(0.01)


async def test_a_route_that_hangs_does_not_keep_out_the_others():
    """Its calls fill their share of `concurrency`, and no more."""

    async def script(request, writer):
        if b"/hang" in request:
            await asyncio.sleep(3600)
        writer.write(OK)

    async with Upstream(script) as up, serving(plain(up, concurrency=20)) as gateway:
        waiting = [asyncio.create_task(ask(gateway, "/hang")) for _ in range(40)]
        async with asyncio.timeout(30):
            while gateway.upstreams[0].crowd.in_flight + sum(task.done() for task in waiting) < 40:
                await asyncio.sleep(0.01)
        assert {(await ask(gateway, "/good"))[0] for _ in range(10)} == {200}
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def test_two_routes_below_the_same_prefix_do_not_share_their_trouble():
    """`/api/v1/reports` fails for every caller; `/api/v1/orders` is called as before."""

    async def script(request, writer):
        writer.write(answer(503, b"{}", b"retry-after: 60") if b"reports" in request else OK)

    async with Upstream(script) as up, serving(plain(up, policy=Policy(attempts=1, max_wait=20))) as gateway:
        assert {(await ask(gateway, "/api/v1/reports/7"))[0] for _ in range(3)} == {503}
        assert {(await ask(gateway, "/api/v1/orders/7"))[0] for _ in range(3)} == {200}
