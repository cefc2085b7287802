"""A server that requires a password and TLS: the settings in `nats_options`."""

import asyncio
import ssl

import pytest

from amends import stores
from amends.stores import StoreUnavailableError
from tests.arcp.test_websocket import certificate  # noqa: F401 - a fixture
from tests.stores.servers import NatsServer

SECRET = "s3cret-of-the-operator"


@pytest.fixture
def secured(tmp_path, certificate):  # noqa: F811
    cert, key = certificate
    options = ("--tls", "--tlscert", str(cert), "--tlskey", str(key), "--user", "alice", "--pass", SECRET)
    server = NatsServer(tmp_path / "server", options=options)
    server.start()
    yield server
    server.stop()


async def test_everything_works_over_tls_and_after_a_reconnection(secured, certificate):  # noqa: F811
    """Logs, tables, queues and notifications; the store logs in again after the server was killed and restarted."""
    options = {
        "user": "alice",
        "password": SECRET,
        "tls": ssl.create_default_context(cafile=str(certificate[0])),
    }
    url = f"{secured.url}/safe?timeout=60"
    async with (
        await stores.open(url, nats_options=options) as one,
        await stores.open(url, nats_options=options) as other,
    ):
        log, queue = one.log("jobs/1"), one.queue("q", lease=2.0)
        entries = log.follow(1)
        for number in (1, 2):
            large = bytes(300_000)
            coming = asyncio.ensure_future(anext(entries))
            taking = asyncio.ensure_future(queue.take(wait=60.0))
            assert await other.log("jobs/1").append(large) == number
            assert (await asyncio.wait_for(coming, 60)).value == large
            await other.queue("q").put(b"message")
            lease = await taking
            assert lease.value == b"message"
            await lease.done()
            await other.table("t").put("k", b"%d" % number)
            assert (await one.table("t").get("k")).value == b"%d" % number
            if number == 1:
                secured.kill()
                await asyncio.to_thread(secured.start)
        await entries.aclose()


@pytest.mark.parametrize(
    "given", [{}, {"user": "alice", "password": "wrong"}], ids=["no password", "wrong password"]
)
async def test_a_rejected_login_raises_without_the_password(secured, certificate, given):  # noqa: F811
    """It raises within the timeout."""
    trust = ssl.create_default_context(cafile=str(certificate[0]))
    with pytest.raises(StoreUnavailableError) as caught:
        await stores.open(f"{secured.url}/safe?timeout=2", nats_options={**given, "tls": trust})
    assert "wrong" not in str(caught.value)


async def test_an_unknown_certificate_is_rejected(secured):
    """The connection fails."""
    with pytest.raises(StoreUnavailableError):
        await stores.open(f"{secured.url}/safe?timeout=2", nats_options={"user": "alice", "password": SECRET})
