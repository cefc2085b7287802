"""The four HTTP clients, sync and async, behind one interface, so that a test states a behaviour once for all of them."""

import asyncio

import aiohttp
import httpx
import httpx2
import msgspec
import pytest
import requests

from amends.bindings.aiohttp import recovering
from amends.bindings.httpx import AsyncTransport, Transport
from amends.bindings.requests import Adapter


class Reply(msgspec.Struct):
    """What a test looks at, whatever the library calls it."""

    status: int
    headers: dict[str, str]
    body: bytes


class Client:
    """One library. `session(options)` is a context manager whose value has `send(method, url, **request)`."""

    name = ""
    status_error: type[Exception]
    connection_error: type[Exception]

    def call(self, method, url, *, timeout=5, redirects=False, **more):
        """Send one request with `more["options"]` as the binding's options, and return a Reply."""
        return self.calls([(method, url, more)], timeout=timeout, redirects=redirects)[0]

    def calls(self, steps, *, options=None, timeout=5, redirects=False):
        """Send several requests one after the other through one session."""
        raise NotImplementedError


class Httpx(Client):
    def __init__(self, module):
        self.module, self.name = module, module.__name__
        self.status_error, self.connection_error = module.HTTPStatusError, module.ConnectError

    def calls(self, steps, *, options=None, timeout=5, redirects=False):
        options = options or (steps[0][2].pop("options", None) or {})
        client = self.module.Client(
            transport=Transport(**options), timeout=timeout, follow_redirects=redirects
        )
        with client as session:
            return [self.reply(session.request(method, url, **more)) for method, url, more in steps]

    @staticmethod
    def reply(response):
        return Reply(response.status_code, dict(response.headers), response.content)


class AsyncHttpx(Httpx):
    def __init__(self, module):
        super().__init__(module)
        self.name = f"{module.__name__}-async"

    def calls(self, steps, *, options=None, timeout=5, redirects=False):
        options = options or (steps[0][2].pop("options", None) or {})

        async def run():
            client = self.module.AsyncClient(
                transport=AsyncTransport(**options), timeout=timeout, follow_redirects=redirects
            )
            async with client as session:
                return [self.reply(await session.request(method, url, **more)) for method, url, more in steps]

        return asyncio.run(run())


class Requests(Client):
    name = "requests"
    status_error, connection_error = requests.HTTPError, requests.ConnectionError

    def calls(self, steps, *, options=None, timeout=5, redirects=False):
        options = options or (steps[0][2].pop("options", None) or {})
        with requests.Session() as session:
            session.mount("http://", Adapter(**options))
            replies = []
            for method, url, more in steps:
                data = {"data": more.pop("content")} if "content" in more else {}
                found = session.request(
                    method, url, timeout=timeout, allow_redirects=redirects, **data, **more
                )
                replies.append(Reply(found.status_code, dict(found.headers), found.content))
            return replies


class Aiohttp(Client):
    name = "aiohttp"
    status_error, connection_error = aiohttp.ClientResponseError, aiohttp.ClientConnectionError

    def calls(self, steps, *, options=None, timeout=5, redirects=False):
        options = options or (steps[0][2].pop("options", None) or {})

        async def run():
            limit = aiohttp.ClientTimeout(sock_read=timeout)
            replies = []
            async with aiohttp.ClientSession(middlewares=[recovering(**options)], timeout=limit) as session:
                for method, url, more in steps:
                    data = {"data": more.pop("content")} if "content" in more else {}
                    async with session.request(
                        method, url, allow_redirects=redirects, **data, **more
                    ) as found:
                        replies.append(Reply(found.status, dict(found.headers), await found.read()))
            return replies

        return asyncio.run(run())


CLIENTS = [Httpx(httpx2), Httpx(httpx), AsyncHttpx(httpx2), AsyncHttpx(httpx), Requests(), Aiohttp()]


@pytest.fixture(params=CLIENTS, ids=[client.name for client in CLIENTS])
def client(request):
    return request.param
