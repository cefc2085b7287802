"""
Tests with HTTP clients that really fail: httpx, httpx2, requests, urllib3, aiohttp, urllib and http.client against
servers on the loopback.

The servers refuse, hang, reset, send something else than HTTP, or answer.
"""

import asyncio
import http.client
import ssl
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing as closed
from functools import partial
from types import ModuleType
from urllib.parse import urlsplit

import aiohttp
import httpx
import httpx2
import msgspec
import pytest
import requests
import urllib3

from amends import Fault, from_exception
from amends.core.enums import Recovery
from tests.foreign import servers
from tests.foreign.faults import facts
from tests.foreign.servers import HOST, serving

Call = Callable[[str, float], None]

# Shared by all tests: making a context takes longer than most of them.
TLS = ssl.create_default_context()


def _httpx(module: ModuleType) -> Call:
    def call(url: str, timeout: float) -> None:
        with module.Client(timeout=timeout, verify=TLS, trust_env=False) as client:
            client.post(url, content=b"x").raise_for_status()

    return call


def _httpx_async(module: ModuleType) -> Call:
    def call(url: str, timeout: float) -> None:
        async def post() -> None:
            async with module.AsyncClient(timeout=timeout, verify=TLS, trust_env=False) as client:
                (await client.post(url, content=b"x")).raise_for_status()

        asyncio.run(post())

    return call


def _requests(url: str, timeout: float) -> None:
    with requests.Session() as session:
        session.trust_env = False
        session.post(url, data=b"x", timeout=timeout).raise_for_status()


def _urllib3(url: str, timeout: float) -> None:
    with urllib3.PoolManager(ssl_context=TLS) as pool:
        response = pool.request("POST", url, body=b"x", timeout=timeout, retries=urllib3.Retry(0))
        if response.status >= 400:
            # urllib3 raises for no status, so this does it as its users do:
            raise requests.HTTPError(response=response)


def _aiohttp(url: str, timeout: float) -> None:
    async def post() -> None:
        limits = aiohttp.ClientTimeout(total=None, sock_connect=timeout, sock_read=timeout)
        async with aiohttp.ClientSession(timeout=limits, raise_for_status=True) as session:
            await (await session.post(url, data=b"x")).read()

    asyncio.run(post())


def _urllib(url: str, timeout: float) -> None:
    try:
        with urllib.request.urlopen(url, data=b"x", timeout=timeout, context=TLS) as response:
            response.read()
    except urllib.error.HTTPError as error:
        error.close()
        raise


def _http_client(url: str, timeout: float) -> None:
    parts = urlsplit(url)
    kind = partial(http.client.HTTPSConnection, context=TLS)
    kind = kind if parts.scheme == "https" else http.client.HTTPConnection
    with closed(kind(parts.hostname, parts.port, timeout=timeout)) as connection:
        connection.request("POST", parts.path, b"x")
        connection.getresponse().read()


CLIENTS: dict[str, Call] = {
    "httpx": _httpx(httpx),
    "httpx-async": _httpx_async(httpx),
    "httpx2": _httpx(httpx2),
    "httpx2-async": _httpx_async(httpx2),
    "requests": _requests,
    "urllib3": _urllib3,
    "aiohttp": _aiohttp,
    "urllib": _urllib,
    "http.client": _http_client,
}


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def secure_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    context = servers.certificate(tmp_path_factory.mktemp("tls"))
    with serving(servers.encrypted(context)) as port:
        yield port


def failed_fault(
    client: str, port: int, *, timeout: float = 5, scheme: str = "http", host: str = HOST
) -> Fault:
    """Return the fault of a call that fails, and assert that it shows neither the address nor the server's text."""
    with pytest.raises(BaseException) as caught:
        CLIENTS[client](f"{scheme}://{host}:{port}/acme/secret-path", timeout)
    fault = from_exception(caught.value)
    shown = msgspec.json.encode(fault)
    for leak in (HOST.encode(), str(port).encode(), b"secret-path", b"acme", b"invalid"):
        assert leak not in shown
    return fault


def test_a_refused_connection_sent_nothing(client: str) -> None:
    """M3: connection refused."""
    with servers.refused() as port:
        assert facts(failed_fault(client, port)) == ("SERVICE_UNAVAILABLE", "transient", "no")


