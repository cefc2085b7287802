"""Bodies: large, streamed, slow and broken ones, of failed and of successful answers."""

import asyncio
import copy
import gzip
import pickle
import threading
import time

import aiohttp
import httpx
import httpx2
import pytest
import requests

from amends import FaultError, Policy, Upstream
from amends.bindings.aiohttp import recovering
from amends.bindings.httpx import AsyncTransport, Transport
from amends.bindings.requests import Adapter
from amends.errors import RateLimitedError, ServiceUnavailableError, ValidationError
from amends.testing import FakeClock
from tests.bindings.clients import client  # noqa: F401 - a fixture
from tests.http.raw_server import answer, drip, raw_server

LARGE = (b"x" * 999 + b"\n") * 3000
CUT = answer(200, b"half", length=1000, close=True)
BUSY = 60.0
"""Seconds that a busy machine may take. Without our bounds, the slow servers of these tests never end."""


# Failed answers that are returned -----------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [httpx2, httpx])
def test_retried_large_failures_leave_no_connection_open_in_httpx(module, clock):
    """`raises="nothing"` with a pool of one connection: large failures are repeated, and the last is returned whole."""
    limits = module.Limits(max_connections=1)
    with raw_server(answer(503, LARGE)) as server:
        transport = Transport(
            module.HTTPTransport(limits=limits), raises="nothing", policy=Policy(attempts=3)
        )
        with module.Client(transport=transport, timeout=3) as session:
            for _ in range(2):
                assert len(session.get(server.url).content) == len(LARGE)
            with session.stream("GET", server.url) as response:
                assert sum(len(part) for part in response.iter_bytes()) == len(LARGE)
            assert session.get(server.url).status_code == 503
        assert len(server.requests) == 12


@pytest.mark.parametrize("module", [httpx2, httpx])
async def test_retried_large_failures_leave_no_connection_open_in_async_httpx(module, clock):
    """The same for async clients."""
    limits = module.Limits(max_connections=1)
    with raw_server(answer(503, LARGE)) as server:
        inner = module.AsyncHTTPTransport(limits=limits)
        transport = AsyncTransport(inner, raises="nothing", policy=Policy(attempts=3))
        async with module.AsyncClient(transport=transport, timeout=3) as session:
            for _ in range(2):
                assert len((await session.get(server.url)).content) == len(LARGE)
            async with session.stream("GET", server.url) as response:
                assert len([part async for part in response.aiter_bytes()]) > 1
            assert (await session.get(server.url)).status_code == 503


def test_retried_large_failures_leave_no_connection_open_in_requests(clock):
    """A blocking pool of one connection does not hang, streamed or not."""
    done = threading.Event()

    def work(server):
        with requests.Session() as session:
            options = {"pool_maxsize": 1, "pool_block": True}
            session.mount("http://", Adapter(raises="nothing", policy=Policy(attempts=3), **options))
            for stream in (True, False, True):
                with session.get(server.url, stream=stream, timeout=3) as response:
                    found = response.content
                    assert len(found) == len(LARGE) if stream else len(found) > 1_000_000
            done.set()

    with raw_server(answer(503, LARGE)) as server:
        threading.Thread(target=work, args=(server,), daemon=True).start()
        assert done.wait(30)


async def size(content, way):
    """Read the content of an aiohttp response in one of its ways, and return its size."""
    if way == "readexactly":
        return len(await content.readexactly(len(LARGE)))
    if way == "iter_chunks":
        return sum([len(part) async for part, _ in content.iter_chunks()])
    ways = {"lines": lambda: content, "iter_chunked": lambda: content.iter_chunked(70_000)}
    return sum([len(part) async for part in ways.get(way, content.iter_any)()])


