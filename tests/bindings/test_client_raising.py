"""What clients raise, the traceparent they send, environment proxies, and mistakes of the caller."""

import asyncio
import pickle
import re
from urllib.parse import urlsplit

import aiohttp
import httpx
import httpx2
import pytest
import requests
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from amends import FaultError, Operation, Policy, Upstream, recover
from amends.bindings.aiohttp import recovering
from amends.bindings.httpx import AsyncTransport, Transport
from amends.bindings.requests import Adapter
from tests.bindings.clients import CLIENTS, client  # noqa: F401 - a fixture
from tests.http.raw_server import answer, raw_server

PROBLEM = b'{"status": 422, "title": "No", "detail": "amount", "suggestions": ["Add it"]}'
TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


# raises= ------------------------------------------------------------------------------------------------------------


def test_the_librarys_own_exception_with_the_fault(client, clock):  # noqa: F811
    """`raises="original"`: `except HTTPStatusError` keeps working; fault, decision, history and a note are attached."""
    problem = answer(422, PROBLEM, {"Content-Type": "application/problem+json"})
    with raw_server(problem) as server, pytest.raises(client.status_error) as caught:
        client.call("GET", server.url, options={"raises": "original"})
    error = caught.value
    assert (error.fault.suggestions, error.decision.action, len(error.history)) == (("Add it",), "fix", 1)
    assert any("VALIDATION_ERROR" in note for note in error.__notes__)
    status = getattr(error, "status", None) or error.response.status_code
    assert status == 422


def test_the_librarys_own_connection_error_with_the_fault(client, clock):  # noqa: F811
    """A connection error is the library's own, after all attempts, with the fault attached."""
    options = {"raises": "original", "policy": Policy(attempts=2)}
    with pytest.raises(client.connection_error) as caught:
        client.call("GET", "http://127.0.0.1:9/", options=options)
    assert len(caught.value.history) == 2
    assert caught.value.fault.executed == "no"


def test_nothing_is_raised(client, clock):  # noqa: F811
    """`raises="nothing"`: the last response is returned after recovery."""
    with raw_server(answer(503, b"later")) as server:
        options = {"raises": "nothing", "policy": Policy(attempts=2)}
        reply = client.call("GET", server.url, options=options)
        assert (reply.status, reply.body, len(server.requests)) == (503, b"later", 2)


def test_a_call_that_was_not_sent_has_no_exception_of_the_library(client, clock):  # noqa: F811
    """An Upstream that holds all calls back raises our typed error, whatever `raises` says."""
    upstream = Upstream("shop")
    with raw_server(answer(429, headers={"Retry-After": "3000"})) as server:
        options = {"raises": "original", "upstream": upstream}
        with pytest.raises(client.status_error):
            client.call("GET", server.url, options=dict(options))
        with pytest.raises(FaultError) as caught:
            client.call("GET", server.url, options=dict(options))
        assert caught.value.decision.reason == "wait-too-long"
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    "asked", ["301", "99999999999", "Fri, 31 Dec 9999 23:59:59 GMT", "9" * 40, "9223372036854775807"]
)
def test_too_long_a_wait_ends_the_call(client, clock, asked):  # noqa: F811
    """A `Retry-After` above the waiting time ends the call after one request, however far above it is."""
    with raw_server(answer(503, headers={"Retry-After": asked})) as server:
        with pytest.raises(FaultError) as caught:
            client.call("GET", server.url)
        assert (caught.value.decision.reason, len(server.requests)) == ("wait-too-long", 1)


# traceparent --------------------------------------------------------------------------------------------------------


def test_one_trace_for_all_attempts(client, clock):  # noqa: F811
    """Every attempt carries a traceparent: the same trace, a new span each; another operation has another trace."""
    with raw_server(answer(429), answer(200), answer(200)) as server:
        client.call("GET", server.url)
        client.call("GET", server.url)
        found = [TRACEPARENT.fullmatch(request[2]["traceparent"]).groups() for request in server.requests]
    assert found[0][0] == found[1][0] != found[2][0]
    assert len({span for _, span, _ in found}) == 3


def test_the_callers_traceparent_stays(client):  # noqa: F811
    """A traceparent that the caller set is not replaced."""
    mine = f"00-{'a' * 32}-{'b' * 16}-00"
    with raw_server() as server:
        client.call("GET", server.url, headers={"traceparent": mine})
        assert server.requests[0][2]["traceparent"] == mine


def test_the_current_span_is_named():
    """Within an OpenTelemetry span the traceparent names that span and its sampling decision."""
    tracer = TracerProvider().get_tracer("test")
    with raw_server() as server, httpx2.Client(transport=Transport()) as session:
        with tracer.start_as_current_span("work"):
            context = trace.get_current_span().get_span_context()
            session.get(server.url)
        expected = f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
        assert server.requests[0][2]["traceparent"] == expected


