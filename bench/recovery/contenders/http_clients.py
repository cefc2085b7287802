"""HTTP clients that retry by themselves: httpx-retries on asyncio, urllib3 in threads."""

import httpx
import httpx_retries
import urllib3

from bench.recovery.run import Call, Contender, Perform, Process
from bench.recovery.wire import LostError, Response

URL = "http://service.test/things"


class _Wire(httpx.AsyncBaseTransport):
    """The transport below httpx: one simulated call for each request."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        try:
            response = await request.extensions["call"].send()
        except LostError as error:
            raise httpx.ReadTimeout(str(error), request=request) from error
        return httpx.Response(response.status, headers=response.headers)


def _httpx_retries(process: Process) -> Perform:
    transport = httpx_retries.RetryTransport(transport=_Wire())

    async def perform(call: Call) -> Response:
        request = httpx.Request(call.method, URL, extensions={"call": call})
        response = await transport.handle_async_request(request)
        return Response(response.status_code)

    return perform


class _Pool(urllib3.HTTPConnectionPool):
    """urllib3's pool with a replacement for the method that uses a socket."""

    call: Call

    def _make_request(self, conn: object, method: str, url: str, **options: object) -> urllib3.HTTPResponse:
        try:
            response = self.call.send_blocking()
        except LostError as error:
            raise urllib3.exceptions.ReadTimeoutError(self, url, "read timed out") from error
        return urllib3.HTTPResponse(
            b"", response.headers, response.status, preload_content=True, request_method=method
        )


def _urllib3(process: Process) -> Perform:
    def job(call: Call) -> Response:
        pool = _Pool("service.test")  # one per operation: a pool keeps no retry state between requests
        pool.call = call
        return Response(pool.urlopen(call.method, "/things").status)

    async def perform(call: Call) -> Response:
        return await process.threads.run(lambda: job(call))

    return perform


HTTPX_RETRIES = Contender(
    "httpx-retries", "RetryTransport() as shipped: 10 retries, no backoff", _httpx_retries
)
URLLIB3 = Contender("urllib3", "PoolManager() as shipped: Retry(3), hints on 429/503, no POST", _urllib3)
