"""What may have happened, or was handed on, is not sent again unless that is known to be safe."""

import pytest
from a2a.types.a2a_pb2 import Part

from amends import Operation, arecover
from amends.errors import RateLimitedError, ServiceUnavailableError
from amends.recovery import NONE
from amends.testing import FakeClock
from tests.bindings.a2a_client.asking import ONCE, STREAMS, client_for, some_paths
from tests.bindings.agents import events_of, failing, request, works


@some_paths
async def test_what_may_have_happened_is_not_repeated(path, desk):
    """A foreign exception on the other side: one call, and the advice to verify."""
    desk.does(failing(OSError("x")))
    async with client_for(desk.base, path) as client:
        with pytest.raises(ServiceUnavailableError) as caught:
            await events_of(client)
    assert caught.value.decision.action == "verify"
    assert caught.value.fault.extensions["trace_id"]
    assert desk.agent.calls == 1


@pytest.mark.parametrize("said", ["client", "function", "around"])
async def test_unless_the_agent_is_known_to_take_it_for_one(said, desk):
    """The same message id each time, so that an agent that looks can know it."""
    ids = []

    async def work(context, updater):
        ids.append(context.message.message_id)
        if len(ids) < 3:
            raise OSError
        await works(context, updater)

    desk.does(work)
    options = {"client": {"repeatable": True}, "function": {"repeatable": lambda sent: True}}
    sent = request()
    sent.message.message_id = ""
    with FakeClock():
        async with client_for(desk.base, ONCE, **options.get(said, {})) as client:
            if said == "around":
                around = Operation(idempotent=True, key="k")
                await arecover(events_of, client, sent, operation=around, policy=NONE)
            else:
                await events_of(client, sent)
    assert len(ids) == 3
    assert len(set(ids)) == 1
    assert ids[0]
    assert not sent.message.message_id


@pytest.mark.parametrize("path", STREAMS, ids=str)
async def test_what_was_handed_on_is_not_taken_back(path, desk):
    """After a piece of content there is no second beginning."""

    async def work(context, updater):
        await updater.add_artifact([Part(text="once upon")], artifact_id="story")
        raise RateLimitedError("Slow down", retry_after=1)

    desk.does(work)
    async with client_for(desk.base, path) as client:
        events = []
        with pytest.raises(RateLimitedError) as caught:
            async for event in client.send_message(request()):
                events.append(event)
    assert [event.WhichOneof("payload") for event in events] == ["task", "artifact_update"]
    assert (desk.agent.calls, caught.value.decision.reason) == (1, "attempts")


async def test_a_message_for_a_task_that_failed_is_not_sent_again(desk):
    """It takes no further one."""

    async def work(context, updater):
        if context.current_task is None:
            await updater.requires_input()
        else:
            raise RateLimitedError("Slow down", retry_after=1)

    desk.does(work)
    async with client_for(desk.base, ONCE) as client:
        (event,) = await events_of(client)
        task = event["task"]
        with pytest.raises(RateLimitedError):
            await events_of(client, request(task_id=task["id"], context_id=task["contextId"]))
    assert desk.agent.calls == 2
