"""Closing a session: what it waits for, and how long, is logged; no error of our own is reported as a leak."""

import logging

import pytest

from amends.arcp import Limits, Runtime, connect
from amends.errors.arcp import PermissionDeniedError
from tests.arcp.client.scripted_client import scripted_client


async def test_closing_says_what_it_waits_for(caplog, monkeypatch):
    """The confirmation of the runtime, with the limit in seconds, and that it did not come."""
    monkeypatch.setattr("amends.arcp.client.session._CLOSE_TIMEOUT", 0.05)

    async def script(peer):
        await peer.welcome()
        await peer.take("nothing")

    with caplog.at_level(logging.DEBUG, "amends.arcp"):
        async with scripted_client(script):
            pass
    assert "waiting up to 0.05 s for the runtime's confirmation" in caplog.text
    assert "did not confirm within 0.05 s" in caplog.text


async def test_a_runtime_that_only_knows_bye():
    """Published runtimes refuse session.close; they get session.bye."""

    async def script(peer):
        await peer.welcome()
        await peer.take("session.close")
        await peer.send("session.error", {"code": "INVALID_REQUEST", "message": "unknown type"})
        assert (await peer.take())["type"] == "session.bye"

    async with scripted_client(script):
        pass


async def test_stopping_a_runtime_says_what_it_waits_for(caplog):
    """The jobs by name, and the limit in seconds."""
    import asyncio

    runtime = Runtime(tokens={"secret": "alice"}, limits=Limits(drain=0.1, cancel_grace=0.05))

    @runtime.register_agent("slow")
    async def slow(given, ctx):
        await asyncio.sleep(60)

    with caplog.at_level(logging.INFO, "amends.arcp"):
        async with runtime, connect(runtime, token="secret") as client:
            handle = await client.submit("slow")
    assert f"for 1 jobs: {handle.job_id} of slow@1.0.0" in caplog.text
    assert "waiting up to 0.1 s" in caplog.text


@pytest.mark.parametrize(
    ("capability", "target"),
    [
        ("fs.read", "/etc/passwd"),
        ("net.fetch", "https://db.internal:5432/x"),
        ("fs.write", "/home/me/.ssh/id_rsa"),
    ],
)
async def test_a_refused_lease_is_not_reported_as_a_leak(capability, target, caplog):
    """The capability and the target are what the agent asked for."""
    runtime = Runtime(tokens={"secret": "alice"})

    @runtime.register_agent("reads")
    async def reads(given, ctx):
        ctx.authorize(capability, target)

    async with connect(runtime, token="secret") as client:
        with pytest.raises(PermissionDeniedError) as caught:
            await (await client.submit("reads")).done
    assert caught.value.details["target"] == target
    assert "looks like" not in caplog.text
