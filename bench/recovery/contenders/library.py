"""amends itself, with the default policy and one Upstream per process: `arecover`, and the transport for httpx2."""

from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

import httpx2

import amends
from amends.bindings.httpx import AsyncTransport
from amends.carriers.limits import published
from amends.recovery import current_operation
from amends.recovery.clock import CLOCK
from amends.recovery.process_quota import process_quota
from bench.recovery.clock import VirtualLoop
from bench.recovery.run import Call, Contender, Perform, Process
from bench.recovery.wire import LostError, Response


def clocks(loop: VirtualLoop) -> AbstractContextManager[Any]:
    """Patch the library's clock. It sleeps with asyncio, which needs no patch."""
    return CLOCK.using(now=loop.time, wall=loop.wall_time)


def _client(process: Process) -> Perform:
    return perform_with(amends.Upstream("service", refresh=process.refresh))


def _bare_client(process: Process) -> Perform:
    process_quota.turn(on=True)  # a process of its own; runs with several processes would share it
    return perform_with(None)


def perform_with(upstream: amends.Upstream | None) -> Perform:
    """Return the function that performs one operation with this Upstream."""

    async def perform(call: Call) -> Response:
        async def once() -> dict[str, Any]:
            operation = current_operation()
            sent = CLOCK.now()
            response = await call.send(operation.key if operation else None)
            if upstream is not None and (found := published(response.headers, 0.0)):
                upstream.note_limits(found, CLOCK.now(), sent, ok=response.ok)
            return {"status": response.status, "headers": response.headers, "body": ""}

        async def verify() -> Any:
            return {"status": 200} if await call.happened() else False

        answer = await amends.arecover(
            once,
            upstream=upstream,
            operation=operation_of(call),
            policy=policy_of(call),
            verify=verify if call.searchable else None,
            examine=True,
        )
        return Response(answer["status"])

    return perform


def operation_of(call: Call) -> amends.Operation:
    return amends.Operation(
        name="things",
        read_only=call.method == "GET",
        keyed=call.keyed,
        priority=call.priority,
        size=call.size,
    )


def policy_of(call: Call) -> amends.Policy:
    deadline = call.process.service.deadline
    return amends.Policy() if deadline is None else amends.Policy(deadline=deadline)


class _Wire(httpx2.AsyncBaseTransport):
    """The transport below ours: one simulated call for each request."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            response = await request.extensions["call"].send(request.headers.get("idempotency-key"))
        except LostError as error:
            raise httpx2.ReadTimeout(str(error), request=request) from error
        return httpx2.Response(response.status, headers=response.headers)


def _transport_client(process: Process) -> Perform:
    upstream = amends.Upstream("service", keyed=process.service.keyed or None, refresh=process.refresh)
    running: ContextVar[Call] = ContextVar("running")

    async def verify() -> Any:
        return httpx2.Response(200) if await running.get().happened() else False

    transport = AsyncTransport(
        _Wire(), upstream=upstream, verify=verify if process.service.searchable else None, raises="nothing"
    )

    async def perform(call: Call) -> Response:
        running.set(call)  # every operation runs in its own task
        request = httpx2.Request(call.method, "http://service.test/things", extensions={"call": call})
        return Response((await transport.handle_async_request(request)).status_code)

    return perform


AMENDS_HTTP = Contender(
    "amends transport",
    "AsyncTransport(upstream=Upstream(…, keyed=True where it is)), default policy",
    _transport_client,
    clocks=clocks,
    heavy=True,
)
AMENDS_BARE = Contender(
    "amends bare", "arecover(…) without an Upstream, default policy", _bare_client, clocks=clocks
)
AMENDS = Contender("amends", "arecover(…, upstream=Upstream(…)), default policy", _client, clocks=clocks)
