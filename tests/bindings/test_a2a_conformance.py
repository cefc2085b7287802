"""
The SDK's own client on every path against one agent, bare and guarded: what works bare works guarded.

A2A's TCK is a repository and in no package index, so no recipe can install it; this is the check in its place.
"""

import asyncio

import pytest
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Part,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
)
from google.protobuf.json_format import MessageToDict

from amends import extract
from amends.bindings.a2a import guard
from tests.bindings.agents import PATHS, Agent, agent_server, events_of, plain_client, request

pytestmark = pytest.mark.usefixtures("quiet")

SECRET = "db-7.internal refused hunter2"


async def work(context, updater):
    """Do what the message says."""
    text = context.get_user_input()
    await updater.start_work()
    if text == "fail":
        raise OSError(SECRET)
    if text == "wait":
        await asyncio.Event().wait()
    if text == "ask":
        await updater.requires_input()
        return
    if text == "reject":
        await updater.reject()
        return
    await updater.add_artifact([Part(text=text)], artifact_id="result")
    await updater.complete()


async def stop(context, updater):
    await updater.cancel()


def states(events):
    """Return the last state of a task."""
    found = []
    for event in events:
        for kind in ("task", "statusUpdate"):
            state = event.get(kind, {}).get("status", {}).get("state")
            if state:
                found.append(state)
    return found[-1]


def task_id(events):
    for event in events:
        for kind, member in (("task", "id"), ("statusUpdate", "taskId"), ("artifactUpdate", "taskId")):
            if member in event.get(kind, {}):
                return event[kind][member]
    raise AssertionError(events)


async def observe(base, path):
    """Return what the client sees for every request, with everything that differs between two runs left out."""
    seen = {}
    async with plain_client(base, path) as client:
        done = await events_of(client, request("tea"))
        seen["completed"] = states(done)
        for text in ("ask", "reject"):
            seen[text] = states(await events_of(client, request(text)))
        id = task_id(done)
        got = MessageToDict(await client.get_task(GetTaskRequest(id=id)))
        seen["get"] = got["status"]["state"], [part["text"] for part in got["artifacts"][0]["parts"]]
        for name, method, message in (
            ("get unknown", client.get_task, GetTaskRequest(id="none")),
            ("cancel unknown", client.cancel_task, CancelTaskRequest(id="none")),
            ("cancel completed", client.cancel_task, CancelTaskRequest(id=id)),
            ("push", client.create_task_push_notification_config, TaskPushNotificationConfig(task_id=id)),
        ):
            seen[name] = await raised(method(message))
        seen["list"] = await raised(client.list_tasks(ListTasksRequest(page_size=1)))
        seen["subscribe unknown"] = await raised(consume(client.subscribe(SubscribeToTaskRequest(id="none"))))
        seen["continue unknown"] = await raised(events_of(client, request("tea", task_id="none")))
    return seen


async def consume(events):
    async for _ in events:
        pass


async def raised(call):
    """Return the name of the class that a call raises, or None."""
    try:
        await call
    except Exception as error:
        return type(error).__name__
    return None


def codes(events):
    return [fault.code for event in events if (fault := extract(event)) is not None]


async def failed(base, path):
    """Return the events of a failed task, or the exception that the client raises."""
    async with plain_client(base, path) as client:
        try:
            return await events_of(client, request("fail"))
        except Exception as error:
            return [error]


@pytest.mark.parametrize("path", PATHS, ids=str)
async def test_what_works_bare_works_guarded(path):
    """Every request; and a failure of the agent, which has no code bare, has one."""
    with agent_server(Agent(work, stop=stop)) as base:
        bare, plain = await observe(base, path), await failed(base, path)
    with agent_server(guard(Agent(work, stop=stop)), wrap=guard) as base:
        assert await observe(base, path) == bare
        events = await failed(base, path)
    assert codes(plain) == []
    assert set(codes(events)) == {"SERVICE_UNAVAILABLE"}
    assert SECRET not in str(events)