async def test_retried_large_failures_leave_no_connection_open_in_aiohttp(clock):
    """A connector of one connection does not hang."""
    with raw_server(answer(503, LARGE)) as server:
        middlewares = [recovering(raises="nothing", policy=Policy(attempts=3))]
        connector = aiohttp.TCPConnector(limit=1)
        timeout = aiohttp.ClientTimeout(total=30)
        async with aiohttp.ClientSession(
            connector=connector, middlewares=middlewares, timeout=timeout
        ) as session:
            for _ in range(3):
                async with session.get(server.url) as response:
                    assert response.status == 503
                    assert len(await response.read()) == len(LARGE)
            for way in ("iter_chunked", "iter_any", "iter_chunks", "lines", "readexactly"):
                async with session.get(server.url) as response:
                    assert await size(response.content, way) == len(LARGE)


# Failed answers that break off --------------------------------------------------------------------------------------


def test_a_failure_that_breaks_off_keeps_its_status(client, clock):  # noqa: F811
    """An error body that breaks off: status and headers count, so a 422 is sent once and a 429 waits as asked."""
    problem = b'{"status": 422, "detail": "'
    with raw_server(answer(422, problem, length=5000, close=True)) as server:
        with pytest.raises(ValidationError) as caught:
            client.call("GET", server.url)
        assert len(server.requests) == 1
        assert caught.value.fault.status == 422
    with raw_server(answer(429, b"slow", {"Retry-After": "7"}, length=5000, close=True)) as server:
        with pytest.raises(RateLimitedError) as caught:
            client.call("GET", server.url, options={"policy": Policy(attempts=2)})
        assert (caught.value.fault.retry_after, clock.waits) == (7, [7])


def test_a_broken_compressed_failure_keeps_its_headers(client, clock):  # noqa: F811
    """A compressed error body that breaks off, or is not compressed at all, keeps Retry-After."""
    packed = gzip.compress(b"x" * 1000)[:-10]
    for body in (packed, b"plain"):
        headers = {"Retry-After": "7", "Content-Encoding": "gzip"}
        with raw_server(answer(503, body, headers)) as server:
            with pytest.raises(ServiceUnavailableError) as caught:
                client.call("GET", server.url, options={"policy": Policy(attempts=1)})
            assert caught.value.fault.retry_after == 7


def test_a_slow_failure_is_not_read_for_long(client, monkeypatch):  # noqa: F811
    """An error body that arrives too slowly is not waited for: the status decides."""
    monkeypatch.setattr("amends.http.call_bodies.SECONDS", 0.3)
    with raw_server(drip(404)) as server:
        started = time.monotonic()
        with pytest.raises(FaultError) as caught:
            client.call("GET", server.url)
        assert caught.value.fault.status == 404
        assert time.monotonic() - started < BUSY


# Successful answers that break off ----------------------------------------------------------------------------------


def test_a_success_that_breaks_off_is_repeated_if_that_is_safe(client, clock):  # noqa: F811
    """The whole body was asked for: a GET is sent again and its body is complete; the Upstream counts a failure."""
    upstream = Upstream("shop")
    with raw_server(CUT, answer(200, b"whole")) as server:
        reply = client.call("GET", server.url, options={"upstream": upstream})
        assert (reply.status, reply.body, len(server.requests)) == (200, b"whole", 2)
    assert upstream.snapshot().failing > 0


def test_a_success_that_breaks_off_is_typed_if_a_repeat_is_not_safe(client, clock):  # noqa: F811
    """A POST to an unknown service is not repeated: a typed error with the decision `verify`."""
    with raw_server(CUT, answer(200, b"whole")) as server:
        with pytest.raises(FaultError) as caught:
            client.call("POST", server.url, json={})
        assert caught.value.decision.action == "verify"
        assert len(server.requests) == 1
        assert isinstance(caught.value.__cause__, Exception)


def test_breaks_are_bounded_by_the_attempts(client, clock):  # noqa: F811
    """A body that always breaks off is asked for as often as the policy allows, and counted in the fault."""
    with raw_server(CUT) as server:
        with pytest.raises(FaultError) as caught:
            client.call("GET", server.url, options={"policy": Policy(attempts=3)})
        assert len(server.requests) == 3
        assert caught.value.fault.attempt == 3


