"""HTTP through the gateway: byte for byte, recovered where that is safe, one upstream never affects another."""

import asyncio
import gzip
import json

import pytest

import amends
from amends.core.policy import Policy
from tests.gateway.peers import OK, Upstream, answer, free_port, get, http, raw, serving

PROBLEM = b'{"type":"about:blank","status":503,"x":[1,{"y":null}], "is_retriable":true}'


def parts(data):
    """Return status, headers and body of an answer."""
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    headers = [tuple(line.split(b": ", 1)) for line in lines]
    return int(first.split()[1]), headers, body


async def ask(gateway, *args, **options):
    return parts(await raw(gateway, get(*args, **options)))


async def test_a_request_passes_unchanged():
    """Path and query as they were written, repeated headers, the body; no headers of the connection, none of ours."""
    async with Upstream(answer(201, b"\x00\xff", b"Set-Cookie: a", b"Set-Cookie: b", b"Keep-Alive: 5")) as up:  # noqa: SIM117
        async with serving(http(up, url=f"{up.url}/base", prefix="/shop")) as gateway:
            headers = (
                b"X-A: 1",
                b"x-a: 2",
                b"X-Drop: 1",
                b"Te: trailers",
                b"Cookie: c=1",
                b"authorization: Bearer x",
            )
            request = get("/shop/a%2Fb/%C3%A9?q=%20&q=+", *headers, method="POST", body=b"\x01\x02")
            request = request.replace(b"connection: close", b"connection: close, x-drop")
            status, sent, body = parts(await raw(gateway, request))
    head, _, content = up.requests[0].partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0] == b"POST /base/a%2Fb/%C3%A9?q=%20&q=+ HTTP/1.1"
    assert lines[1].lower() == b"host: %b" % up.url[7:].encode()
    assert lines[2:] == [
        b"x-a: 1",
        b"x-a: 2",
        b"cookie: c=1",
        b"authorization: Bearer x",
        b"content-length: 2",
    ]
    assert content == b"\x01\x02"
    assert (status, body) == (201, b"\x00\xff")
    assert sent[:3] == [(b"set-cookie", b"a"), (b"set-cookie", b"b"), (b"content-length", b"2")]
    assert [name for name, _ in sent[3:]] == [b"connection"]


