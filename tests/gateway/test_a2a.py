"""A2A through the gateway: reads are repeated, messages are not, failures pass unchanged and are recorded."""

import asyncio
import json

import pytest
from msgspec.structs import replace

import amends
from tests.gateway.peers import Upstream, answer, get, http, raw, serving
from tests.gateway.test_http_upstream import parts

JSON = b"content-type: application/json"
FAILED = {
    "jsonrpc": "2.0",
    "id": 1,
    "result": {
        "id": "t",
        "contextId": "c",
        "kind": "task",
        "status": {"state": "failed"},
        "artifacts": [
            {
                "artifactId": "e",
                "parts": [
                    {
                        "kind": "data",
                        "data": {
                            "adcp_error": {"code": "CONFLICT", "message": "Taken", "recovery": "correctable"}
                        },
                    }
                ],
            }
        ],
    },
}


def a2a(up):
    return http(up, name="agent", kind="a2a", url=f"{up.url}/a2a", prefix="/agent")


async def ask(gateway, method):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}}).encode()
    return parts(await raw(gateway, get("/agent", JSON, method="POST", body=body)))


@pytest.mark.parametrize(
    ("method", "calls"), [("tasks/get", 2), ("GetTask", 2), ("message/send", 1), ("SendMessage", 1)]
)
async def test_what_is_repeated(method, calls):
    """A connection that breaks is no proof that nothing was executed."""
    async with Upstream("close", answer(200, b'{"jsonrpc":"2.0","id":1,"result":{}}', JSON)) as up:  # noqa: SIM117
        async with serving(a2a(up)) as gateway:
            _, _, body = await ask(gateway, method)
            assert len(up.requests) == calls
            assert ("error" in json.loads(body)) == (calls == 1)


async def test_a_failed_task_passes_unchanged_and_is_recorded(tmp_path):
    """Its parts too; the card and REST paths lead to the agent."""
    body = json.dumps(FAILED, indent=1).encode()
    with amends.record(f"sqlite:///{tmp_path}/r.db") as recorder:
        async with Upstream(answer(200, body, JSON)) as up, serving(a2a(up)) as gateway:
            assert (await ask(gateway, "message/send"))[2] == body
            await raw(gateway, get("/agent/.well-known/agent-card.json"))
            await raw(gateway, get("/agent/v1/tasks/7"))
            assert [request.split(b" ")[1] for request in up.requests] == [
                b"/a2a",
                b"/.well-known/agent-card.json",
                b"/a2a/v1/tasks/7",
            ]
            await asyncio.to_thread(recorder.flush)
    assert [event.fault.code for event in recorder.recent()] == ["CONFLICT"]


async def test_translation_to_adcp_when_asked():
    """An error of the request carries an AdCP error; a failed task, which has an id, keeps its form."""
    error = json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "at db.internal"}})
    task = json.dumps(FAILED).encode()
    async with Upstream(answer(200, error.encode(), JSON), answer(200, task, JSON)) as up:
        config = replace(a2a(up), translate="adcp")
        async with serving(config) as gateway:
            _, _, body = await ask(gateway, "message/send")
            assert json.loads(body)["error"]["data"]["adcp_error"]["code"] == "SERVICE_UNAVAILABLE"
            assert b"db.internal" not in body
            assert (await ask(gateway, "message/send"))[2] == task