@pytest.mark.parametrize("raises", ["original", "nothing"])
def test_a_break_as_the_librarys_own_exception(client, clock, raises):  # noqa: F811
    """With `raises` "original" or "nothing" the library's exception is raised when the attempts are used up."""
    kinds = (httpx2.TransportError, httpx.TransportError, requests.RequestException, aiohttp.ClientError)
    with raw_server(CUT) as server:
        with pytest.raises(kinds) as caught:
            client.call("GET", server.url, options={"policy": Policy(attempts=2), "raises": raises})
        assert hasattr(caught.value, "fault") == (raises == "original")


@pytest.mark.parametrize("module", [httpx2, httpx])
def test_a_streamed_success_that_breaks_off_is_typed_in_httpx(module, clock):
    """The body was asked for in parts: nothing is repeated, the error is typed, and the Upstream counts a failure."""
    upstream = Upstream("shop")
    with raw_server(CUT) as server, module.Client(transport=Transport(upstream=upstream)) as session:
        with pytest.raises(FaultError) as caught, session.stream("GET", server.url) as response:
            for _ in response.iter_bytes():
                pass
        assert isinstance(caught.value.__cause__, module.RemoteProtocolError)
        assert caught.value.decision.action == "retry"
        assert len(server.requests) == 1
    assert upstream.snapshot().failing > 0


def test_a_streamed_success_that_breaks_off_is_typed_in_requests(clock):
    """The same for requests."""
    upstream = Upstream("shop")
    with raw_server(CUT) as server, requests.Session() as session:
        session.mount("http://", Adapter(upstream=upstream))
        with pytest.raises(FaultError) as caught, session.get(server.url, stream=True) as response:
            for _ in response.iter_content(10):
                pass
        assert isinstance(caught.value.__cause__, requests.RequestException)
        assert len(server.requests) == 1
    assert upstream.snapshot().failing > 0


@pytest.mark.parametrize(
    "way", ["iter_chunked", "iter_any", "iter_chunks", "readline", "readexactly", "lines"]
)
async def test_a_streamed_success_that_breaks_off_is_typed_in_aiohttp(clock, way):
    """The same for aiohttp, however the content is read."""
    upstream = Upstream("shop")
    with raw_server(CUT) as server:
        async with aiohttp.ClientSession(middlewares=[recovering(upstream=upstream)]) as session:
            with pytest.raises(FaultError):
                async with session.get(server.url) as response:
                    content = response.content
                    if way in {"readline", "readexactly"}:
                        await (content.readline() if way == "readline" else content.readexactly(500))
                    else:
                        ways = {"lines": lambda: content, "iter_chunked": lambda: content.iter_chunked(10)}
                        async for _ in ways.get(way, getattr(content, way, None))():
                            pass
        assert len(server.requests) == 1
    assert upstream.snapshot().failing > 0


def test_compressed_bodies_are_recovered(client, clock):  # noqa: F811
    """A compressed body that breaks off is decompressed from its beginning after the repeat."""
    packed = gzip.compress(b"y" * 100_000)
    headers = {"Content-Encoding": "gzip"}
    cut = answer(200, packed[:50], headers, length=len(packed), close=True)
    with raw_server(cut, answer(200, packed, headers)) as server:
        assert client.call("GET", server.url).body == b"y" * 100_000


CORRUPT = answer(200, b"not compressed", {"Content-Encoding": "gzip"}, close=True)


def test_a_success_that_cannot_be_decompressed_is_repeated_if_that_is_safe(client, clock):  # noqa: F811
    """A GET whose compressed body is corrupt is sent again, as often as the policy allows, then the error is typed."""
    with raw_server(CORRUPT, answer(200, b"whole")) as server:
        assert client.call("GET", server.url).body == b"whole"
        assert len(server.requests) == 2
    upstream = Upstream("shop")
    with raw_server(CORRUPT) as server:
        with pytest.raises(FaultError) as caught:
            client.call("GET", server.url, options={"policy": Policy(attempts=2), "upstream": upstream})
        assert (len(server.requests), caught.value.fault.attempt) == (2, 2)
    assert upstream.snapshot().failing > 0