# Proxies ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def proxy(monkeypatch):
    """A proxy that answers itself, named by the environment."""
    with raw_server(answer(200, b"from the proxy")) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("http_proxy", server.url)
        yield server


@pytest.mark.parametrize(
    "client", [each for each in CLIENTS if each.name != "aiohttp"], ids=lambda each: each.name
)
def test_proxies_of_the_environment_are_used(proxy, monkeypatch, client):  # noqa: F811
    """HTTP_PROXY is used although a transport is given, with or without a scheme, and NO_PROXY is respected."""
    if client.name == "httpx2":
        monkeypatch.setenv("http_proxy", urlsplit(proxy.url).netloc)
    reply = client.call("GET", "http://shop.example/a")
    assert reply.body == b"from the proxy"
    assert proxy.requests[0][1] == "http://shop.example/a"
    with raw_server(answer(200, b"direct")) as server:
        for hosts in ("127.0.0.1", "shop.example,127.0.0.1", "*"):
            monkeypatch.setenv("no_proxy", hosts)
            assert client.call("GET", server.url).body == b"direct"
    assert len(proxy.requests) == 1


async def test_proxies_of_the_environment_in_aiohttp(proxy):
    """`ClientSession(trust_env=True)` sends through the proxy."""
    async with aiohttp.ClientSession(middlewares=[recovering()], trust_env=True) as session:
        assert await (await session.get("http://shop.example/a")).read() == b"from the proxy"


def test_a_transport_of_the_caller_uses_no_proxy(proxy):
    """A transport that the caller made is used as it is."""
    transport = Transport(httpx2.HTTPTransport())
    with raw_server(answer(200, b"direct")) as server, httpx2.Client(transport=transport) as session:
        assert session.get(server.url).content == b"direct"
    assert not proxy.requests


# Mistakes -----------------------------------------------------------------------------------------------------------


def test_a_bad_header_value_is_raised_at_once_as_it_is(client):  # noqa: F811
    """A header value with a line break raises the library's own exception, once, and the Upstream counts nothing."""
    upstream = Upstream("shop")
    kinds = (httpx2.LocalProtocolError, httpx.LocalProtocolError, ValueError)
    with raw_server() as server, pytest.raises(kinds) as caught:
        client.call("GET", server.url, options={"upstream": upstream, "headers": lambda: {"X-A": "a\nb: c"}})
    assert not isinstance(caught.value, FaultError)
    assert not server.requests
    assert upstream.snapshot().failing == 0


def test_an_error_in_the_callers_function_is_raised_as_it_is(client):  # noqa: F811
    """A mistake in a function that the caller gave is raised as it is."""
    token = {}
    with raw_server() as server, pytest.raises(KeyError):
        client.call("GET", server.url, options={"headers": lambda: {"Authorization": token["value"]}})


def test_mixed_transports_are_raised_as_they_are():
    """A sync transport in an async client, and a transport of the other library: the first call says so."""

    async def run():
        async with httpx2.AsyncClient(transport=AsyncTransport(httpx2.HTTPTransport())) as session:
            await session.get("http://127.0.0.1:9/")

    with pytest.raises(AttributeError):
        asyncio.run(run())
    with httpx.Client(transport=Transport(httpx2.HTTPTransport())) as session, pytest.raises(AssertionError):
        session.get("http://127.0.0.1:9/")


@pytest.mark.parametrize("module", [httpx2, httpx])
def test_an_address_without_a_scheme(module):
    """An address that cannot be called is refused at once by the library."""
    with module.Client(transport=Transport()) as session, pytest.raises(module.UnsupportedProtocol):
        session.get("shop.example/a")
    with requests.Session() as session:
        session.mount("http://", Adapter())
        with pytest.raises(requests.exceptions.MissingSchema):
            session.get("shop.example/a")


def test_a_deadline_of_the_operation_around_still_counts(client, clock):  # noqa: F811
    """A deadline around the call reaches the request."""
    with raw_server() as server:
        recover(
            lambda: client.call("GET", server.url),
            operation=Operation(read_only=True),
            policy=Policy(deadline=9),
        )
        assert 0 < float(server.requests[0][2]["request-timeout"]) <= 9


def test_errors_can_be_pickled(client, clock):  # noqa: F811
    """An error goes through a process pool with its fault, decision and history, whatever the library's response is."""
    with (
        raw_server(answer(429, b"", {"Retry-After": "86400"})) as server,
        pytest.raises(FaultError) as raised,
    ):
        client.call("GET", server.url)
    copied = pickle.loads(pickle.dumps(raised.value))
    assert (copied.fault, copied.decision) == (raised.value.fault, raised.value.decision)
    assert len(copied.history) == 1
    assert any("a call can succeed in 86400 s" in note for note in raised.value.__notes__)
