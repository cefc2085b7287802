"""aiohttp: the middleware recovers as the transports do."""

import aiohttp
import pytest

from amends import FaultError, Operation, Policy, arecover
from amends.bindings.aiohttp import recovering
from amends.errors import RateLimitedError
from amends.testing import FakeClock
from tests.http.flaky import broken_off, doubtful, keyed, lost


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
    """P9: waits as told, repeats unchanged, one key for all attempts of a POST."""
    flaky.script["/a"] = [
        (429, {}, {**PROBLEM, "retry_after_ms": 1500}),
        (503, {"retry-after": "2"}, None),
        200,
    ]
    with FakeClock() as clock:
        assert (await call("POST", f"{flaky.url}/a", json={"n": 1}))[0] == 200
    assert clock.waits == [1.5, 2.0]
    assert len({headers["idempotency-key"] for _, headers, _ in flaky.calls["/a"]}) == 1
    assert {body for _, _, body in flaky.calls["/a"]} == {b'{"n": 1}'}
    assert "application/problem+json" in flaky.calls["/a"][0][1]["accept"]


async def test_raises_or_returns(flaky):
    """A typed error with its response, or the response."""
    flaky.script["/a"] = [
        (422, {}, {"title": "No", "status": 422, "detail": "amount", "suggestions": ["Add it"]})
    ]
    with pytest.raises(FaultError) as caught:
        await call("GET", f"{flaky.url}/a")
    assert caught.value.fault.suggestions == ("Add it",)
    assert (await caught.value.response.json(content_type=None))["detail"] == "amount"
    status, body = await call("GET", f"{flaky.url}/a", options={"errors": "return"})
    assert (status, b"amount" in body) == (422, True)
    with pytest.raises(aiohttp.ClientConnectionError):
        await call("GET", "http://127.0.0.1:9/", options={"errors": "return", "policy": Policy(attempts=1)})


async def test_lost_responses_and_streams(flaky):
    """Repeated under a key with one effect; a stream is sent once."""
    flaky.script["/a"] = [lost, keyed]
    with FakeClock():
        assert (await call("POST", f"{flaky.url}/a", json={}, seconds=0.3))[0] == 201
    assert list(flaky.effects.values()) == [1]
    flaky.script["/b"] = [(429, {"retry-after": "1"}, None), 200]

    async def parts():
        yield b"one"

    with FakeClock(), pytest.raises(RateLimitedError):
        await call("POST", f"{flaky.url}/b", data=parts())
    assert [body for _, _, body in flaky.calls["/b"]] == [b"one"]


async def test_large_bodies_and_deadlines(flaky):
    """A body that is too large says nothing; the operation around gives key and deadline."""
    flaky.script["/a"] = [(400, {}, b'{"code":"MINE","detail":"' + b"x" * 3_000_000 + b'"}')]
    with pytest.raises(FaultError) as caught:
        await call("GET", f"{flaky.url}/a")
    assert caught.value.code == "BAD_REQUEST"
    operation = Operation(name="order", key="order-17")
    await arecover(call, "POST", f"{flaky.url}/b", operation=operation, policy=Policy(deadline=30))
    assert flaky.calls["/b"][0][1]["idempotency-key"] == "order-17"
    assert float(flaky.calls["/b"][0][1]["request-timeout"]) <= 30


async def test_a_key_in_doubt_is_verified(flaky):
    """Design 8: `verify` decides: not happened, a result, or nobody can tell."""
    flaky.script["/a"] = [doubtful, keyed]
    await call("POST", f"{flaky.url}/a", options={"verify": lambda fault: False})
    first, second = (headers["idempotency-key"] for _, headers, _ in flaky.calls["/a"])
    assert first != second
    flaky.script["/b"] = [doubtful]
    with pytest.raises(FaultError) as caught:
        await call("POST", f"{flaky.url}/b", options={"verify": lambda fault: None})
    assert caught.value.decision.action == "verify"
    assert len(flaky.calls["/b"]) == 1

    async def look(fault):
        return None

    with pytest.raises(FaultError):
        await call("POST", f"{flaky.url}/b", options={"verify": look})


async def test_what_verify_found_is_the_answer(flaky):
    """A response of the caller's own stands for the one that was lost."""
    async with aiohttp.ClientSession() as plain:
        mine = await plain.get(flaky.url)
        flaky.script["/a"] = [doubtful]
        options = {"verify": lambda fault: mine}
        async with aiohttp.ClientSession(middlewares=[recovering(**options)]) as session:
            assert await session.post(f"{flaky.url}/a") is mine


async def test_a_body_that_breaks_off(flaky):
    """The status was said before; what came of the body is nobody's error document."""
    flaky.script["/a"] = [broken_off]
    with pytest.raises(FaultError) as caught:
        await call("GET", f"{flaky.url}/a")
    assert (caught.value.code, caught.value.fault.status) == ("CONFLICT", 409)
    assert len(flaky.calls["/a"]) == 1
