"""aiohttp: the middleware recovers like the httpx transports."""

import aiohttp
import pytest

from amends import FaultError, Operation, Policy, arecover
from amends.bindings.aiohttp import recovering
from amends.errors import RateLimitedError
from amends.testing import FakeClock
from tests.http.flaky import answer_too_late, break_off, effect_unknown, run_once_per_key


async def call(method, url, *, options=None, seconds=5, **more):
    timeout = aiohttp.ClientTimeout(sock_read=seconds)
    middlewares = [recovering(**(options or {}))]
    async with (
        aiohttp.ClientSession(middlewares=middlewares, timeout=timeout) as session,
        session.request(method, url, **more) as response,
    ):
        return response.status, await response.read()


PROBLEM = {"title": "t", "status": 503, "detail": "d", "is_retriable": True}


async def test_waits_repeats_and_keys(flaky):
    """P9: a POST waits as asked and is repeated unchanged, with one key for all attempts."""
    flaky.script["/a"] = [
        (429, {}, {**PROBLEM, "retry_after_ms": 1500}),
        (503, {"retry-after": "2"}, None),
        200,
    ]
    with FakeClock() as clock:
        assert (await call("POST", f"{flaky.url}/a", json={"n": 1}, options={"keyed": True}))[0] == 200
    assert clock.waits == [1.5, 2.0]
    assert len({headers["idempotency-key"] for _, headers, _ in flaky.calls["/a"]}) == 1
    assert {body for _, _, body in flaky.calls["/a"]} == {b'{"n": 1}'}
    assert "application/problem+json" in flaky.calls["/a"][0][1]["accept"]


async def test_raises_or_returns(flaky):
    """A failure raises a typed error with its response, or returns the response."""
    flaky.script["/a"] = [
        (422, {}, {"title": "No", "status": 422, "detail": "amount", "suggestions": ["Add it"]})
    ]
    with pytest.raises(FaultError) as caught:
        await call("GET", f"{flaky.url}/a")
    assert caught.value.fault.suggestions == ("Add it",)
    assert (await caught.value.response.json(content_type=None))["detail"] == "amount"
    status, body = await call("GET", f"{flaky.url}/a", options={"raises": "nothing"})
    assert (status, b"amount" in body) == (422, True)
    with pytest.raises(aiohttp.ClientConnectionError):
        await call("GET", "http://127.0.0.1:9/", options={"raises": "nothing", "policy": Policy(attempts=1)})


async def test_lost_responses_and_streams(flaky):
    """A lost response is repeated under its key with one effect; a stream is sent once."""
    flaky.script["/a"] = [answer_too_late, run_once_per_key]
    with FakeClock():
        assert (await call("POST", f"{flaky.url}/a", json={}, seconds=0.3, options={"keyed": True}))[0] == 201
    assert list(flaky.effects.values()) == [1]
    flaky.script["/b"] = [(429, {"retry-after": "1"}, None), 200]

    async def parts():
        yield b"one"

    with FakeClock(), pytest.raises(RateLimitedError):
        await call("POST", f"{flaky.url}/b", data=parts())
    assert [body for _, _, body in flaky.calls["/b"]] == [b"one"]


async def test_large_bodies_and_deadlines(flaky):
    """A body that is too large is not parsed; the request carries the operation's key and deadline."""
    flaky.script["/a"] = [(400, {}, b'{"code":"MINE","detail":"' + b"x" * 3_000_000 + b'"}')]
    with pytest.raises(FaultError) as caught:
        await call("GET", f"{flaky.url}/a")
    assert caught.value.code == "BAD_REQUEST"
    assert 1_000_000 < len(await caught.value.response.read()) < 3_000_000
    operation = Operation(name="order", key="order-17")
    await arecover(call, "POST", f"{flaky.url}/b", operation=operation, policy=Policy(deadline=30))
    assert flaky.calls["/b"][0][1]["idempotency-key"] == "order-17"
    assert float(flaky.calls["/b"][0][1]["request-timeout"]) <= 30


async def test_a_key_in_doubt_is_verified(flaky):
    """Design 8: after EFFECT_UNKNOWN, `verify` returns False (send again), a response, or None (raise)."""
    flaky.script["/a"] = [effect_unknown, run_once_per_key]
    await call("POST", f"{flaky.url}/a", options={"verify": lambda fault: False})
    first, second = (headers["idempotency-key"] for _, headers, _ in flaky.calls["/a"])
    assert first != second
    flaky.script["/b"] = [effect_unknown]
    with pytest.raises(FaultError) as caught:
        await call("POST", f"{flaky.url}/b", options={"verify": lambda fault: None})
    assert caught.value.decision.action == "verify"
    assert len(flaky.calls["/b"]) == 1

    async def verify(fault):
        return None

    with pytest.raises(FaultError):
        await call("POST", f"{flaky.url}/b", options={"verify": verify})


async def test_the_response_of_verify_is_returned(flaky):
    """A response that `verify` returns replaces the lost one."""
    async with aiohttp.ClientSession() as plain:
        mine = await plain.get(flaky.url)
        flaky.script["/a"] = [effect_unknown]
        options = {"verify": lambda fault: mine}
        async with aiohttp.ClientSession(middlewares=[recovering(**options)]) as session:
            assert await session.post(f"{flaky.url}/a") is mine


async def test_a_body_that_breaks_off(flaky):
    """An incomplete body is not parsed; the error comes from the status."""
    flaky.script["/a"] = [break_off]
    with pytest.raises(FaultError) as caught:
        await call("GET", f"{flaky.url}/a")
    assert (caught.value.code, caught.value.fault.status) == ("CONFLICT", 409)
    assert len(flaky.calls["/a"]) == 1
