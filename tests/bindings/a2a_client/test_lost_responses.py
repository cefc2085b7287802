"""Lost responses are searched by task or context; a stream that breaks off is continued by its task."""

import asyncio
from contextlib import aclosing

import pytest
from a2a.types.a2a_pb2 import Part, TaskState

from amends import FaultError
from amends.errors import ConflictError, ServiceUnavailableError, ValidationError
from amends.recovery import NONE
from amends.testing import FakeClock
from tests.bindings.a2a_client.clients import (
    ONCE,
    STREAM,
    STREAMS,
    client_for,
    every_path,
    some_paths,
    states,
)
from tests.bindings.a2a_client.lines import answers, broken, cut, lost, passes
from tests.bindings.agents import events_of, failing, request, works


@every_path
async def test_a_lost_response_is_found_by_its_task(path, server):
    """With GetTask: the message is in the task's history, so it arrived."""

    async def work(context, updater):
        if context.current_task is None:
            await updater.requires_input()
        else:
            await works(context, updater)

    server.does(work)
    async with client_for(server.base, path) as client:
        first = (await events_of(client))[-1]
        task = first.get("task") or first["statusUpdate"]
        server.line.first = [lost]
        ids = {"task_id": task.get("id", task.get("taskId")), "context_id": task["contextId"]}
        with FakeClock():
            events = [event async for event in client.send_message(request(**ids))]
    assert states(events)[-1] == "COMPLETED"
    assert events[-1].task.artifacts[0].parts[0].text == "done"
    assert server.agent.calls == 2


@pytest.mark.parametrize("path", [ONCE, STREAM], ids=str)
async def test_a_lost_response_is_found_by_its_context(path, server):
    """With ListTasks, which 0.3 does not have; the failure of a task that was found is raised."""
    server.line.first = [lost]
    async with client_for(server.base, path) as client:
        with FakeClock():
            events = [event async for event in client.send_message(request(context_id=f"c-{path}"))]
            assert states(events) == ["COMPLETED"]
            server.does(failing(ConflictError("Taken"))).line.first = [lost]
            with pytest.raises(FaultError) as caught:
                await events_of(client, request(context_id=f"d-{path}"))
    assert (caught.value.fault.code, caught.value.fault.message) == ("CONFLICT", "Taken")
    assert caught.value.decision is not None
    assert server.agent.calls == 1


@some_paths
async def test_a_lost_response_that_is_not_found_is_not_repeated(path, server):
    """Without a task or a context, or without ListTasks: one call, and the decision is verify."""
    async with client_for(server.base, path) as client:
        for sent in (request(), request(context_id="c-3") if path.version == "0.3" else request()):
            server.does(works).line.first = [lost]
            with pytest.raises(ServiceUnavailableError) as caught:
                await events_of(client, sent)
            assert caught.value.decision.action == "verify"
            assert server.agent.calls == 1


async def test_a_message_that_is_not_found_is_not_repeated(server):
    """It may still arrive."""
    server.line.first = [broken]
    async with client_for(server.base, ONCE) as client:
        with pytest.raises(ServiceUnavailableError) as caught:
            await events_of(client, request(context_id="unknown"))
    assert caught.value.decision.action == "verify"
    assert server.agent.calls == 0


@pytest.mark.parametrize("after", [1, 2, 3])
@pytest.mark.parametrize("path", STREAMS, ids=str)
async def test_a_stream_that_breaks_off_is_continued(path, after, server):
    """With GetTask and SubscribeToTask: the message is sent once, and the final state is yielded."""
    go = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def work(context, updater):
        await updater.start_work()
        await updater.add_artifact([Part(text="half")], artifact_id="a")
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(go.wait(), loop))
        await updater.add_artifact([Part(text="whole")], artifact_id="b")
        await updater.complete()

    server.does(work).line.first = [cut(after)]
    async with client_for(server.base, path) as client:
        events = []
        async with aclosing(client.send_message(request())) as stream:
            async for event in stream:
                events.append(event)
                if event.HasField("task") and len(events) > 1:
                    go.set()
    assert server.agent.calls == 1
    texts = str(events)
    assert "half" in texts
    assert "whole" in texts
    last = events[-1]
    final = last.task.status if last.HasField("task") else last.status_update.status
    assert final.state == TaskState.TASK_STATE_COMPLETED


@pytest.mark.parametrize("path", STREAMS, ids=str)
async def test_the_failure_of_a_task_whose_stream_broke_off(path, server):
    """The error is the task's, not the stream's."""
    server.does(failing(ValidationError("Which day?", field="/day"))).line.first = [cut(1)]
    async with client_for(server.base, path) as client:
        with pytest.raises(ValidationError) as caught:
            await events_of(client)
    assert caught.value.fault.field == "day"


async def test_a_task_that_cannot_be_read_after_its_stream_broke_off(server):
    """The error is the stream's."""
    server.line.first = [cut(1), answers(503)]
    async with client_for(server.base, STREAM, policy=NONE) as client:
        with pytest.raises(ServiceUnavailableError) as caught:
            await events_of(client)
    assert caught.value.fault.status is None


async def test_a_stream_that_ends_early_is_continued(server):
    """It was closed before the final state: the state is read with GetTask."""

    async def ends(app, scope, receive, send):
        messages = []

        async def keep(message):
            messages.append(message)

        await app(scope, receive, keep)
        await send(messages[0])
        await send({**messages[1], "more_body": False})

    server.line.first = [ends]
    async with client_for(server.base, STREAM) as client:
        events = [event async for event in client.send_message(request())]
    assert states(events)[-1] == "COMPLETED"


async def test_a_task_that_is_still_working_after_its_stream_is_read_once(server):
    """The agent closed the stream, and its task may take long."""

    async def work(context, updater):
        await updater.start_work()

    server.does(work)
    async with client_for(server.base, STREAM) as client:
        events = [event async for event in client.send_message(request())]
    assert states(events) == ["SUBMITTED", "WORKING"]


async def test_a_task_that_does_not_change_times_out(server):
    """The stream broke off: GetTask is repeated with growing pauses, until `timeout` has passed without a change."""

    async def work(context, updater):
        await updater.start_work()
        await asyncio.Event().wait()

    # After the stream, GetTask works and SubscribeToTask does not.
    server.does(work).line.first = [cut(1), *[passes, answers(503)] * 6]
    with FakeClock() as clock:
        async with client_for(server.base, STREAM, timeout=10) as client:
            with pytest.raises(ServiceUnavailableError):
                await events_of(client)
    assert clock.waits == [0.5, 1, 2, 4, 5]
