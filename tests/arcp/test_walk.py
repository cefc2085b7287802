"""How many files a failed job passes through in the runtime's process, on SQLite; docs/architecture.md has the numbers."""

import asyncio
import json
import re
import sys
from pathlib import Path

import websockets

import amends
from amends.arcp import Runtime
from amends.arcp.runtime.tasks import Tasks
from amends.errors.arcp import PermissionDeniedError

SOURCE = Path(amends.__file__).parent


async def denied(given, ctx):
    raise PermissionDeniedError("no")


class Client:
    """Sends frames as text, so that nothing of it is counted."""

    def __init__(self, socket):
        self._socket = socket
        self._session = None

    async def _send(self, type, payload):
        frame = {"arcp": "1.1", "id": "m", "type": type, "payload": payload}
        if self._session:
            frame["session_id"] = self._session
        await self._socket.send(json.dumps(frame))

    async def hello(self):
        await self._send("session.hello", {"auth": {"token": "t"}, "capabilities": {"features": []}})
        self._session = json.loads(await self._socket.recv())["session_id"]

    async def fail(self):
        await self._send("job.submit", {"agent": "denied"})
        while json.loads(await self._socket.recv())["type"] != "job.error":
            continue


def in_background():
    """Whether this is a supervised task: what the node does beside the job, for example when the store signals a change."""
    task = asyncio.current_task()
    return task is not None and task.get_coro().__qualname__ == Tasks._restart_on_failure.__qualname__


async def walk(url):
    """The files that are called in turn, for the third job of a session."""
    steps = []

    def called(frame, event, argument):
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(str(SOURCE)) and not in_background():
            file = Path(name).relative_to(SOURCE).as_posix()
            if steps[-1:] != [file]:
                steps.append(file)

    runtime = Runtime(url, tokens={"t": "alice"})
    runtime.register_agent("denied", denied)
    async with runtime, runtime.listen(port=0) as listening, websockets.connect(listening.url) as socket:
        client = Client(socket)
        await client.hello()
        for _ in range(2):
            await client.fail()
        sys.setprofile(called)
        try:
            await client.fail()
        finally:
            sys.setprofile(None)
    return steps


async def test_the_walk_of_a_failed_job(sqlite_url):
    """
    A bounce is control that goes to another file and straight back.

    The shortest of five: whether the store answers before the writer's next turn differs from run to run.
    """
    steps = min([await walk(sqlite_url) for _ in range(5)], key=len)
    bounces = sum(one == third for one, third in zip(steps, steps[2:], strict=False))
    text = (SOURCE.parent.parent / "docs" / "architecture.md").read_text()
    files, most = map(
        int,
        re.search(
            r"A failed ARCP job on SQLite passes through (\d+) files .*?(\d+)\s+bounces", text
        ).groups(),
    )
    assert (files, most) <= (38, 15)
    assert len(set(steps)) == files
    assert bounces <= most
