"""Failures are typed errors with their waits, from every server and on every path."""

import json

import pytest
from a2a.types.a2a_pb2 import Part, TaskState
from google.protobuf.json_format import ParseDict

from amends import FaultError, extract
from amends.bindings.a2a import reject
from amends.errors import RateLimitedError, UnauthenticatedError
from amends.errors.adcp import BudgetTooLowError
from amends.testing import FakeClock
from tests.bindings.a2a_client.clients import ONCE, STREAM, client_for, every_path, failing_until, some_paths
from tests.bindings.a2a_client.lines import answers
from tests.bindings.agents import events_of, failing, request, works
from tests.http.serving import serve


@every_path
async def test_successful_events_are_those_of_the_sdk(path, bare):
    """The same kinds of events as with the SDK's client."""
    bare.does(works)
    seen = []
    async with bare.client(path) as plain, client_for(bare.base, path) as ours:
        for client in (plain, ours):
            seen.append([event.WhichOneof("payload") async for event in client.send_message(request())])
    assert seen[0] == seen[1]


@every_path
async def test_a_plain_servers_failed_task_is_a_typed_error(path, bare):
    """A server without a guard, with AdCP's artifact; a retry cannot help, so there is none."""
    error = {"code": "BUDGET_TOO_LOW", "message": "Below 500", "recovery": "correctable", "field": "budget"}

    async def work(context, updater):
        part = Part()
        ParseDict({"adcp_error": error}, part.data.struct_value)
        await updater.add_artifact([Part(text="Below 500"), part], artifact_id="error-result")
        await updater.failed()

    bare.does(work)
    async with client_for(bare.base, path) as client:
        with pytest.raises(BudgetTooLowError) as caught:
            await events_of(client)
    assert (caught.value.fault.field, caught.value.decision.action) == ("budget", "fix")
    assert caught.value.fault.origin.path == "artifact"
    assert bare.agent.calls == 1


@some_paths
@pytest.mark.parametrize("state", ["failed", "reject"])
async def test_a_failure_with_text_alone_is_an_internal_error(path, state, bare):
    """The recovery of a failed task is uncertain; a rejected task was not started."""

    async def work(context, updater):
        await getattr(updater, state)(updater.new_agent_message([Part(text="Not to\u202eday")]))

    bare.does(work)
    async with client_for(bare.base, path) as client:
        with pytest.raises(FaultError) as caught:
            await events_of(client)
    fault = caught.value.fault
    assert (fault.code, fault.message) == ("INTERNAL_ERROR", "Not today")
    assert (fault.recovery, fault.executed) == (
        ("uncertain", "maybe") if state == "failed" else ("terminal", "no")
    )
    assert caught.value.decision.action == ("verify" if state == "failed" else "escalate")
    assert bare.agent.calls == 1


@some_paths
async def test_a_task_that_waits_for_a_sign_in_is_unauthenticated(path, bare):
    """The message is not sent again, because the task goes on after the sign-in; its events are in the error."""

    async def work(context, updater):
        await updater.requires_auth(updater.new_agent_message([Part(text="Sign in first")]))

    bare.does(work)
    renewed = []
    async with client_for(bare.base, path, refresh=lambda: renewed.append(1) or True) as client:
        with pytest.raises(UnauthenticatedError) as caught:
            await events_of(client)
    assert (caught.value.fault.message, caught.value.fault.executed) == ("Sign in first", "maybe")
    last = caught.value.events[-1]
    status = last.task.status if last.HasField("task") else last.status_update.status
    assert status.state == TaskState.TASK_STATE_AUTH_REQUIRED
    assert bare.agent.calls == 1


@every_path
async def test_a_bare_servers_exception_is_not_repeated(path, bare):
    """The SDK answers with −32603 and the text; the message may have had an effect."""
    bare.does(failing(OSError("disk")), opening=False)
    async with client_for(bare.base, path) as client:
        with pytest.raises(FaultError) as caught:
            await events_of(client)
    assert caught.value.fault.executed == "maybe"
    assert bare.agent.calls == 1


