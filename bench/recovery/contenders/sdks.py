"""Provider SDKs with retries of their own: openai on asyncio, botocore's standard mode in threads."""

import functools
from contextvars import ContextVar
from typing import Any

import botocore.session
import httpx2
import openai
from botocore import UNSIGNED
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import ReadTimeoutError

from bench.recovery.run import Call, Contender, Perform, Process
from bench.recovery.wire import LostError, Response

_current_call: ContextVar[Call] = ContextVar("current_call")


class _Wire(httpx2.AsyncBaseTransport):
    """The transport below openai's client: one simulated call for each request."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            response = await _current_call.get().send(request.headers.get("Idempotency-Key"))
        except LostError as error:
            raise httpx2.ReadTimeout(str(error), request=request) from error
        headers = {**response.headers, "Content-Type": "application/json"}
        return httpx2.Response(response.status, headers=headers, content=b"{}")


@functools.cache
def _openai_client() -> openai.AsyncOpenAI:
    # Shared by all processes: it keeps no state between requests, and building one takes 30 ms.
    client = openai.AsyncOpenAI(
        api_key="none", base_url="http://service.test", http_client=httpx2.AsyncClient(transport=_Wire())
    )
    # The first request looks this up in a real thread, for which virtual time does not wait.
    client._platform = openai._base_client.get_platform()
    return client


def _openai(process: Process) -> Perform:
    client = _openai_client()

    async def perform(call: Call) -> Response:
        _current_call.set(call)
        if call.method == "GET":
            await client.get("/things", cast_to=httpx2.Response)
        else:
            await client.post("/things", cast_to=httpx2.Response, body={})
        return Response(200)

    return perform


class _Raw:
    """The body of an AWSResponse, read once."""

    def stream(self) -> list[bytes]:
        return [b"{}"]


@functools.cache
def _aws_session() -> botocore.session.Session:
    return botocore.session.Session()


def _botocore(process: Process) -> Perform:
    """Make one client for each process, because the retry quota belongs to the client."""
    client = _aws_session().create_client(
        "lambda",
        region_name="us-east-1",
        endpoint_url="http://service.test",
        config=Config(signature_version=UNSIGNED, retries={"mode": "standard"}),
    )

    def wire(request: Any, **_: Any) -> AWSResponse:
        call = _current_call.get()
        try:
            response = call.send_blocking()
        except LostError as error:
            raise ReadTimeoutError(endpoint_url=request.url) from error
        headers = dict(response.headers)
        if "Retry-After" in headers:
            # AWS services send the wait in this header, in milliseconds; botocore reads no other.
            headers["x-amz-retry-after"] = str(1000 * int(headers["Retry-After"]))
        return AWSResponse(request.url, response.status, headers, _Raw())

    client.meta.events.register("before-send.lambda", wire)

    def job(call: Call) -> Response:
        _current_call.set(call)
        client.list_functions()
        return Response(200)

    async def perform(call: Call) -> Response:
        return await process.threads.run(lambda: job(call))

    return perform


OPENAI = Contender("openai SDK", "AsyncOpenAI() as shipped: 2 retries", _openai, heavy=True)
BOTOCORE = Contender(
    "botocore", 'retries={"mode": "standard"}: 3 attempts, quota of 500 per client', _botocore, heavy=True
)