def test_a_corrupt_success_is_typed_if_a_repeat_is_not_safe(client, clock):  # noqa: F811
    """The service has answered a POST, so only its effect is known to be possible: the decision is `verify`."""
    with raw_server(CORRUPT, answer(200, b"whole")) as server:
        with pytest.raises(FaultError) as caught:
            client.call("POST", server.url, json={})
        assert (caught.value.decision.action, len(server.requests)) == ("verify", 1)


@pytest.mark.parametrize("raises", ["original", "nothing"])
def test_a_corrupt_success_as_the_librarys_own_exception(client, clock, raises):  # noqa: F811
    """With `raises` "original" or "nothing" the library's exception is raised when the attempts are used up."""
    kinds = (
        httpx2.DecodingError,
        httpx.DecodingError,
        requests.exceptions.ContentDecodingError,
        aiohttp.ClientPayloadError,
    )
    with raw_server(CORRUPT) as server:
        with pytest.raises(kinds) as caught:
            client.call("GET", server.url, options={"policy": Policy(attempts=2), "raises": raises})
        assert hasattr(caught.value, "fault") == (raises == "original")
        assert len(server.requests) == 2


@pytest.mark.parametrize("module", [httpx2, httpx])
@pytest.mark.parametrize("way", ["iter_bytes", "iter_text", "iter_lines", "read"])
def test_a_streamed_success_that_cannot_be_decompressed_is_typed_in_httpx(module, way, clock):
    """The error is typed, and the Upstream counts a failure. Only `read`, which asks for the whole body, is repeated."""

    def read(options):
        with (
            module.Client(transport=Transport(**options)) as session,
            session.stream("GET", server.url) as response,
        ):
            list(getattr(response, way)())

    async def aread(options):
        async with (
            module.AsyncClient(transport=AsyncTransport(**options)) as session,
            session.stream("GET", server.url) as response,
        ):
            if way == "read":
                await response.aread()
            else:
                assert [part async for part in getattr(response, f"a{way}")()] == []

    for run in (read, lambda options: asyncio.run(aread(options))):
        upstream = Upstream("shop")
        with raw_server(CORRUPT) as server, pytest.raises(FaultError) as caught:
            run({"upstream": upstream, "policy": Policy(attempts=2)})
        assert isinstance(caught.value.__cause__, module.DecodingError)
        assert len(server.requests) == (2 if way == "read" else 1)
        assert upstream.snapshot().failing > 0


# Deadlines ----------------------------------------------------------------------------------------------------------


def test_a_deadline_ends_a_slow_body(client):  # noqa: F811
    """A body that is still arriving at the deadline is ended with a typed error."""
    with raw_server(drip()) as server:
        started = time.monotonic()
        with pytest.raises(FaultError) as caught:
            client.call("GET", server.url, options={"policy": Policy(deadline=0.6)})
        assert caught.value.code == "TIMEOUT"
        assert time.monotonic() - started < BUSY
        assert len(server.requests) == 1


def stall(status=200, parts=0, close=False):
    """Send the headers and some parts of a body, then nothing more."""

    def send(server, connection):
        connection.sendall(
            answer(status, b"", {"Connection": "close"} if close else None, length=1024 * 1024)
        )
        for _ in range(parts):
            server.stop.wait(0.05)
            connection.sendall(b"x")
        server.stop.wait()

    return send


@pytest.mark.parametrize("parts", [0, 3])
def test_a_deadline_ends_a_body_that_stalls(client, parts):  # noqa: F811
    """The client's own time-out is far longer, or there is none."""
    for timeout in (10 * BUSY, None):
        with raw_server(stall(parts=parts)) as server:
            started = time.monotonic()
            with pytest.raises(FaultError) as caught:
                client.call("GET", server.url, timeout=timeout, options={"policy": Policy(deadline=0.6)})
            assert caught.value.code == "TIMEOUT"
            assert time.monotonic() - started < BUSY
            assert len(server.requests) == 1


