"""Tests of the rate limits: the fields on every response, and the wait of a refusal."""

import httpx2
import pytest

from amends import extract
from amends.bindings.asgi import Problems
from amends.bindings.httpx import AsyncTransport
from amends.bindings.limits import Limited
from amends.errors import ConflictError


async def app(scope, receive, send):
    if scope["path"] == "/fails":
        raise ConflictError
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"fine"})


def client(limited, **options):
    inner = httpx2.ASGITransport(app=limited)
    transport = AsyncTransport(inner, **options) if options else inner
    return httpx2.AsyncClient(transport=transport, base_url="http://shop.example")


async def test_every_response_has_the_fields():
    """Successes, failures and refusals have them, and only on limited routes."""
    limited = Limited(Problems(app), "2/minute", name="orders", route=lambda scope: scope["path"] != "/free")
    async with client(limited) as session:
        first, second, third = [await session.get(path) for path in ("/", "/fails", "/")]
        assert first.headers["ratelimit-policy"] == '"orders";q=2;w=60'
        assert first.headers["ratelimit"].startswith('"orders";r=1;t=')
        assert (second.status_code, second.headers["ratelimit"][:12]) == (409, '"orders";r=0')
        assert third.status_code == 429
        assert 0 < third.json()["retry_after_ms"] <= 60000
        assert int(third.headers["retry-after"]) * 1000 >= third.json()["retry_after_ms"]
        assert third.headers["ratelimit"][:12] == '"orders";r=0'
        assert extract(third).executed == "no"
        assert "ratelimit" not in (await session.get("/free")).headers


async def test_callers_are_counted_separately():
    """Other credentials have a count of their own."""
    limited = Limited(Problems(app), "1/minute")
    async with client(limited) as session:
        assert (await session.get("/", headers={"authorization": "a"})).status_code == 200
        assert (await session.get("/", headers={"authorization": "b"})).status_code == 200
        assert (await session.get("/", headers={"authorization": "a"})).status_code == 429


async def test_the_wait_is_long_enough():
    """P3, P9: a client that waits as it is asked is not refused again."""
    limited = Limited(Problems(app), "2/second")
    statuses = []

    async def counting(scope, receive, send):
        async def count_status(message):
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
            await send(message)

        await limited(scope, receive, count_status)

    async with client(counting, keys=True) as session:
        for _ in range(5):
            assert (await session.get("/")).status_code == 200
    assert statuses.count(200) == 5
    assert statuses.count(429) <= 2


def test_names_are_checked():
    """A name that would break the field is refused."""
    with pytest.raises(ValueError):
        Limited(app, "1/minute", name='a";x')
