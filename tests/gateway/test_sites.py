"""Which Hosts a gateway answers for, and which pages may send requests through it."""

import asyncio

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve
from websockets.exceptions import InvalidStatus

from amends.gateway import Gateway
from amends.gateway.config import GatewayConfig, UpstreamConfig
from amends.gateway.sites import Sites
from tests.gateway.peers import OK, Upstream, http, raw, serving
from tests.gateway.test_http_upstream import parts

FOREIGN_HOSTS = (
    *(
        b"evil.example",
        b"evil.example:8700",
        b"localhost.evil.example",
        b"127.0.0.1.evil.example",
        b"10.0.0.7",
    ),
    *(b"", b"[", b"localhost@evil.example", b"evil.example#localhost", b"\xe9vil", b"0x7f.1", b"[::2]"),
)
LOCAL_HOSTS = (
    b"localhost",
    b"LOCALHOST:8700",
    b"127.0.0.1:1",
    b"127.0.0.2",
    b"[::1]:8700",
    b"named.example:99",
)
CROSS_SITE = (
    (b"sec-fetch-site: cross-site",),
    (b"sec-fetch-site: Cross-Site",),
    (b"origin: https://evil.example",),
    (b"origin: null",),
    (b"origin: ",),
    (b"origin: http://[",),
    (b"origin: http://localhost.evil.example",),
    (b"origin: http://localhost", b"sec-fetch-site: cross-site"),
)
OWN_PAGES = (
    (b"sec-fetch-site: same-origin",),
    (b"sec-fetch-site: none",),
    (b"origin: http://localhost:3000", b"sec-fetch-site: same-site"),
    (b"origin: http://[::1]:3000",),
    (b"origin: https://named.example", b"sec-fetch-site: cross-site"),
)


def request(host, *headers, path=b"/shop/x", method=b"GET"):
    """Return the bytes of a request that names a host."""
    lines = [method + b" " + path + b" HTTP/1.1", b"host: " + host, b"connection: close", *headers]
    return b"\r\n".join([*lines, b"", b""])


async def test_on_loopback_only_local_and_named_hosts_reach_an_upstream():
    """A name that resolves to 127.0.0.1 gets 403 for every path, and nothing is sent on."""
    async with (
        Upstream(OK) as up,
        serving(http(up, prefix="/shop"), page=page, hosts=("named.example",)) as gateway,
    ):
        for host in FOREIGN_HOSTS:
            for path in (b"/shop/x", b"/_amends/", b"/_amends/health", b"/nothing"):
                assert parts(await raw(gateway, request(host, path=path)))[0] == 403, (host, path)
        assert up.requests == []
        for host in LOCAL_HOSTS:
            assert parts(await raw(gateway, request(host)))[0] == 200, host
        for host in FOREIGN_HOSTS:
            assert parts(await raw(gateway, request(host)))[0] == 403, host
        two = b"GET /shop/x HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\n\r\n"
        assert parts(await raw(gateway, two))[0] == 403
        assert len(up.requests) == len(LOCAL_HOSTS)


async def test_the_refusal_says_what_to_do_and_repeats_no_name_of_the_caller():
    """The problem document names the option."""
    async with Upstream(OK) as up, serving(http(up, prefix="/shop"), hosts=()) as gateway:
        answered = await raw(gateway, request(b"evil.example"))
        assert b"hosts = [...]" in answered
        assert b"evil.example" not in answered
        answered = await raw(gateway, request(b"localhost", b"origin: https://evil.example"))
        assert b"hosts = [...]" in answered
        assert b"evil.example" not in answered


async def test_pages_of_other_sites_are_refused():
    """Whatever the method and the path: nothing is sent on, also no preflight request."""
    async with (
        Upstream(OK) as up,
        serving(http(up, prefix="/shop"), page=page, hosts=("named.example",)) as gateway,
    ):
        for headers in CROSS_SITE:
            for method in (b"GET", b"OPTIONS", b"DELETE"):
                for path in (b"/shop/x", b"/_amends/live"):
                    sent = request(b"localhost", *headers, path=path, method=method)
                    assert parts(await raw(gateway, sent))[0] == 403, (headers, path)
        assert up.requests == []
        for headers in OWN_PAGES:
            assert parts(await raw(gateway, request(b"localhost", *headers)))[0] == 200, headers


async def test_websockets_have_the_same_rules():
    """A page of another site cannot open one, nor one that has its name resolve to 127.0.0.1."""
    connected = []

    async def note(connection):
        connected.append(connection)

    async with serve(note, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        config = UpstreamConfig(name="talk", url=f"http://127.0.0.1:{port}", prefix="/talk")
        async with serving(config, hosts=()) as gateway:
            url = f"ws://127.0.0.1:{gateway.port}/talk"
            with pytest.raises(InvalidStatus) as failed:
                await connect(url, origin="https://evil.example")
            assert failed.value.response.status_code == 403
            with pytest.raises(InvalidStatus) as failed:
                await connect("ws://evil.example/talk", host="127.0.0.1", port=gateway.port)
            assert failed.value.response.status_code == 403
            assert connected == []
            async with connect(url, origin="http://localhost:3000"):
                pass
    assert len(connected) == 1


@pytest.mark.parametrize("listen", ["0.0.0.0:8700", "[::]:8700", "10.0.0.7:8700", "gateway.example:8700"])
def test_elsewhere_any_host_is_answered_and_only_own_pages(listen):
    """Beyond loopback the Host is free; an Origin is the address itself, or named."""
    sites = Sites(listen, ["named.example"])
    for host in (b"gateway.example", b"evil.example", b"localhost"):
        assert not sites.refusal({"headers": [(b"host", host)]}), host
    for host, origin, refused in (
        (b"gateway.example", b"https://gateway.example", False),
        (b"gateway.example:443", b"https://GATEWAY.example", False),
        (b"gateway.example:8700", b"http://gateway.example:8700", False),
        (b"gateway.example:8700", b"http://gateway.example", True),
        (b"gateway.example", b"http://evil.example", True),
        (b"gateway.example", b"http://localhost", True),
        (b"gateway.example", b"https://named.example:8443", False),
    ):
        scope = {"headers": [(b"host", host), (b"origin", origin)]}
        assert bool(sites.refusal(scope)) == refused, (host, origin)
    own = {"headers": [(b"host", b"gateway.example"), (b"origin", b"https://gateway.example")]}
    assert sites.refusal(own, local_pages=True)
    assert sites.refusal({"headers": [(b"host", b"h"), (b"sec-fetch-site", b"cross-site")]})


async def test_under_another_server_the_socket_decides():
    """The application does not know where that server listens; on loopback it refuses."""
    async with Upstream(OK) as up:
        gateway = Gateway(GatewayConfig(upstreams=(http(up, prefix="/shop"),)))
        for base, status in (("http://gateway.example", 200), ("http://localhost", 200)):
            transport = httpx.ASGITransport(gateway)
            async with httpx.AsyncClient(transport=transport, base_url=base) as caller:
                assert (await caller.get("/shop/x")).status_code == status
                if base.endswith("localhost"):
                    assert (await caller.get("/shop/x", headers={"host": "evil.example"})).status_code == 403
        await gateway.close()


async def page(scope, receive, send):
    """Answer as a page would."""
    await asyncio.sleep(0)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"page"})
