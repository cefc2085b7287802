"""A scripted runtime: one script per connection sends raw frames in memory, including invalid ones."""

import asyncio
import json

from amends.arcp.transports import ConnectionLost, memory
from amends.arcp.wire import FEATURES, message_id

TOKEN = "rt_1"
SESSION = "sess_1"


class Peer:
    """The runtime's end of one connection."""

    def __init__(self, connection):
        self.connection = connection
        self.received = []

    async def take(self, type=None):
        """Return the next message, or the next of a type; None after the client has closed the connection."""
        while (frame := await self.connection.receive()) is not None:
            message = json.loads(frame)
            self.received.append(message)
            if type is None or message["type"] == type:
                return message
        return None

    async def send(self, type, payload=None, **envelope):
        """Send a message."""
        frame = {"arcp": "1.1", "id": message_id(), "type": type, "payload": payload or {}, **envelope}
        await self.connection.send(json.dumps(frame).encode())

    async def raw(self, data):
        """Send data as it is."""
        await self.connection.send(data)

    async def welcome(self, *, token=TOKEN, session=SESSION, window=600, **more):
        """Answer the hello with a welcome, and return the hello."""
        hello = await self.take("session.hello")
        capabilities = {"features": list(FEATURES), "agents": ["echo"], **more.pop("capabilities", {})}
        payload = {
            "runtime": {"name": "scripted"},
            "resume_token": token,
            "resume_window_sec": window,
            **more,
        }
        await self.send(
            "session.welcome",
            {"session_id": session, "capabilities": capabilities, **payload},
            session_id=session,
        )
        return hello["payload"] if hello else None

    async def accept(self, job_id="job_1", **more):
        """Accept the next submission, and return it."""
        submit = await self.take("job.submit")
        payload = {
            "job_id": job_id,
            "agent": "echo@1",
            "request_id": submit["id"],
            "trace_id": "ab" * 16,
            **more,
        }
        await self.send("job.accepted", payload, job_id=job_id)
        return submit

    async def event(self, seq, body=None, kind="log", job_id="job_1"):
        """Send an event."""
        payload = {"kind": kind, "ts": "2026-05-13T19:42:13Z", "body": body or {}}
        await self.send("job.event", payload, job_id=job_id, event_seq=seq)

    async def result(self, seq, result=None, job_id="job_1", **more):
        """Send a successful result."""
        payload = {"final_status": "success", "result": result, **more}
        await self.send("job.result", payload, job_id=job_id, event_seq=seq)

    async def fail(self, seq, code="TIMEOUT", job_id="job_1", **more):
        """Send a failure."""
        payload = {"code": code, "message": "a message", "final_status": "error", **more}
        await self.send("job.error", payload, job_id=job_id, event_seq=seq, trace_id="cd" * 16)

    async def close(self):
        """Close the connection."""
        await self.connection.close()

    async def goodbye(self):
        """Read messages until the client closes the session."""
        while (message := await self.take()) is not None:
            if message["type"] == "session.close":
                await self.send("session.closed", session_id=SESSION)
                return


class Scripted:
    """The dial function for `connect`: each connection runs the next script; after the last one, dialling fails."""

    def __init__(self, *scripts, frames=256):
        self.scripts = list(scripts)
        self.frames = frames
        self.peers = []
        self.tasks = []

    async def __call__(self):
        if len(self.peers) >= len(self.scripts):
            raise ConnectionLost("connection refused")
        near, far = memory.pair(frames=self.frames)
        peer = Peer(far)
        script = self.scripts[len(self.peers)]
        self.peers.append(peer)
        self.tasks.append(asyncio.create_task(self._play(script, peer)))
        return near

    @staticmethod
    async def _play(script, peer):
        try:
            await script(peer)
        except ConnectionLost:
            pass
        finally:
            await peer.close()

    async def finished(self):
        """Wait for all scripts, and raise their exceptions."""
        await asyncio.gather(*self.tasks)
