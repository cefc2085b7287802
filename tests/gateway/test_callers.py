"""Who may call: tokens, rates and concurrency of callers, and TLS."""

import asyncio
import json
import ssl

import pytest

from amends.gateway import read_config
from amends.gateway.config import CallerConfig, GatewayConfig, TlsConfig
from amends.gateway.config_file import ConfigError
from tests.foreign.servers import certificate
from tests.gateway.peers import OK, Upstream, get, http, raw, serving
from tests.gateway.test_http_upstream import ask

A, B = "the-token-of-team-a-of-these-tests", "the-token-of-team-b-of-these-tests"


@pytest.fixture(autouse=True)
def _tokens(monkeypatch):
    monkeypatch.setenv("TEAM_A", A)
    monkeypatch.setenv("TEAM_B", B)


def teams(**a):
    return CallerConfig(name="team-a", token_env="TEAM_A", **a), CallerConfig(
        name="team-b", token_env="TEAM_B"
    )


@pytest.mark.parametrize(
    "header", ["authorization: Bearer {}", "x-api-key: {}", "api-key: {}", "proxy-authorization: bearer {}"]
)
async def test_a_token_lets_in_and_is_not_sent_on(header):
    """In the headers that SDKs use for their keys; a proxy's own header leaves `Authorization` to the upstream."""
    async with Upstream(OK) as up, serving(http(up), callers=teams()) as gateway:
        line = header.format(A).encode()
        status, _, _ = await ask(gateway, "/x", line)
        assert status == 200
        assert A.encode() not in up.requests[0]
        if header.startswith("proxy"):
            await ask(gateway, "/x", line, b"authorization: Bearer of-the-upstream")
            assert b"of-the-upstream" in up.requests[1]


@pytest.mark.parametrize(
    "lines",
    [
        (),
        (b"authorization: Bearer wrong",),
        (b"authorization: Basic " + A.encode(),),
        (b"authorization: Bearer " + A[:-1].encode(),),
        (b"authorization: Bearer \xff",),
        (b"x-api-key: " + A.encode(), b"x-api-key: " + A.encode()),
    ],
)
async def test_nobody_else_gets_in(lines):
    """401 with a problem document; the upstream sees nothing, and WebSockets are refused, too."""
    async with Upstream(OK) as up, serving(http(up), callers=teams()) as gateway:
        status, _, body = await ask(gateway, "/x", *lines)
        assert (status, json.loads(body)["code"], json.loads(body)["executed"]) == (
            401,
            "UNAUTHENTICATED",
            "no",
        )
        upgrade = (
            b"upgrade: websocket",
            b"connection: upgrade",
            b"sec-websocket-version: 13",
            b"sec-websocket-key: dGVzdGtleTEyMzQ1Njc4OQ==",
        )
        request = get("/x", *upgrade, *lines).replace(b"connection: close\r\n", b"")
        assert b" 101 " not in await raw(gateway, request, until=b"\r\n\r\n")
        assert up.requests == []
        assert (await ask(gateway, "/_amends/health"))[0] == 200


async def test_the_rate_of_one_caller_does_not_slow_another():
    """After its burst a caller gets 429 with a wait; the other one is not refused."""
    async with Upstream(OK) as up, serving(http(up), callers=teams(rate=0.01)) as gateway:
        first = await ask(gateway, "/x", f"authorization: Bearer {A}".encode())
        status, headers, body = await ask(gateway, "/x", f"authorization: Bearer {A}".encode())
        assert (first[0], status, json.loads(body)["executed"]) == (200, 429, "no")
        assert 50 < int(dict(headers)[b"retry-after"]) <= 100
        assert {(await ask(gateway, "/x", f"authorization: Bearer {B}".encode()))[0] for _ in range(20)} == {
            200
        }
        assert (gateway.callers["team-a"].refused, gateway.callers["team-b"].refused) == (1, 0)


async def test_the_concurrency_of_one_caller():
    """Its third call at once is refused; another caller's is not. A reload keeps the counts."""
    async with Upstream("hang") as up, serving(http(up), callers=teams(concurrency=2)) as gateway:
        line = f"authorization: Bearer {A}".encode()
        held = [asyncio.create_task(ask(gateway, "/x", line)) for _ in range(2)]
        async with asyncio.timeout(20):
            while len(up.requests) < 2:
                await asyncio.sleep(0.01)
        assert (await ask(gateway, "/x", line))[0] == 429
        gateway.reload(
            GatewayConfig(
                upstreams=gateway.config.upstreams, callers=gateway.config.callers, hosts=gateway.config.hosts
            )
        )
        assert (await ask(gateway, "/x", line))[0] == 429
        up.script = [OK]
        assert (await ask(gateway, "/x", f"authorization: Bearer {B}".encode()))[0] == 200
        for task in held:
            task.cancel()
        await asyncio.gather(*held, return_exceptions=True)
        async with asyncio.timeout(20):
            while gateway.callers["team-a"].in_flight:
                await asyncio.sleep(0.01)


def test_the_configuration(monkeypatch, tmp_path):
    """Tokens come from the environment, are long and differ; the files of a certificate exist."""
    monkeypatch.setenv("SHORT", "short")
    monkeypatch.setenv("SAME", A)
    base = (
        '[upstream.a]\nurl = "http://x"\n[caller.team-a]\ntoken_env = "TEAM_A"\nrate = 0.5\nconcurrency = 3\n'
    )
    [found] = read_config(base).callers
    assert (found.name, found.rate, found.concurrency) == ("team-a", 0.5, 3)
    for text, message in (
        (base + "[caller.b]\nrate = 1\n", "has a token"),
        (base + '[caller.b]\ntoken_env = "MISSING"\n', "does not have"),
        (base + '[caller.b]\ntoken_env = "SHORT"\n', "fewer than 20"),
        (base + '[caller.b]\ntoken_env = "SAME"\n', "the token of team-a"),
        (base.replace("0.5", "0"), "calls per second"),
        (base + f'[tls]\ncert = "{tmp_path}/none"\nkey = "{tmp_path}/none"\n', "no file"),
        (base + "[tls]\n", "tls has no cert and no key"),
    ):
        with pytest.raises(ConfigError, match=message):
            read_config(text)


def serial(certificate_of):
    """Return what distinguishes two self-signed certificates."""
    return ssl.PEM_cert_to_DER_cert(certificate_of)


async def test_tls_and_a_certificate_that_is_renewed(tmp_path):
    """New connections get the new certificate; a wrong one changes nothing."""
    (tmp_path / "next").mkdir()
    certificate(tmp_path)
    certificate(tmp_path / "next")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"

    async with Upstream(OK) as up:
        tls = TlsConfig(cert=str(cert), key=str(key))
        async with serving(http(up), tls=tls) as gateway:
            server = gateway.server
            server.reload_certificate()

            async def shown():
                client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                client.check_hostname = False
                client.verify_mode = ssl.CERT_NONE
                reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port, ssl=client)
                writer.write(get("/x"))
                answered = await reader.read(-1)
                found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
                writer.close()
                assert answered.startswith(b"HTTP/1.1 200")
                return found

            first = serial(cert.read_text())
            assert await shown() == first
            second = serial((tmp_path / "next" / "cert.pem").read_text())
            key.write_text((tmp_path / "next" / "key.pem").read_text())
            cert.write_text((tmp_path / "next" / "cert.pem").read_text())
            server.reload_certificate()
            assert await shown() == second != first
            cert.write_text("broken")
            server.reload_certificate()
            assert await shown() == second