@pytest.mark.parametrize(
    ("method", "headers", "options", "first", "tries"),
    [
        ("GET", (), {}, answer(503, PROBLEM), 2),
        ("GET", (), {}, answer(429, b"", b"retry-after: 0"), 2),
        ("GET", (), {}, "close", 2),
        ("GET", (), {}, b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", 2),
        ("GET", (), {}, b"garbage\r\n\r\n", 2),
        ("GET", (), {}, answer(404, b"{}"), 1),
        ("PUT", (), {}, answer(503, PROBLEM), 2),
        ("POST", (), {}, answer(500, b"{}"), 1),
        ("POST", (), {}, "close", 1),
        ("POST", (), {}, answer(429, b"{}", b"retry-after: 0"), 2),
        ("POST", (b"Idempotency-Key: k",), {}, "close", 1),
        ("POST", (b"Idempotency-Key: k",), {"keyed": True}, "close", 2),
        ("POST", (b"Idempotency-Key: k",), {"keyed": False}, answer(500, b"{}"), 1),
        ("POST", (), {"keyed": True}, "close", 1),
    ],
)
async def test_what_is_repeated(method, headers, options, first, tries):
    """Reads, and writes that had no effect or carry a key that the service is known to honour."""

    async def step(request, writer):
        if first == "close":
            return True
        writer.write(first)
        return b"length: 9" in first or first.startswith(b"garbage")

    async with Upstream(step, OK) as up, serving(http(up, **options)) as gateway:
        status, sent, body = await ask(gateway, "/orders", *headers, method=method)
    assert len(up.requests) == tries
    facts = dict(sent)
    if tries == 2:
        assert (status, body) == (200, b"ok")
        assert facts[b"amends-tries"] == b"2"
    elif isinstance(first, bytes):
        expected, _, content = parts(first)
        assert (status, body) == (expected, content)
    else:
        assert status == 502
        assert json.loads(body)["executed"] == "maybe"
    assert facts[b"amends-upstream"] == b"shop"


async def test_the_last_failure_passes_unchanged():
    """Status, headers, a compressed body; the facts about the tries are in headers of their own."""
    body = gzip.compress(PROBLEM)
    failure = answer(503, body, b"Content-Encoding: gzip", b"X-Vendor: yes", b"Retry-After: 0")
    async with Upstream(failure) as up, serving(http(up)) as gateway:
        status, sent, found = await ask(
            gateway, "/orders", b"traceparent: 00-" + b"ab" * 16 + b"-00f067aa0ba902b7-01"
        )
    assert (status, found) == (503, body)
    assert sent[:3] == [(b"content-encoding", b"gzip"), (b"x-vendor", b"yes"), (b"retry-after", b"0")]
    assert dict(sent)[b"amends-tries"] == b"%d" % len(up.requests)
    assert dict(sent)[b"amends-trace"] == b"ab" * 16


async def test_large_bodies_stream_both_ways_and_are_not_repeated():
    """Chunked and with a length; an error body of any size passes whole."""
    sizes = []

    async def echo(request, writer):
        sizes.append(len(request.partition(b"\r\n\r\n")[2]))
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for _ in range(40):
            writer.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    body = b"y" * 3_000_000
    async with Upstream(echo) as up, serving(http(up)) as gateway:
        found = parts(await raw(gateway, get("/up", method="POST", body=body)))[2]
        assert found.count(b"x") == 40 * 65536
        chunks = b"".join(b"%x\r\n" % 100_000 + b"z" * 100_000 + b"\r\n" for _ in range(10)) + b"0\r\n\r\n"
        head = b"POST / HTTP/1.1\r\nhost: g\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
        await raw(gateway, head + chunks)
        assert sizes == [3_000_000, 1_000_000]
        up.script, up.requests = [answer(503, b"e" * 300_000)], []
        status, _, found = await ask(gateway, "/up", method="POST", body=body)
        assert (status, len(found), len(up.requests)) == (503, 300_000, 1)


async def test_an_answer_that_breaks_off_is_not_completed():
    """The caller sees that it is not whole, and nothing is sent again."""

    async def half(request, writer):
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await writer.drain()
        return True

    async with Upstream(half) as up, serving(http(up)) as gateway:
        data = await raw(gateway, get())
        assert b"hello" in data
        assert not data.endswith(b"0\r\n\r\n")
        assert len(up.requests) == 1
        assert gateway.statuses()[0].failed == 1


async def test_streams_of_events_are_repeated_before_their_first_event_only():
    """With a vendor, an error in the first event is a failed try; after an event nothing is repeated."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    overloaded = (
        b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
    )
    delta = b'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"text":"hi"}}\n\n'

    def chunk(data):
        return b"%x\r\n%b\r\n" % (len(data), data)

    async with Upstream(head + chunk(overloaded) + b"0\r\n\r\n", head + chunk(delta) + b"0\r\n\r\n") as up:  # noqa: SIM117
        async with serving(http(up, vendor="anthropic")) as gateway:
            status, sent, body = await ask(gateway, "/v1/messages", method="POST", body=b"{}")
            assert (status, delta in body, len(up.requests)) == (200, True, 2)
            up.script, up.requests = [head + chunk(delta + overloaded) + b"0\r\n\r\n"], []
            _, sent, body = await ask(gateway, "/v1/messages", method="POST", body=b"{}")
            assert delta + overloaded in body
            assert len(up.requests) == 1
    assert dict(sent)[b"amends-tries"] == b"1"


async def test_a_stream_without_events_ends_whole():
    """A GET that waits for events is no failure when none come; anything else that stalls is."""

    async def stall(request, writer):
        writer.write(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: "
            + kind
            + b"\r\n\r\n2\r\na\n\r\n"
        )
        await writer.drain()
        await asyncio.sleep(3600)

    async with Upstream(stall) as up, serving(http(up, timeout=0.1)) as gateway:
        kind = b"text/event-stream"
        assert (await ask(gateway))[2].endswith(b"\r\n0\r\n\r\n")
        assert gateway.statuses()[0].failed == 0
        assert not (await ask(gateway, method="POST", body=b"x"))[2].endswith(b"0\r\n\r\n")
        kind = b"text/plain"
        assert not (await ask(gateway))[2].endswith(b"0\r\n\r\n")
        assert gateway.statuses()[0].failed == 2


async def test_one_upstream_does_not_affect_another():
    """While one hangs, refuses connections, sends garbage or floods, the other answers."""

    async def flood(request, writer):
        writer.write(b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000 + b"\r\n")
        return True

    async with Upstream("hang") as bad, Upstream(OK) as good:
        dead = http(
            bad, name="dead", prefix="/dead", url=f"http://127.0.0.1:{free_port()}", policy=Policy(attempts=1)
        )
        slow = http(bad, name="slow", prefix="/slow", timeout=0.2, policy=Policy(attempts=1))
        async with serving(slow, dead, http(good, prefix="/good")) as gateway:
            waiting = [asyncio.create_task(ask(gateway, "/slow/x")) for _ in range(20)]
            assert (await ask(gateway, "/dead/x"))[0] == 502
            for _ in range(5):
                assert (await ask(gateway, "/good/x"))[0] == 200
            assert {status for status, *_ in await asyncio.gather(*waiting)} == {504}
            bad.script = [flood]
            assert (await ask(gateway, "/slow/x"))[0] == 502
            assert (await ask(gateway, "/good/x"))[0] == 200


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET /\r\n\r\n", 400),
        (b"GET / HTTP/1.1\nhost: a\n\n", 400),
        (b"GET / HTTP/1.1\r\nhost : a\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nhost: a\r\nx: a\rb\r\n\r\n", 400),
        (
            b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        (
            b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n0\r\n\r\n",
            400,
        ),
        (b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd", 400),
        (b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: +3\r\n\r\nabc", 400),
        (b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\nabc\n0\n\n", 400),
        (b"GET /a/../b HTTP/1.1\r\nhost: a\r\n\r\n", 400),
        (b"GET /a/%2e%2E/b HTTP/1.1\r\nhost: a\r\n\r\n", 400),
        (b"GET /a/..;x/b HTTP/1.1\r\nhost: a\r\n\r\n", 400),
        (b"POST / HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"TRACE / HTTP/1.1\r\nhost: a\r\n\r\n", 405),
        (b"GET / HTTP/1.1\r\nhost: a\r\nx: " + b"y" * 70_000 + b"\r\n\r\n", 431),
        (b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2000000000\r\n\r\n", 413),
    ],
)
async def test_ambiguous_requests_are_refused(request_bytes, status):
    """Request smuggling, paths that leave the prefix, too large headers and bodies: the upstream sees nothing of it."""
    async with Upstream(OK) as up, serving(http(up)) as gateway:
        data = await raw(
            gateway, request_bytes.replace(b"host: a\r\n", b"host: a\r\nconnection: close\r\n", 1)
        )
        assert parts(data)[0] == status
        assert up.requests == []


async def test_trailers_do_not_become_headers():
    """They come after the headers were checked, here in the same packet."""
    body = b"2\r\nab\r\n0\r\nx-admin: 1\r\nauthorization: Bearer x\r\n\r\n"
    request = get("/", b"transfer-encoding: chunked") + body
    async with Upstream(OK) as up, serving(http(up, prefix="")) as gateway:
        assert parts(await raw(gateway, request.replace(b"GET", b"POST")))[0] == 200
        assert b"admin" not in up.requests[0]
        assert b"Bearer" not in up.requests[0]
        assert (await ask(gateway, "/_amendsx"))[0] == 200


@pytest.mark.parametrize(
    ("sent", "status", "tries"),
    [
        (b'HTTP/1.1 304 Not Modified\r\netag: "a"\r\ncontent-length: 100\r\n\r\n', 304, 1),
        (b"HTTP/1.1 999 Denied\r\ncontent-length: 0\r\n\r\n", 999, 3),
        (b"HTTP/1.1 099 Odd\r\ncontent-length: 0\r\n\r\n", 502, 3),
        (b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nraw", 502, 3),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 502, 3),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 200, 1),
    ],
)
async def test_unusual_answers(sent, status, tries, caplog):
    """
    Answers that are passed on or refused.

    Without a body but with a length; a status of the service's own, or one below 100; a protocol that was not asked for; a transfer coding that
    the gateway does not undo, so that the caller would get the coded body without its name.
    """
    async with Upstream(sent) as up, serving(http(up)) as gateway:
        found, _, _ = await ask(gateway)
    assert (found, len(up.requests)) == (status, tries)
    assert "Exception in ASGI" not in caplog.text


@pytest.mark.parametrize("kind", ["http", "mcp"])
@pytest.mark.parametrize("troubled", [False, True])
@pytest.mark.parametrize(
    ("length", "status", "limits"),
    [(700_000, 408, {"timeout": 0.2}), (None, 413, {"max_body": 500_000})],
)
async def test_a_streamed_body_that_fails_is_the_callers_failure(
    kind, troubled, length, status, limits, tmp_path
):
    """A body that stops or grows too large while it is sent on: refused, and no failed try of the upstream is recorded."""
    sized = b"transfer-encoding: chunked" if length is None else b"content-length: %d" % length
    piece = b"x" * 300_000
    async with Upstream(answer(503, b"", b"retry-after: 9")) as up:
        options = {"url": f"{up.url}/mcp", "kind": kind, "policy": Policy(attempts=1), **limits}
        with amends.record(f"sqlite:///{tmp_path}/r.db") as recorder:
            async with serving(http(up, **options)) as gateway:
                if troubled:
                    assert (await ask(gateway))[0] == 503
                reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
                writer.write(b"POST / HTTP/1.1\r\nhost: a\r\n%b\r\n\r\n" % sized)
                for _ in range(2):
                    writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if length is None else piece)
                    await writer.drain()
                    await asyncio.sleep(0.05)  # the first piece is streamed before the second comes
                async with asyncio.timeout(10):
                    data = await reader.read(-1)
                writer.close()
            recorder.flush()
            outcomes = [event.outcome for event in recorder.recent()]
    assert parts(data)[0] == status
    assert outcomes == ["refused", *["gave-up"] * troubled]


async def test_only_configured_upstreams_are_called():
    """Absolute-form targets, other hosts, redirects and unknown paths lead nowhere else."""
    async with Upstream(OK) as other, Upstream(OK) as up:
        async with serving(http(up, prefix="/shop")) as gateway:
            await raw(gateway, get(f"{other.url}/shop/x", b"x-forwarded-host: evil"))
            up.script = [answer(302, b"", b"location: " + other.url.encode())]
            status, sent, _ = await ask(gateway, "/shop/x")
            assert (status, dict(sent)[b"location"]) == (302, other.url.encode())
            assert (await ask(gateway, "/else"))[0] == 404
            assert (await ask(gateway, "/shopping"))[0] == 404
        assert other.requests == []
        assert len(up.requests) == 2


async def test_a_caller_that_leaves_ends_its_call():
    """The upstream's connection is closed, and later calls are not affected."""
    async with Upstream("hang") as up, serving(http(up)) as gateway:
        _, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(get())
        while not up.requests:
            await asyncio.sleep(0.001)
        writer.close()
        while gateway.in_flight:
            await asyncio.sleep(0.001)
        up.script = [OK]
        assert (await ask(gateway))[0] == 200


async def test_too_many_calls_at_once_are_refused_with_a_wait():
    """`concurrency` bounds what one upstream can hold."""
    async with Upstream("hang") as up, serving(http(up, concurrency=2)) as gateway:
        held = [asyncio.create_task(raw(gateway, get())) for _ in range(2)]
        while len(up.requests) < 2:
            await asyncio.sleep(0.001)
        status, sent, body = await ask(gateway)
        assert (status, dict(sent)[b"retry-after"], json.loads(body)["executed"]) == (503, b"1", "no")
        for task in held:
            task.cancel()
        await asyncio.gather(*held, return_exceptions=True)


async def test_translation_when_asked():
    """`translate = "problem"` and `"adcp"`."""
    failure = answer(503, b"<html>db.internal is down</html>", b"retry-after: 0")
    async with Upstream(failure) as up:
        async with serving(http(up, translate="problem")) as gateway:
            _, sent, body = await ask(gateway)
            assert dict(sent)[b"content-type"] == b"application/problem+json"
            assert json.loads(body)["status"] == 503
            assert b"db.internal" not in body
            up.script = [answer(503, PROBLEM, b"content-type: application/problem+json", b"retry-after: 0")]
            assert (await ask(gateway))[2] == PROBLEM
            up.script = [failure]
        async with serving(http(up, translate="adcp")) as gateway:
            _, _, body = await ask(gateway)
            assert json.loads(body)["adcp_error"]["code"] == "SERVICE_UNAVAILABLE"


async def test_failures_are_recorded_without_secrets(tmp_path):
    """Each try, the end, and refusals; no header, cookie or query is in the record."""
    with amends.record(f"sqlite:///{tmp_path}/failures.db") as recorder:
        async with (
            Upstream(answer(503, b'{"token":"sk-live-abcdefghijklmnopqrst"}', b"retry-after: 0"), OK) as up,
            serving(http(up)) as gateway,
        ):
            headers = (b"authorization: Bearer secret-1", b"cookie: session=secret-2")
            await ask(gateway, "/orders?api_key=secret-3", *headers)
            await ask(gateway, "/a/../b?api_key=secret-3", *headers)
        assert await asyncio.to_thread(recorder.flush)
        events = recorder.recent()
    assert [(event.where, event.outcome, event.upstream) for event in events] == [
        ("gateway", "refused", "shop"),
        ("gateway", "recovered", "shop"),
        ("gateway", "retry", "shop"),
    ]
    assert events[1].name == "GET /orders"
    assert "secret" not in repr(events)
    assert "sk-live" not in repr(events)
