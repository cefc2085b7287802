"""What failed is a typed error with its wait, from whichever server and on whichever path."""

import json

import pytest
from a2a.types.a2a_pb2 import Part, TaskState
from google.protobuf.json_format import ParseDict

from amends import FaultError, extract
from amends.bindings.a2a import reject
from amends.errors import RateLimitedError, UnauthenticatedError
from amends.errors.adcp import BudgetTooLowError
from amends.testing import FakeClock
from tests.bindings.a2a_client.asking import ONCE, STREAM, client_for, every_path, failing_until, some_paths
from tests.bindings.a2a_client.lines import answers
from tests.bindings.agents import events_of, failing, request, works
from tests.http.serving import serve


@every_path
async def test_what_goes_well_comes_through(path, bare):
    """The events of the SDK's own client."""
    bare.does(works)
    seen = []
    async with bare.client(path) as plain, client_for(bare.base, path) as ours:
        for client in (plain, ours):
            seen.append([event.WhichOneof("payload") async for event in client.send_message(request())])
    assert seen[0] == seen[1]


@every_path
async def test_a_plain_servers_failed_task_is_a_typed_error(path, bare):
    """The SDK on the other side, with an artifact as S4 has it; a retry cannot help, so there is none."""
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
async def test_a_failure_in_prose_is_an_error_too(path, state, bare):
    """A task that failed without structure: nobody knows; one that was rejected was not begun."""

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


@every_path
async def test_a_bare_servers_exception_is_not_repeated(path, bare):
    """The SDK answers with −32603 and the text; it may have happened."""
    bare.does(failing(OSError("disk")), opening=False)
    async with client_for(bare.base, path) as client:
        with pytest.raises(FaultError) as caught:
            await events_of(client)
    assert caught.value.fault.executed == "maybe"
    assert bare.agent.calls == 1


@every_path
async def test_a_guarded_server_is_waited_for(path, desk):
    """Rate limited twice: two waits as asked for, three tasks, one result."""
    desk.does(failing_until(3, RateLimitedError("Slow down", retry_after=2)))
    with FakeClock() as clock:
        async with client_for(desk.base, path) as client:
            events = [event async for event in client.send_message(request())]
    assert clock.waits == [2, 2]
    assert desk.agent.calls == 3
    last = events[-1]
    final = last.task.status if last.HasField("task") else last.status_update.status
    assert final.state == TaskState.TASK_STATE_COMPLETED
    assert "TASK_STATE_FAILED" not in str(events)


@some_paths
async def test_bounds_end_it(path, desk):
    """A11: three attempts, then the error with everything that was tried."""
    desk.does(failing(RateLimitedError("Slow down", retry_after=2)))
    with FakeClock():
        async with client_for(desk.base, path) as client:
            with pytest.raises(RateLimitedError) as caught:
                await events_of(client)
    assert (len(caught.value.history), caught.value.decision.reason) == (3, "attempts")
    assert desk.agent.calls == 3


@some_paths
@pytest.mark.parametrize("collapse", [False, True])
async def test_rejections_before_the_agent_are_read_and_waited_for(path, collapse, desk):
    """S4's JSON-RPC error: the SDK's client throws its data away, ours has heard it."""
    turns = [RateLimitedError("Slow down", retry_after=3), UnauthenticatedError("Who?")]

    def check(scope):
        if turns:
            raise turns.pop(0)

    async def gate(app, scope, receive, send):
        await reject(app, check, collapse=collapse)(scope, receive, send)

    renewed = []
    desk.line.first = [gate, gate]
    with FakeClock() as clock:
        async with client_for(desk.base, path, refresh=lambda: renewed.append(1)) as client:
            assert await events_of(client)
    assert (clock.waits, renewed, desk.agent.calls) == ([3], [1], 1)


@every_path
async def test_http_answers_are_read_with_their_waits(path, desk):
    """A proxy in front: 429 and 503 with Retry-After, which the SDK's client throws away."""
    desk.line.first = [answers(429, retry_after="4"), answers(503, retry_after="2")]
    with FakeClock() as clock:
        async with client_for(desk.base, path) as client:
            with pytest.raises(FaultError) as caught:
                await events_of(client)
            assert (caught.value.fault.status, caught.value.decision.action) == (503, "verify")
            desk.line.first = [answers(429, retry_after="4"), answers(503, retry_after="2")]
            client._repeatable = True
            assert await events_of(client)
    assert clock.waits == [4, 4, 2]


@some_paths
async def test_a_problem_document_in_front_is_read(path, desk):
    """Not only S4 speaks HTTP."""
    body = json.dumps({"title": "No", "status": 403, "detail": "Not from here"}).encode()
    desk.line.first = [answers(403, body, content_type="application/problem+json")]
    async with client_for(desk.base, path) as client:
        with pytest.raises(FaultError) as caught:
            await events_of(client)
    assert (caught.value.fault.message, caught.value.decision.action) == ("Not from here", "escalate")
    assert desk.agent.calls == 0


async def test_numbers_alone_say_something():
    """A rejection without data: by its number."""

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


async def test_events_instead_of_an_error(desk):
    """errors="return": recovery as ever, then what the agent said."""
    desk.does(failing(RateLimitedError("Slow down", retry_after=2)))
    with FakeClock() as clock:
        for path in (ONCE, STREAM):
            async with client_for(desk.base, path, errors="return") as client:
                events = await events_of(client)
            assert extract(events[-1]).code == "RATE_LIMITED"
    assert len(clock.waits) == 4
