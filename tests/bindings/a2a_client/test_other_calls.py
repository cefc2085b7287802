"""Reading, cancelling and following tasks; lists, notification settings and cards."""

import asyncio
from contextlib import aclosing, asynccontextmanager

import httpx
import pytest
from a2a.client import ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Part,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import A2AError
from google.protobuf.json_format import ParseDict

from amends import FaultError, extract
from amends.bindings.a2a import Client
from amends.core.enums import Executed
from amends.errors import ConflictError, NotFoundError, ValidationError
from amends.errors.adcp import BudgetTooLowError
from amends.recovery import NONE
from amends.testing import FakeClock
from tests.bindings.a2a_client.clients import ONCE, STREAM, client_for, some_paths
from tests.bindings.a2a_client.lines import answers, broken, lost
from tests.bindings.agents import PATHS, card, config, events_of, http_client, request


@asynccontextmanager
async def at_work(server, path):
    """A client, and the id of a task that works until it is cancelled."""
    ids = []

    async def work(context, updater):
        await updater.start_work()
        ids.append(context.task_id)
        await asyncio.Event().wait()

    async def stop(context, updater):
        await updater.cancel()

    async def working(client):
        try:
            task = await client.get_task(GetTaskRequest(id=ids[0]))
        except (IndexError, FaultError):
            return False
        return task.status.state == TaskState.TASK_STATE_WORKING

    server.does(work, stop=stop)
    async with client_for(server.base, path) as client:
        sending = asyncio.ensure_future(events_of(client))
        while not await working(client):
            await asyncio.sleep(0.01)
        yield client, ids[0]
        await asyncio.gather(sending, return_exceptions=True)


@some_paths
async def test_get_task_and_cancel_task_are_repeated(path, server):
    """Reading is read-only, and cancelling is idempotent."""
    flaky = [answers(503)] if path.binding == "JSONRPC" else []
    async with at_work(server, path) as (client, id):
        with FakeClock():
            server.line.first = list(flaky)
            task = await client.get_task(GetTaskRequest(id=id))
            assert task.status.state == TaskState.TASK_STATE_WORKING
            with pytest.raises(NotFoundError if path.version == "1.0" else FaultError):
                await client.get_task(GetTaskRequest(id="nowhere"))
            server.line.first = list(flaky)
            task = await client.cancel_task(CancelTaskRequest(id=id))
        assert task.status.state == TaskState.TASK_STATE_CANCELED


async def test_a_lost_response_to_cancel_task(server):
    """The repeat is refused because the task is canceled already: that task is returned."""
    async with at_work(server, ONCE) as (client, id):
        with FakeClock():
            server.line.first = [lost]
            task = await client.cancel_task(CancelTaskRequest(id=id))
            assert task.status.state == TaskState.TASK_STATE_CANCELED
            with pytest.raises(ConflictError):
                await client.cancel_task(CancelTaskRequest(id=id))


async def test_a_lost_response_to_cancelling_a_completed_task(server):
    """The task was not canceled, so the error is raised."""
    async with client_for(server.base, ONCE) as client:
        done = (await events_of(client))[0]["task"]["id"]
        with FakeClock():
            server.line.first = [broken]
            with pytest.raises(ConflictError):
                await client.cancel_task(CancelTaskRequest(id=done))


async def test_following_a_task(server):
    """SubscribeToTask: the present state, then events until the final state; a failure is raised."""
    go = asyncio.Event()
    loop = asyncio.get_running_loop()
    error = None

    async def work(context, updater):
        await updater.start_work()
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(go.wait(), loop))
        if error is not None:
            raise error
        await updater.complete()

    server.does(work)
    for error in (None, ValidationError("Which day?")):
        for raises in ("fault", "nothing"):
            go.clear()
            async with client_for(server.base, STREAM, raises=raises) as client:
                async with aclosing(client.send_message(request())) as stream:
                    task_id = (await anext(stream)).task.id
                seen, raised = [], None
                try:
                    async for event in client.subscribe(SubscribeToTaskRequest(id=task_id)):
                        seen.append(event)
                        go.set()
                except ValidationError as exc:
                    raised = exc
                assert (raised is None) == (error is None or raises == "nothing")
                assert raised is None or raised.decision.action == "fix"
                assert seen[0].HasField("task")
                if raised is None:
                    # From an event, or from GetTask.
                    last = seen[-1].status_update if seen[-1].HasField("status_update") else seen[-1].task
                    wanted = "COMPLETED" if error is None else "FAILED"
                    assert last.status.state == TaskState.Value(f"TASK_STATE_{wanted}")
                with pytest.raises(NotFoundError if raises == "fault" else A2AError):
                    await anext(client.subscribe(SubscribeToTaskRequest(id="nowhere")))


