"""An answer that is lost or breaks off is looked for by its task; a stream is taken up where the task is."""

import asyncio
from contextlib import aclosing

import pytest
from a2a.types.a2a_pb2 import Part, TaskState

from amends import FaultError
from amends.errors import (
    ConflictError,
    ServiceUnavailableError,
    TimeoutError,  # noqa: A004
    ValidationError,
)
from amends.recovery import NONE
from amends.testing import FakeClock
from tests.bindings.a2a_client.asking import ONCE, STREAM, STREAMS, client_for, every_path, some_paths, states
from tests.bindings.a2a_client.lines import answers, broken, cut, lost
from tests.bindings.agents import events_of, failing, request, works


@every_path
async def test_a_lost_answer_is_looked_for_by_its_task(path, desk):
    """GetTask: the message is in its history, so it arrived; the task says what came of it."""

    async def work(context, updater):
        if context.current_task is None:
            await updater.requires_input()
        else:
            await works(context, updater)

    desk.does(work)
    async with client_for(desk.base, path) as client:
        first = (await events_of(client))[-1]
        task = first.get("task") or first["statusUpdate"]
        desk.line.first = [lost]
        ids = {"task_id": task.get("id", task.get("taskId")), "context_id": task["contextId"]}
        with FakeClock():
            events = [event async for event in client.send_message(request(**ids))]
    assert states(events)[-1] == "COMPLETED"
    assert events[-1].task.artifacts[0].parts[0].text == "done"
    assert desk.agent.calls == 2


@pytest.mark.parametrize("path", [ONCE, STREAM], ids=str)
async def test_a_lost_answer_is_looked_for_by_its_context(path, desk):
    """ListTasks, which 0.3 has not; a failure found that way is raised like any other."""
    desk.line.first = [lost]
    async with client_for(desk.base, path) as client:
        with FakeClock():
            events = [event async for event in client.send_message(request(context_id=f"c-{path}"))]
            assert states(events) == ["COMPLETED"]
            desk.does(failing(ConflictError("Taken"))).line.first = [lost]
            with pytest.raises(FaultError) as caught:
                await events_of(client, request(context_id=f"d-{path}"))
    assert (caught.value.fault.code, caught.value.fault.message) == ("CONFLICT", "Taken")
    assert caught.value.decision is not None
    assert desk.agent.calls == 1


@some_paths
async def test_a_lost_answer_nobody_can_find_is_not_sent_again(path, desk):
    """No task, no context, or a protocol without ListTasks: one call, and the advice to verify."""
    async with client_for(desk.base, path) as client:
        for sent in (request(), request(context_id="c-3") if path.version == "0.3" else request()):
            desk.does(works).line.first = [lost]
            with pytest.raises(ServiceUnavailableError) as caught:
                await events_of(client, sent)
            assert caught.value.decision.action == "verify"
            assert desk.agent.calls == 1


async def test_a_lookup_that_finds_nothing_proves_nothing(desk):
    """The message may still be on its way."""
    desk.line.first = [broken]
    async with client_for(desk.base, ONCE) as client:
        with pytest.raises(ServiceUnavailableError) as caught:
            await events_of(client, request(context_id="nobody"))
    assert caught.value.decision.action == "verify"
    assert desk.agent.calls == 0


@pytest.mark.parametrize("after", [1, 2, 3])
@pytest.mark.parametrize("path", STREAMS, ids=str)
async def test_a_stream_that_breaks_is_taken_up_where_the_task_is(path, after, desk):
    """By GetTask and SubscribeToTask: nothing is sent twice, and the end arrives."""
    go = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def work(context, updater):
        await updater.start_work()
        await updater.add_artifact([Part(text="half")], artifact_id="a")
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(go.wait(), loop))
        await updater.add_artifact([Part(text="whole")], artifact_id="b")
        await updater.complete()

    desk.does(work).line.first = [cut(after)]
    async with client_for(desk.base, path) as client:
        events = []
        async with aclosing(client.send_message(request())) as stream:
            async for event in stream:
                events.append(event)
                if event.HasField("task") and len(events) > 1:
                    go.set()
    assert desk.agent.calls == 1
    texts = str(events)
    assert "half" in texts
    assert "whole" in texts
    last = events[-1]
    final = last.task.status if last.HasField("task") else last.status_update.status
    assert final.state == TaskState.TASK_STATE_COMPLETED


@pytest.mark.parametrize("path", STREAMS, ids=str)
async def test_a_broken_stream_whose_task_failed_says_so(path, desk):
    """The failure is the task's, not the line's."""
    desk.does(failing(ValidationError("Which day?", field="/day"))).line.first = [cut(1)]
    async with client_for(desk.base, path) as client:
        with pytest.raises(ValidationError) as caught:
            await events_of(client)
    assert caught.value.fault.field == "/day"


async def test_a_task_that_cannot_be_found_again_is_the_lines_failure(desk):
    """The stream broke, and the agent knows nothing of its task."""
    desk.line.first = [cut(1), answers(503)]
    async with client_for(desk.base, STREAM, policy=NONE) as client:
        with pytest.raises(ServiceUnavailableError) as caught:
            await events_of(client)
    assert caught.value.fault.status is None


async def test_a_stream_that_ends_early_is_looked_after(desk):
    """Closed politely before the agent's turn was over: the task knows more."""

    async def ended(app, scope, receive, send):
        messages = []

        async def kept(message):
            messages.append(message)

        await app(scope, receive, kept)
        await send(messages[0])
        await send({**messages[1], "more_body": False})

    desk.line.first = [ended]
    async with client_for(desk.base, STREAM) as client:
        events = [event async for event in client.send_message(request())]
    assert states(events)[-1] == "COMPLETED"


async def test_an_agent_that_stays_at_work_may(desk):
    """The stream ended politely, and the task is not done: it is looked at once."""

    async def work(context, updater):
        await updater.start_work()

    desk.does(work)
    async with client_for(desk.base, STREAM) as client:
        events = [event async for event in client.send_message(request())]
    assert states(events) == ["SUBMITTED", "WORKING"]


async def test_a_task_without_a_sign_is_given_up_on(desk):
    """The stream broke, and nothing happens any more: looked at with growing pauses, for as long as a sign may take."""

    async def work(context, updater):
        await updater.start_work()
        await asyncio.Event().wait()

    desk.does(work).line.first = [cut(1)]
    with FakeClock() as clock:
        async with client_for(desk.base, STREAM, timeout=0.6) as client:
            with pytest.raises(TimeoutError):
                await events_of(client)
    assert clock.waits == [0.5, 1]