def test_a_failed_name_resolution_sent_nothing(client: str) -> None:
    """M3: name resolution. Names below `.invalid` never exist (RFC 2606)."""
    fault = failed_fault(client, 80, host="billing.invalid")
    assert facts(fault) == ("SERVICE_UNAVAILABLE", "transient", "no")


def test_an_untrusted_certificate_is_terminal(client: str, secure_port: int) -> None:
    """M3: TLS failure, nothing was sent. Waiting does not make a certificate valid."""
    fault = failed_fault(client, secure_port, scheme="https")
    assert facts(fault) == ("SERVICE_UNAVAILABLE", "terminal", "no")
    assert fault.actor.value == "operator"


def test_a_failed_tls_handshake_sent_nothing(client: str) -> None:
    """M3: TLS failure. A handshake that failed for another reason may succeed later."""
    with serving(servers.not_speaking_http) as port:
        assert facts(failed_fault(client, port, scheme="https")) == ("SERVICE_UNAVAILABLE", "transient", "no")


def test_a_read_time_out_may_have_had_its_effect(client: str) -> None:
    """M3: read time-out."""
    with serving(servers.hanging) as port:
        assert facts(failed_fault(client, port, timeout=0.25)) == ("TIMEOUT", "transient", "maybe")


def test_a_connect_time_out_sent_nothing(client: str) -> None:
    """M3: connect time-out. urllib and http.client cannot distinguish it from a read time-out."""
    effect = "maybe" if client in {"urllib", "http.client"} else "no"
    with servers.unresponsive() as port:
        assert facts(failed_fault(client, port, timeout=0.15)) == ("TIMEOUT", "transient", effect)


@pytest.mark.parametrize(
    "behave", [servers.resetting, servers.closing, servers.truncating, servers.not_speaking_http]
)
def test_a_request_without_an_answer_may_have_had_its_effect(client: str, behave: servers.Behaviour) -> None:
    """M3: reset, a closed connection, a truncated response, a response that is not HTTP."""
    with serving(behave) as port:
        assert facts(failed_fault(client, port)) == ("SERVICE_UNAVAILABLE", "transient", "maybe")


ANSWERING = sorted(set(CLIENTS) - {"http.client"})


@pytest.mark.parametrize("client", ANSWERING)
def test_a_response_is_read_with_its_headers(client: str) -> None:
    """C3: the wait comes from the upstream's Retry-After."""
    with serving(servers.answering(429, {"Retry-After": "7"}, b"slow down, acme")) as port:
        fault = failed_fault(client, port)
    assert facts(fault) == ("RATE_LIMITED", "transient", "no")
    assert (fault.status, fault.retry_after) == (429, 7.0)


@pytest.mark.parametrize("client", ANSWERING)
def test_the_text_of_a_plain_response_is_not_shown(client: str) -> None:
    """A body that is no structured error is ignored."""
    with serving(servers.answering(500, body=b'{"error": "psycopg at db.acme.internal"}')) as port:
        fault = failed_fault(client, port)
    assert facts(fault) == ("INTERNAL_ERROR", "uncertain", "maybe")


@pytest.mark.parametrize("client", ["httpx", "httpx2", "requests", "urllib3"])
def test_a_problem_document_is_read(client: str) -> None:
    """It is read as `extract` reads it, with its origin."""
    body = msgspec.json.encode({"title": "Bad", "field": "/date", "suggestions": ["Send a date"]})
    with serving(servers.answering(422, {"Content-Type": "application/problem+json"}, body)) as port:
        fault = failed_fault(client, port)
    assert facts(fault) == ("VALIDATION_ERROR", "correctable", "no")
    assert (fault.field, fault.suggestions) == ("/date", ("Send a date",))
    assert fault.origin is not None
    assert fault.origin.path == "body"


def test_an_unread_body_is_not_waited_for() -> None:
    """The body of a streamed response never arrives; its status decides at once."""

    def behave(connection: servers.socket.socket) -> None:
        servers.read_request(connection)
        connection.sendall(b"HTTP/1.1 503 Busy\r\nContent-Length: 100\r\nRetry-After: 3\r\n\r\n")
        servers.hanging(connection)

    with serving(behave) as port, requests.get(f"http://{HOST}:{port}/", stream=True, timeout=60) as answer:
        with pytest.raises(requests.HTTPError) as caught:
            answer.raise_for_status()
        fault = from_exception(caught.value)
    assert (fault.status, fault.retry_after) == (503, 3.0)


