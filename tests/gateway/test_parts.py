"""The small modules of the gateway: headers, bodies, statistics, messages, refusals, processes."""

import asyncio
import doctest
import importlib
import sys

import msgspec
import pytest

from amends.gateway.bodies import CallerGone, TooLarge, TooSlow, read_body
from amends.gateway.headers import BadRequest, request_headers, response_headers
from amends.gateway.refusals import refusal
from amends.gateway.rpc import answers_in, failure_in, read_members, read_request, tool_operations
from amends.gateway.stats import Stats
from amends.gateway.stdio_process import Gone, StdioProcess


@pytest.mark.parametrize("name", ["generations", "headers", "rpc"])
def test_examples(name):
    """The examples in the docstrings run."""
    result = doctest.testmod(importlib.import_module(f"amends.gateway.{name}"))
    assert result.attempted
    assert not result.failed


def test_headers():
    """Non-ASCII values pass; HTTP/1.0 needs no host; headers named by Connection are dropped."""
    found = request_headers([(b"host", b"a"), (b"x", "é".encode()), (b"y", b"\xff"), (b"connection", b"x")])
    assert found.sent == [("y", "ÿ")]
    several = [
        (b"host", b"a"),
        (b"x", b"1"),
        (b"y", b"2"),
        (b"connection", b"x"),
        (b"connection", b"Y, close"),
    ]
    assert request_headers(several).sent == []
    assert request_headers([], "1.0").sent == []
    for wrong in (
        [(b"host", b"a"), (b"content-length", b"1_0")],
        [(b"host", b"a"), (b"content-length", b"\xb2")],
    ):
        with pytest.raises(BadRequest):
            request_headers(wrong)
    raw = [(b"Connection", b"X-Hop, close"), (b"X-Hop", b"1"), (b"Via", b"1.1 up")]
    assert response_headers(raw, 200) == [(b"via", b"1.1 up")]


def messages(*bodies, end="http.request"):
    given = [{"type": "http.request", "body": body, "more_body": True} for body in bodies]
    given.append({"type": end, "body": b"", "more_body": False})

    async def receive():
        return given.pop(0)

    return receive


async def test_bodies():
    """Kept while they are small; limits and a caller that leaves in the middle."""
    body = await read_body(messages(b"ab", b"cd"), None, 10, 1)
    assert (body.whole, body.to_send) == (True, b"abcd")
    large = await read_body(messages(*[b"x" * 100_000] * 5), None, 10**6, 1)
    assert not large.whole
    assert sum([len(piece) async for piece in large.to_send]) == 500_000
    with pytest.raises(TooLarge):
        await read_body(messages(b"abc"), None, 2, 1)
    with pytest.raises(TooLarge):
        await read_body(messages(), 11, 10, 1)
    with pytest.raises(CallerGone):
        await read_body(messages(b"a", end="http.disconnect"), None, 10, 1)
    streamed = await read_body(messages(*[b"x" * 300_000] * 3), None, 500_000, 1)
    with pytest.raises(TooLarge):
        [piece async for piece in streamed.to_send]
    with pytest.raises(TooSlow):
        await read_body(asyncio.Event().wait, None, 10, 0.01)


def test_stats():
    """Quantiles and rates of the last calls."""
    stats = Stats()
    assert (stats.quantile(0.5), stats.rate()) == (None, 0.0)
    for number in range(100):
        stats.times.append(number)
        stats.ends.append(stats.began)
    assert (stats.quantile(0.5), stats.quantile(0.99)) == (50, 99)
    assert stats.rate() > 1


def test_messages_that_are_none():
    """Any bytes and any types are read without an exception."""
    for data in (b"", b"[]", b"7", b"\xff", b'{"method":7}', b'{"id":1}', b"[" * 100_000):
        assert read_request(data) is None
    assert read_members(b"[1]") is None
    assert answers_in(b"\xff", stream=False) == []
    assert answers_in(b"data: {}\r\n\r\ndata: x\n\n: c\n\ndata: [1,\ndata: 2]", stream=True) == [{}, [1, 2]]
    for message in (
        None,
        [],
        {"result": 3},
        {"result": {"tools": {}}},
        {"result": {"tools": [1, {"name": 2}]}},
    ):
        assert tool_operations(message) == {}
    assert failure_in([1]) is None


def test_refusals_are_faults():
    """Each status the gateway answers with itself."""
    for status in (400, 404, 405, 408, 413, 502, 503, 504):
        assert refusal(status).status == status


async def test_a_process_that_ends():
    """Pending requests fail; later ones too."""
    process = await StdioProcess.start(
        (sys.executable, "-c", "import sys; sys.stdin.readline(); print('x' * 10)")
    )
    with pytest.raises(Gone):
        await process.request({"id": msgspec.Raw(b"1"), "method": msgspec.Raw(b'"ping"')})
    with pytest.raises(Gone):
        await process.request({"id": msgspec.Raw(b"1")})
    await process.stop()
