"""Answers that come slowly or without a length, and what the gateway says about its waits."""

import asyncio
import json
import time

import pytest

from amends.core.policy import Policy
from tests.gateway.peers import OK, Upstream, answer, http, serving
from tests.gateway.test_http_upstream import ask
from tests.gateway.test_mcp import Client, Server, mcp


def dripping(status, length=b"content-length: 1000"):
    """Return an answer whose body comes byte by byte and does not end."""

    async def drip(request, writer):
        writer.write(b"HTTP/1.1 %d X\r\ncontent-type: application/json\r\n%b\r\n\r\n{" % (status, length))
        while not writer.is_closing():
            await asyncio.sleep(0.05)
            writer.write(b" ")
            await writer.drain()

    return drip


@pytest.mark.parametrize("status", [500, 503, 200])
async def test_a_body_that_drips_is_sent_on_as_it_comes(status):
    """Its head is there within seconds, though the body never ends: a failure is decided by its status."""
    async with (
        Upstream(dripping(status)) as up,
        serving(http(up, policy=Policy(attempts=1, deadline=4.0))) as gateway,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(b"POST /x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n")
        began = time.monotonic()
        async with asyncio.timeout(30):
            head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 %d" % status)
        assert time.monotonic() - began < 15
        writer.close()


async def test_a_failed_body_that_drips_is_repeated_where_that_is_safe():
    """The answer of the next try arrives whole."""
    async with Upstream(dripping(503), OK) as up, serving(http(up)) as gateway:
        status, sent, _ = await ask(gateway)
        assert (status, dict(sent)[b"amends-tries"]) == (200, b"2")


async def test_the_waits_are_no_longer_than_the_call():
    """A wait and the time in the upstream's queue overlap, so they are not added."""
    failure = answer(503, b"{}", b"retry-after: 1")
    async with (
        Upstream(failure, failure, OK) as up,
        serving(http(up, policy=Policy(attempts=3))) as gateway,
    ):
        began = time.monotonic()
        answers = await asyncio.gather(*(ask(gateway, f"/x{number}") for number in range(3)))
        whole = time.monotonic() - began
        waits = [float(dict(sent).get(b"amends-waited", b"0")) for _, sent, _ in answers]
        assert max(waits) <= whole + 0.01


async def test_a_translated_problem_has_the_id_of_its_call():
    """The id is that of the header, so that the caller can name it."""
    async with (
        Upstream(answer(500, b"<html>db.internal</html>")) as up,
        serving(http(up, translate="problem")) as gateway,
    ):
        _, sent, body = await ask(gateway)
        assert json.loads(body)["trace_id"].encode() == dict(sent)[b"amends-trace"]


LEAK = {
    "result": {"content": [{"type": "text", "text": "connect ECONNREFUSED 10.0.0.7:5432"}], "isError": True}
}


def in_chunks(document):
    """Return an answer as Node writes it: without a length."""
    body = json.dumps({"jsonrpc": "2.0", "id": 2, **document}).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


def in_a_stream(document):
    """Return an answer behind a notification, as a stream."""
    progress = {
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {"progressToken": 1, "progress": 1},
    }
    last = {"jsonrpc": "2.0", "id": 2, **document}
    body = b"".join(b"event: message\ndata: %b\n\n" % json.dumps(one).encode() for one in (progress, last))
    return answer(200, body, b"content-type: text/event-stream")


@pytest.mark.parametrize("form", [in_chunks, in_a_stream])
async def test_a_failed_tool_is_translated_in_every_form_of_answer(form):
    """Also without a length, and behind another event of a stream: the address of the database stays inside."""
    server = Server()
    async with Upstream(server) as up, serving(mcp(up, translate="adcp")) as gateway:
        client = Client(gateway)
        await client.start()
        body = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "pay", "arguments": {}}}
        up.script = [form(LEAK)]
        headers = (b"content-type: application/json", b"accept: application/json, text/event-stream")
        request = json.dumps(body).encode()
        status, _, text = await ask(gateway, "/seats", *headers, method="POST", body=request)
        assert status == 200
        assert b"10.0.0.7" not in text
        assert b"adcp_error" in text
