"""Our clients with the libraries that answer requests in tests: respx, pytest-httpx, VCR, responses and others."""

from contextlib import contextmanager, nullcontext

import aiohttp
import httpx
import httpx2
import pytest
import requests

from amends.bindings.aiohttp import recovering
from amends.bindings.requests import Adapter
from amends.errors import NotFoundError
from tests.bindings.test_client_memory import KINDS, URL, call
from tests.http.raw_server import answer, raw_server

pytest.importorskip("pytest_httpx")
pytest.importorskip("pytest_httpx2")
requests_mock = pytest.importorskip("requests_mock")
responses = pytest.importorskip("responses")
respx = pytest.importorskip("respx")
vcr = pytest.importorskip("vcr")
aioresponses = pytest.importorskip("aioresponses").aioresponses


@KINDS
def test_respx(kind, clock):
    """respx as an inner transport, and its default, which patches httpcore below the library's own transport."""
    for patched in (False, True):
        with respx.mock() if patched else nullcontext(respx.MockRouter()) as router:
            handler = router.handler if kind == "sync" else router.async_handler
            inner = None if patched else httpx.MockTransport(handler)
            outcomes = [httpx.Response(503), httpx.ConnectError, httpx.Response(200, json={"trains": 3})]
            route = router.get(URL).mock(side_effect=outcomes)
            assert call(httpx, kind, inner).json() == {"trains": 3}
            assert route.call_count == len(outcomes)
            router.get(URL).mock(return_value=httpx.Response(404, json={"detail": "gone"}))
            with pytest.raises(NotFoundError) as caught:
                call(httpx, kind, inner)
            assert caught.value.response.json() == {"detail": "gone"}


@KINDS
def test_respx_instead_of_transports(kind, clock):
    """`using="httpx"` replaces a client's transport, ours too: its answers come as they are."""
    with respx.mock(using="httpx") as router:
        router.get(URL).mock(side_effect=[httpx.Response(503), httpx.Response(200, json={"trains": 3})])
        assert call(httpx, kind, None).status_code == 503
        assert call(httpx, kind, None).json() == {"trains": 3}


@KINDS
def test_pytest_httpx(kind, clock, httpx_mock):
    """It patches the library's own transport."""
    httpx_mock.add_response(status_code=503)
    httpx_mock.add_exception(httpx.ReadTimeout("slow"))
    httpx_mock.add_response(json={"trains": 3})
    assert call(httpx, kind, None).json() == {"trains": 3}
    httpx_mock.add_response(404, text="gone")
    with pytest.raises(NotFoundError) as caught:
        call(httpx, kind, None)
    assert caught.value.response.text == "gone"


@KINDS
def test_pytest_httpx2(kind, clock, httpx2_mock):
    """The same for httpx2: respx for its httpcore2."""
    outcomes = [
        httpx.Response(503),
        httpx.Response(200, json={"trains": 3}),
        httpx.Response(404, text="gone"),
    ]
    httpx2_mock.get(URL).mock(side_effect=outcomes)
    assert call(httpx2, kind, None).json() == {"trains": 3}
    with pytest.raises(NotFoundError) as caught:
        call(httpx2, kind, None)
    assert caught.value.response.text == "gone"


@KINDS
def test_vcr(kind, clock, tmp_path):
    """A cassette records through our transport, and plays back through it, failures included."""
    for step in ("record", "play"):
        with (
            raw_server(answer(503), answer(200, b"three trains")) as server,
            vcr.use_cassette(str(tmp_path / f"{kind}.yaml"), record_mode="once", match_on=["method", "path"]),
        ):
            found = call(httpx, kind, None, url=f"{server.url}/orders")
            assert found.text == "three trains"
            assert len(server.requests) == (2 if step == "record" else 0)


# requests and aiohttp --------------------------------------------------------------------------------------------


@contextmanager
def session():
    with requests.Session() as made:
        made.mount("https://", Adapter())
        yield made


def test_responses(clock):
    """`responses` patches requests' own adapter, below ours."""
    with responses.RequestsMock() as mock, session() as client:
        mock.get(URL, status=503)
        mock.get(URL, body=requests.ConnectionError("lost"))
        mock.get(URL, json={"trains": 3})
        assert client.get(URL).json() == {"trains": 3}
        mock.get(URL, status=404, json={"detail": "gone"})
        for stream in (False, True):
            with pytest.raises(NotFoundError) as caught:
                client.get(URL, stream=stream)
            assert caught.value.response.json() == {"detail": "gone"}


def test_requests_mock(clock):
    """`requests_mock` replaces the adapters, ours too: its answers come as they are. Real ones come through ours."""
    with raw_server(answer(503), answer(200, b"three trains")) as server, session() as client:
        client.mount("http://", Adapter())
        with requests_mock.Mocker(session=client) as mock:
            mock.get(URL, [{"status_code": 503}, {"json": {"trains": 3}}])
            assert [client.get(URL).status_code for _ in range(2)] == [503, 200]
            mock.get(server.url, real_http=True)
            assert client.get(server.url).text == "three trains"


async def test_aioresponses(clock):
    """Requests that `aioresponses` passes through come through our middleware; those that it answers itself do not."""
    with aioresponses(passthrough=["http://127.0.0.1"]), raw_server(answer(503), answer(200, b"x")) as server:
        async with aiohttp.ClientSession(middlewares=[recovering()]) as client:
            assert await (await client.get(server.url)).read() == b"x"
        assert len(server.requests) == 2