def test_a_failure_that_stalls_is_not_read_for_long(client, monkeypatch):  # noqa: F811
    """An error body that stops arriving is not waited for, without a deadline and with a long time-out of the client's."""
    monkeypatch.setattr("amends.http.call_bodies.SECONDS", 0.3)
    # urllib3 hides the socket of a connection that the server will close.
    for close in (False,) if client.name == "requests" else (False, True):
        with raw_server(stall(404, close=close)) as server:
            started = time.monotonic()
            with pytest.raises(FaultError) as caught:
                client.call("GET", server.url, timeout=10 * BUSY)
            assert caught.value.fault.status == 404
            assert time.monotonic() - started < BUSY


@pytest.mark.parametrize("streamed", ["httpx2", "httpx", "requests"])
def test_a_deadline_ends_a_streamed_body_that_stalls(streamed):
    """The same while the caller reads a stream."""
    policy = Policy(deadline=0.6)
    with raw_server(stall(parts=3)) as server:
        started = time.monotonic()
        with pytest.raises(FaultError) as caught:
            if streamed == "requests":
                with requests.Session() as session:
                    session.mount("http://", Adapter(policy=policy))
                    for _ in session.get(server.url, stream=True).iter_content(1):
                        pass
            else:
                module = {"httpx2": httpx2, "httpx": httpx}[streamed]
                with (
                    module.Client(transport=Transport(policy=policy), timeout=None) as session,
                    session.stream("GET", server.url) as response,
                ):
                    for _ in response.iter_raw():
                        pass
        assert caught.value.code == "TIMEOUT"
        assert time.monotonic() - started < BUSY


def test_a_deadline_does_not_hinder_a_body_that_arrives(client):  # noqa: F811
    """A body that arrives within the deadline is returned."""
    with raw_server(answer(200, LARGE)) as server:
        reply = client.call("GET", server.url, options={"policy": Policy(deadline=30)})
        assert len(reply.body) == len(LARGE)


# Sessions -----------------------------------------------------------------------------------------------------------


def test_a_session_of_requests_can_be_copied_and_pickled(clock):
    """A Session with our adapter survives pickle and deepcopy with its options; a copy shares the Upstream."""
    upstream = Upstream("shop", keyed=True)
    session = requests.Session()
    session.mount("http://", Adapter(policy=Policy(attempts=2), upstream=upstream))
    copied, loaded = copy.deepcopy(session), pickle.loads(pickle.dumps(session))
    for other in (copied, loaded):
        with raw_server(answer(503, headers={"Retry-After": "1"}), answer(200, b"fine")) as server:
            assert other.post(server.url).content == b"fine"
            assert len({request[2]["idempotency-key"] for request in server.requests}) == 1
    assert upstream.snapshot().calls == 2


def test_the_time_to_come_back_is_what_was_asked():
    """`resume_in` is the whole wait that the server asked for, although no call waits longer than an hour."""
    with FakeClock(), raw_server(answer(429, headers={"Retry-After": "86400"})) as server:
        with httpx2.Client(transport=Transport()) as session, pytest.raises(RateLimitedError) as caught:
            session.get(server.url)
        assert caught.value.decision.resume_in == 86_400


@pytest.mark.parametrize("module", [httpx2, httpx])
def test_the_connection_of_a_watched_stream_is_given_back(module):
    """A stream of a model that is closed before its end closes what it is read from."""
    closed = []

    class Source(module.SyncByteStream):
        def __iter__(self):
            yield b'data: {"choices": [{"delta": {"content": "hi"}}]}\n\n'
            yield b'data: {"choices": [{"delta": {"content": "there"}}]}\n\n'

        def close(self):
            closed.append(True)

    headers = {"content-type": "text/event-stream"}
    inner = module.MockTransport(lambda _: module.Response(200, headers=headers, stream=Source()))
    with module.Client(transport=Transport(inner, vendor="openai")) as session:
        url = "https://api.openai.com/v1/chat/completions"
        with session.stream("POST", url, json={}) as response:
            parts = response.iter_bytes()
            assert b"hi" in next(parts)
            assert not closed
        assert closed