@pytest.mark.parametrize("raises", ["fault", "nothing"])
@pytest.mark.parametrize("state", ["failed", None])
async def test_a_task_read_between_its_error_and_its_state(bare, raises, state):
    """It is followed until the failed state, or until nothing more comes."""
    error = {"code": "BUDGET_TOO_LOW", "message": "Below 500", "recovery": "correctable"}
    go = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def work(context, updater):
        part = Part()
        ParseDict({"adcp_error": error}, part.data.struct_value)
        await updater.start_work()
        await updater.add_artifact([part], artifact_id="error-result")
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(go.wait(), loop))
        if state is not None:
            await updater.failed()

    bare.does(work)
    async with http_client() as http:
        plain = ClientFactory(config(STREAM, httpx_client=http)).create(card(bare.base, STREAM))
        async with aclosing(plain.send_message(request())) as events:
            async for event in events:
                if event.HasField("artifact_update"):
                    break
        task_id = event.artifact_update.task_id

        async def go_on(response):
            # The response to GetTask has the state working: the agent continues only now.
            await response.aread()
            go.set()
            http.event_hooks["response"].remove(go_on)

        http.event_hooks["response"].append(go_on)
        seen, raised = [], None
        async with Client(plain, raises=raises, timeout=1 if state is None else 60) as client:
            try:
                async for event in client.subscribe(SubscribeToTaskRequest(id=task_id)):
                    seen.append(event)
            except BudgetTooLowError as exc:
                raised = exc
    assert (raised is None) == (raises == "nothing")
    if raises == "nothing":
        assert extract(seen[-1] if state is None else seen[0]).code == "BUDGET_TOO_LOW"
        last = seen[-1].status_update if seen[-1].HasField("status_update") else seen[-1].task
        assert (last.status.state == TaskState.TASK_STATE_FAILED) == (state is not None)
    else:
        assert not seen


async def test_lists_notification_settings_and_cards(server):
    """The other methods of the SDK's client, with recovery; what the agent does not support is an error."""
    async with client_for(server.base, ONCE) as client:
        (event,) = await events_of(client)
        task_id = event["task"]["id"]
        listed = await client.list_tasks(ListTasksRequest(context_id=event["task"]["contextId"]))
        assert [task.id for task in listed.tasks] == [task_id]
        for config_id in ("", "c"):
            wanted = TaskPushNotificationConfig(task_id=task_id, id=config_id, url="http://x.invalid/")
            with pytest.raises(FaultError):
                await client.create_task_push_notification_config(wanted)
        for call, kind in (
            (client.get_task_push_notification_config, GetTaskPushNotificationConfigRequest),
            (client.list_task_push_notification_configs, ListTaskPushNotificationConfigsRequest),
            (client.delete_task_push_notification_config, DeleteTaskPushNotificationConfigRequest),
        ):
            with pytest.raises(FaultError):
                await call(kind(task_id=task_id))
        assert (await client.get_extended_agent_card(GetExtendedAgentCardRequest())).name == "agent"
    old = next(path for path in PATHS if path.version == "0.3")
    async with client_for(server.base, old) as client:
        with pytest.raises(ValidationError):
            await client.list_tasks(ListTasksRequest())


@pytest.mark.parametrize(("status", "body"), [(200, b"no json"), (200, b"{}"), (500, b""), (503, b"")])
async def test_a_card_that_cannot_be_used(status, body):
    """No message was sent, so it had no effect."""
    transport = httpx.MockTransport(lambda _: httpx.Response(status, content=body))
    async with httpx.AsyncClient(transport=transport) as http:
        settings = ClientConfig(streaming=False, httpx_client=http)
        async with Client("http://agent.example", config=settings, policy=NONE, upstream=None) as client:
            with pytest.raises(FaultError) as caught:
                await events_of(client)
    assert caught.value.fault.executed is Executed.NO
    assert caught.value.decision.action.value == "escalate"