@every_path
async def test_a_rate_limited_message_is_repeated_after_its_wait(path, server):
    """Two rate limits: two waits, three tasks, one result."""
    server.does(failing_until(3, RateLimitedError("Slow down", retry_after=2)))
    with FakeClock() as clock:
        async with client_for(server.base, path) as client:
            events = [event async for event in client.send_message(request())]
    assert clock.waits == [2, 2]
    assert server.agent.calls == 3
    last = events[-1]
    final = last.task.status if last.HasField("task") else last.status_update.status
    assert final.state == TaskState.TASK_STATE_COMPLETED
    assert "TASK_STATE_FAILED" not in str(events)


@some_paths
async def test_attempts_are_bounded(path, server):
    """A11: three attempts, then the error with their history."""
    server.does(failing(RateLimitedError("Slow down", retry_after=2)))
    with FakeClock():
        async with client_for(server.base, path) as client:
            with pytest.raises(RateLimitedError) as caught:
                await events_of(client)
    assert (len(caught.value.history), caught.value.decision.reason) == (3, "attempts")
    assert server.agent.calls == 3


@some_paths
@pytest.mark.parametrize("collapse", [False, True])
async def test_rejections_before_the_agent_are_recovered(path, collapse, server):
    """The SDK's client drops the data of AdCP's JSON-RPC errors; the recorder keeps it."""
    turns = [RateLimitedError("Slow down", retry_after=3), UnauthenticatedError("Who?")]

    def check(scope):
        if turns:
            raise turns.pop(0)

    async def rejecting(app, scope, receive, send):
        await reject(app, check, collapse=collapse)(scope, receive, send)

    renewed = []
    server.line.first = [rejecting, rejecting]
    with FakeClock() as clock:
        async with client_for(server.base, path, refresh=lambda: renewed.append(1)) as client:
            assert await events_of(client)
    assert (clock.waits, renewed, server.agent.calls) == ([3], [1], 1)


@every_path
async def test_retry_after_of_http_responses(path, server):
    """429 and 503 of a proxy with Retry-After, which the SDK's client drops."""
    server.line.first = [answers(429, retry_after="4"), answers(503, retry_after="2")]
    with FakeClock() as clock:
        async with client_for(server.base, path, upstream=None) as client:
            with pytest.raises(FaultError) as caught:
                await events_of(client)
            assert (caught.value.fault.status, caught.value.decision.action) == (503, "verify")
            server.line.first = [answers(429, retry_after="4"), answers(503, retry_after="2")]
            client._repeatable = True
            assert await events_of(client)
    assert clock.waits == [4, 4, 2]


@some_paths
async def test_problem_documents_of_a_proxy(path, server):
    """The fault has the document's detail."""
    body = json.dumps({"title": "No", "status": 403, "detail": "Not from here"}).encode()
    server.line.first = [answers(403, body, content_type="application/problem+json")]
    async with client_for(server.base, path) as client:
        with pytest.raises(FaultError) as caught:
            await events_of(client)
    assert (caught.value.fault.message, caught.value.decision.action) == ("Not from here", "escalate")
    assert server.agent.calls == 0


async def test_a_json_rpc_error_without_data():
    """The number alone gives the code."""

    async def app(scope, receive, send):
        body = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32029, "message": "x"}}
        await answers(200, json.dumps(body).encode(), content_type="application/json")(
            None, scope, receive, send
        )

    with serve(app) as base, FakeClock() as clock:
        async with client_for(base, ONCE) as client:
            with pytest.raises(RateLimitedError):
                await events_of(client)
    assert clock.waits


async def test_events_instead_of_an_error(server):
    """raises="nothing": after recovery, the events of the failed task."""
    server.does(failing(RateLimitedError("Slow down", retry_after=2)))
    with FakeClock() as clock:
        for path in (ONCE, STREAM):
            async with client_for(server.base, path, raises="nothing", upstream=None) as client:
                events = await events_of(client)
            assert extract(events[-1]).code == "RATE_LIMITED"
    assert len(clock.waits) == 4
