"""Several addresses: nodes of one runtime, in processes of their own that are killed or stopped."""

import asyncio
import os
import signal
import sys
import time
from contextlib import asynccontextmanager

import pytest

from amends.arcp import connect
from amends.arcp.client.dial import Addresses, UrlDial, dial_of
from amends.errors import FaultError
from tests.ports import free_port

NODE = """
import asyncio, sys
from amends.arcp import Limits, Runtime

runtime = Runtime(sys.argv[1], tokens={"secret": "alice"}, limits=Limits(drain=0.0))

@runtime.register_agent("echo")
async def echo(given, ctx):
    return given

async def main():
    async with runtime, runtime.listen(port=0) as listening:
        print(listening.url, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@asynccontextmanager
async def nodes(store, count):
    """Run nodes on one store; yields their processes and URLs."""
    running = []
    try:
        for _ in range(count):
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-c", NODE, store, stdout=asyncio.subprocess.PIPE
            )
            running.append(child)
        urls = [(await asyncio.wait_for(child.stdout.readline(), 60)).decode().strip() for child in running]
        yield running, urls
    finally:
        for child in running:
            if child.returncode is None:
                child.kill()
            await child.wait()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_client_goes_on_at_another_node(sqlite_url, end):
    """The session is the same, long before its window ends; a stopped node is left after two silent heartbeats or by resume()."""
    async with (
        asyncio.timeout(90),
        nodes(sqlite_url, 2) as (running, urls),
        connect(urls, token="secret") as client,
    ):
        session = client.session_id
        assert await (await client.submit("echo", 1)).done == 1
        os.kill(running[0].pid, end)
        began = time.monotonic()
        if end == signal.SIGSTOP:
            # Its socket stays open, so nothing but the heartbeat of 30 s would tell.
            await client.resume()
        assert await (await client.submit("echo", 2, idempotency_key="k")).done == 2
        assert client.session_id == session
        assert time.monotonic() - began < 20


async def test_the_first_connect_tries_every_address(sqlite_url):
    """Also behind one that accepts connections and never answers."""
    async with asyncio.timeout(60), nodes(sqlite_url, 1) as (_, urls):
        opened = []
        silent = await asyncio.start_server(lambda reader, writer: opened.append(writer), "127.0.0.1", 0)
        async with silent:
            port = silent.sockets[0].getsockname()[1]
            addresses = [f"ws://127.0.0.1:{free_port()}/", f"ws://127.0.0.1:{port}/", *urls]
            async with connect(addresses, token="secret", connect_timeout=3.0) as client:
                assert await (await client.submit("echo", 1)).done == 1
            for writer in opened:
                writer.close()


async def test_every_failure_is_named():
    """Within the time of one connection for each, with the last failure of each address."""
    addresses = [f"ws://127.0.0.1:{free_port()}/" for _ in range(3)]
    with pytest.raises(FaultError) as caught:
        await connect(addresses, token="secret")
    assert caught.value.code == "HEARTBEAT_LOST"
    assert caught.value.fault.executed == "no"
    assert list(caught.value.details["addresses"]) == addresses
    assert all("refused" in message for message in caught.value.details["addresses"].values())


async def test_a_refusal_of_the_runtime_is_final(sqlite_url):
    """The nodes share a store: a token that one of them refuses is refused by all."""
    async with asyncio.timeout(60), nodes(sqlite_url, 2) as (_, urls):
        with pytest.raises(FaultError) as caught:
            await connect(urls, token="wrong")
        assert caught.value.code == "UNAUTHENTICATED"


def test_what_a_list_of_addresses_may_be():
    """One address is that address; no address, or another type, is refused."""
    assert isinstance(dial_of(["ws://127.0.0.1:1/"], {}), UrlDial)
    two = dial_of(["ws://127.0.0.1:1/", "ws://127.0.0.1:2/", "ws://127.0.0.1:1/"], {})
    assert isinstance(two, Addresses)
    assert [dial.name for dial in two.in_turn()] == ["ws://127.0.0.1:1/", "ws://127.0.0.1:2/"]
    for wrong in ([], [1], ("ws://127.0.0.1:1/", None)):
        with pytest.raises(TypeError, match="list of URLs"):
            dial_of(wrong, {})
