"""A message that may have had an effect, or whose content was yielded, is repeated only if that is safe."""

import pytest
from a2a.types.a2a_pb2 import Part

from amends import Operation, arecover
from amends.errors import RateLimitedError, ServiceUnavailableError
from amends.recovery import NONE
from amends.testing import FakeClock
from tests.bindings.a2a_client.clients import ONCE, STREAMS, client_for, some_paths
from tests.bindings.agents import events_of, failing, request, works


@some_paths
async def test_a_message_that_may_have_had_an_effect_is_not_repeated(path, server):
    """A foreign exception in the agent: one call, and the decision is verify."""
    server.does(failing(OSError("x")))
    async with client_for(server.base, path) as client:
        with pytest.raises(ServiceUnavailableError) as caught:
            await events_of(client)
    assert caught.value.decision.action == "verify"
    assert caught.value.fault.extensions["trace_id"]
    assert server.agent.calls == 1


@pytest.mark.parametrize("declared", ["client", "function", "around"])
async def test_a_repeatable_message_is_repeated(declared, server):
    """Declared by the client, by a function, or by a `recover` around the call. The message id is the same each time."""
    ids = []

    async def work(context, updater):
        ids.append(context.message.message_id)
        if len(ids) < 3:
            raise OSError
        await works(context, updater)

    server.does(work)
    options = {"client": {"repeatable": True}, "function": {"repeatable": lambda sent: True}}
    sent = request()
    sent.message.message_id = ""
    with FakeClock():
        async with client_for(server.base, ONCE, **options.get(declared, {})) as client:
            if declared == "around":
                around = Operation(idempotent=True, key="k")
                await arecover(events_of, client, sent, operation=around, policy=NONE)
            else:
                await events_of(client, sent)
    assert len(ids) == 3
    assert len(set(ids)) == 1
    assert ids[0]
    assert not sent.message.message_id


@pytest.mark.parametrize("path", STREAMS, ids=str)
async def test_a_message_is_not_repeated_after_content(path, server):
    """The caller has got an artifact already."""

    async def work(context, updater):
        await updater.add_artifact([Part(text="once upon")], artifact_id="story")
        raise RateLimitedError("Slow down", retry_after=1)

    server.does(work)
    async with client_for(server.base, path) as client:
        events = []
        with pytest.raises(RateLimitedError) as caught:
            async for event in client.send_message(request()):
                events.append(event)
    assert [event.WhichOneof("payload") for event in events] == ["task", "artifact_update"]
    assert (server.agent.calls, caught.value.decision.reason) == (1, "delivered")


async def test_a_message_for_a_task_that_failed_is_not_sent_again(server):
    """A failed task accepts no further message."""

    async def work(context, updater):
        if context.current_task is None:
            await updater.requires_input()
        else:
            raise RateLimitedError("Slow down", retry_after=1)

    server.does(work)
    async with client_for(server.base, ONCE) as client:
        (event,) = await events_of(client)
        task = event["task"]
        with pytest.raises(RateLimitedError):
            await events_of(client, request(task_id=task["id"], context_id=task["contextId"]))
    assert server.agent.calls == 2
