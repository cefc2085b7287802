"""A client that sends and receives raw frames, so that tests see exactly what is on the wire."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from amends.arcp.transports.memory import pair
from amends.arcp.wire import FEATURES, envelope, write

TOKENS = {"alice-token": "alice", "bob-token": "bob"}


class Raw:
    """One connection to a runtime, and all messages it has received."""

    def __init__(self, connection: Any, serving: asyncio.Task[None] | None = None) -> None:
        self.connection = connection
        self.serving = serving
        self.session_id: str | None = None
        self.welcome: dict[str, Any] = {}
        self.seen: list[dict[str, Any]] = []
        """All received messages, in order."""

    async def send(self, type: str, payload: Any = None, **more: Any) -> str:
        message = envelope(
            type, {} if payload is None else payload, **{"session_id": self.session_id, **more}
        )
        await self.connection.send(write(message))
        return message.id

    async def receive(self, within: float = 100.0) -> dict[str, Any] | None:
        async with asyncio.timeout(within):
            frame = await self.connection.receive()
        if frame is None:
            return None
        message = msgspec.json.decode(frame)
        self.seen.append(message)
        return message

    async def until(self, wanted: Any, within: float = 100.0) -> dict[str, Any]:
        """Return the next message of a type, or the next one that a function accepts."""
        async with asyncio.timeout(within):
            while True:
                message = await self.receive(within)
                assert message is not None, (
                    f"closed while waiting for {wanted}; seen {[m['type'] for m in self.seen]}"
                )
                if message["type"] == wanted if isinstance(wanted, str) else wanted(message):
                    return message

    async def end(self, job_id: str, within: float = 100.0) -> dict[str, Any]:
        """Return the terminal message of a job."""
        return await self.until(
            lambda m: (
                m["type"] in {"job.result", "job.error"} and m.get("job_id") == job_id and "event_seq" in m
            ),
            within,
        )

    async def answer(self, request: str, within: float = 100.0) -> dict[str, Any]:
        """Return the answer to a request."""
        return await self.until(lambda m: m["payload"].get("request_id") == request, within)

    async def hello(
        self,
        token: str | None = "alice-token",
        *,
        features: Any = FEATURES,
        resume: Any = None,
        name: str = "raw",
        id: str | None = None,
        more: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Send a hello; `name`, `id` and `more` members are those of an SDK to imitate."""
        payload: dict[str, Any] = {
            "client": {"name": name, "version": "1"},
            "capabilities": {"encodings": ["json"], "features": list(features)},
        }
        if token is not None:
            payload["auth"] = {"scheme": "bearer", "token": token}
        if resume is not None:
            payload["resume"] = resume
        payload |= more or {}
        await self.send("session.hello", payload, session_id=None, id=id)
        message = await self.receive()
        assert message is not None
        if message["type"] == "session.welcome":
            self.welcome = message["payload"]
            self.session_id = message["session_id"]
        return message

    async def submit(self, agent: str, input: Any = None, **more: Any) -> dict[str, Any]:
        """Submit a job, and return the answer."""
        trace = {"trace_id": more.pop("trace_id")} if "trace_id" in more else {}
        request = await self.send("job.submit", {"agent": agent, "input": input, **more}, **trace)
        return await self.answer(request)

    async def run(self, agent: str, input: Any = None, **more: Any) -> dict[str, Any]:
        """Submit a job, and return its terminal message."""
        accepted = await self.submit(agent, input, **more)
        assert accepted["type"] == "job.accepted", accepted
        return await self.end(accepted["payload"]["job_id"])

    def resume_block(self, last: int | None = None) -> dict[str, Any]:
        numbers = [m["event_seq"] for m in self.seen if "event_seq" in m]
        return {
            "session_id": self.session_id,
            "resume_token": self.welcome["resume_token"],
            "last_event_seq": (numbers[-1] if numbers else 0) if last is None else last,
        }

    def events(self, job_id: str, kind: str | None = None) -> list[dict[str, Any]]:
        return [
            m
            for m in self.seen
            if m["type"] == "job.event" and m["job_id"] == job_id and kind in {None, m["payload"]["kind"]}
        ]

    async def close(self) -> None:
        await self.connection.close()
        if self.serving is not None:
            await asyncio.wait([self.serving], timeout=5)


def dial(runtime: Any, **options: Any) -> Raw:
    """Open a connection in memory."""
    ours, theirs = pair(**options)
    return Raw(ours, asyncio.ensure_future(runtime.serve(theirs)))


async def connected(runtime: Any, token: str = "alice-token", **options: Any) -> Raw:
    """Open a connection in memory and complete the handshake."""
    raw = dial(runtime)
    message = await raw.hello(token, **options)
    assert message["type"] == "session.welcome", message
    return raw