@pytest.mark.parametrize("module", [httpx, httpx2])
def test_a_pool_time_out_sent_nothing(module: ModuleType) -> None:
    """M3: pool time-out. A response that is still being read holds the only connection."""
    limits = module.Limits(max_connections=1)
    with (
        serving(servers.truncating) as port,
        module.Client(limits=limits, timeout=0.2, verify=TLS, trust_env=False) as client,
        client.stream("GET", f"http://{HOST}:{port}/"),
        pytest.raises(module.PoolTimeout) as caught,
    ):
        client.get(f"http://{HOST}:{port}/")
    assert facts(from_exception(caught.value)) == ("TIMEOUT", "transient", "no")


def test_a_pool_time_out_of_urllib3_sent_nothing() -> None:
    """M3: pool time-out."""
    with (
        serving(servers.hanging) as port,
        urllib3.HTTPConnectionPool(HOST, port, maxsize=1, block=True) as pool,
    ):
        taken = pool._get_conn()
        with pytest.raises(urllib3.exceptions.EmptyPoolError) as caught:
            pool.request("GET", "/", pool_timeout=0.1)
        taken.close()
    assert facts(from_exception(caught.value)) == ("SERVICE_UNAVAILABLE", "transient", "no")


def test_a_proxy_that_does_not_open_the_tunnel_sent_nothing() -> None:
    """The response is the proxy's: the request itself was never sent, whatever the status."""
    with serving(servers.answering(503)) as proxy:
        for module in (httpx, httpx2):
            with (
                module.Client(proxy=f"http://{HOST}:{proxy}", timeout=5) as client,
                pytest.raises(module.ProxyError) as caught,
            ):
                client.post("https://billing.invalid/")
            assert facts(from_exception(caught.value)) == ("SERVICE_UNAVAILABLE", "transient", "no")

        async def post() -> None:
            async with aiohttp.ClientSession() as session:
                await session.post("https://billing.invalid/", proxy=f"http://{HOST}:{proxy}")

        with pytest.raises(aiohttp.ClientHttpProxyError) as refused:
            asyncio.run(post())
    fault = from_exception(refused.value)
    assert (*facts(fault), fault.status) == ("SERVICE_UNAVAILABLE", "transient", "no", 503)


BAD_REQUESTS: dict[str, Callable[[], object]] = {
    "httpx scheme": lambda: httpx.get("gopher://x"),
    "httpx url": lambda: httpx.get("http://x:port"),
    "httpx2 scheme": lambda: httpx2.get("gopher://x"),
    "requests scheme": lambda: requests.get("gopher://x"),
    "requests schema": lambda: requests.get("x"),
    "requests url": lambda: requests.get("http://"),
    "requests header": lambda: requests.get("http://x.invalid", headers={"a": "b\nc"}),
    "urllib3 url": lambda: urllib3.PoolManager().request("GET", "http://[x"),
    "http.client url": lambda: http.client.HTTPConnection("x").putrequest("GET", "a b"),
}


@pytest.mark.parametrize("call", BAD_REQUESTS.values(), ids=BAD_REQUESTS)
def test_an_invalid_request_is_correctable(call: Callable[[], object]) -> None:
    """An invalid address or header is refused before anything is sent."""
    with pytest.raises(Exception) as caught:
        call()
    assert facts(from_exception(caught.value)) == ("VALIDATION_ERROR", "correctable", "no")


def test_aiohttp_status_without_headers() -> None:
    """aiohttp allows headers to be None; the status is read all the same."""
    info = aiohttp.RequestInfo(None, "GET", None, None)  # type: ignore[arg-type]
    fault = from_exception(aiohttp.ClientResponseError(info, (), status=404))
    assert facts(fault) == ("NOT_FOUND", "correctable", "no")


def test_the_class_decides_if_the_response_is_no_failure() -> None:
    """A redirect loop has a response with status 302, and its effect is unknown."""
    with serving(servers.answering(302, {"Location": "/again"})) as port:
        for client in ("httpx", "requests"):
            get = httpx.Client(follow_redirects=True).get if client == "httpx" else requests.get
            with pytest.raises(Exception) as caught:
                get(f"http://{HOST}:{port}/")
            fault = from_exception(caught.value)
            assert (fault.code, fault.recovery) == ("INTERNAL_ERROR", Recovery.UNCERTAIN)
