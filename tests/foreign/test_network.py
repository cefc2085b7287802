"""Network failures, with the real exceptions of the clients."""

import asyncio
import errno
import urllib.request

import aiohttp
import httpx
import httpx2
import pytest
import requests

from amends.foreign.network import is_network_failure
from tests.ports import free_port


def raised(call):
    """Return the exception that a call raises."""
    with pytest.raises(Exception) as caught:
        call()
    return caught.value


async def _aiohttp(url):
    async with aiohttp.ClientSession() as session, session.get(url):
        pass


async def _httpx_async(url):
    async with httpx2.AsyncClient() as client:
        await client.get(url)


CLIENTS = {
    "httpx": httpx.get,
    "httpx2": httpx2.get,
    "httpx2-async": lambda url: asyncio.run(_httpx_async(url)),
    "requests": lambda url: requests.get(url, timeout=5),
    "aiohttp": lambda url: asyncio.run(_aiohttp(url)),
    "urllib": lambda url: urllib.request.urlopen(url, timeout=5),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_refused_connection(client):
    """Every client's exception for a refused connection is a network failure."""
    assert is_network_failure(raised(lambda: CLIENTS[client](f"http://127.0.0.1:{free_port()}")))


def test_other_exceptions():
    """Files, time-outs and a full disk are none; a group only if all its parts are."""
    assert is_network_failure(OSError(errno.ENETUNREACH, "x"))
    assert not is_network_failure(OSError(errno.ENOSPC, "x"))
    assert not is_network_failure(FileNotFoundError())
    assert not is_network_failure(TimeoutError())
    assert is_network_failure(ExceptionGroup("g", [ConnectionResetError(), ConnectionRefusedError()]))
    assert not is_network_failure(ExceptionGroup("g", [ConnectionResetError(), KeyError()]))
    loop = RuntimeError()
    loop.__cause__ = loop
    assert not is_network_failure(loop)
