"""A runtime played from a script: raw frames in memory, one script per connection, whatever a peer may do."""

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
        self.heard = []

    async def take(self, type=None):
        """The next message, or the next of a type; None when the client is gone."""
        while (frame := await self.connection.receive()) is not None:
            message = json.loads(frame)
            self.heard.append(message)
            if type is None or message["type"] == type:
                return message
        return None

    async def say(self, type, payload=None, **envelope):
        """A message."""
        frame = {"arcp": "1.1", "id": message_id(), "type": type, "payload": payload or {}, **envelope}
        await self.connection.send(json.dumps(frame))

    async def raw(self, data):
        """Whatever."""
        await self.connection.send(data)

    async def welcome(self, *, token=TOKEN, session=SESSION, window=600, **more):
        """Greet whoever comes; gives the hello."""
        hello = await self.take("session.hello")
        capabilities = {"features": list(FEATURES), "agents": ["echo"], **more.pop("capabilities", {})}
        payload = {
            "runtime": {"name": "scripted"},
            "resume_token": token,
            "resume_window_sec": window,
            **more,
        }
        await self.say(
            "session.welcome",
            {"session_id": session, "capabilities": capabilities, **payload},
            session_id=session,
        )
        return hello["payload"] if hello else None

    async def accept(self, job_id="job_1", **more):
        """Take a submission and accept it; gives it."""
        submit = await self.take("job.submit")
        payload = {
            "job_id": job_id,
            "agent": "echo@1",
            "request_id": submit["id"],
            "trace_id": "ab" * 16,
            **more,
        }
        await self.say("job.accepted", payload, job_id=job_id)
        return submit

    async def event(self, seq, body=None, kind="log", job_id="job_1"):
        """An event."""
        payload = {"kind": kind, "ts": "2026-05-13T19:42:13Z", "body": body or {}}
        await self.say("job.event", payload, job_id=job_id, event_seq=seq)

    async def result(self, seq, result=None, job_id="job_1", **more):
        """A success."""
        payload = {"final_status": "success", "result": result, **more}
        await self.say("job.result", payload, job_id=job_id, event_seq=seq)

    async def fail(self, seq, code="TIMEOUT", job_id="job_1", **more):
        """A failure."""
        payload = {"code": code, "message": "words", "final_status": "error", **more}
        await self.say("job.error", payload, job_id=job_id, event_seq=seq, trace_id="cd" * 16)

    async def close(self):
        """Hang up."""
        await self.connection.close()

    async def goodbye(self):
        """Answer whatever else comes, until the client leaves."""
        while (message := await self.take()) is not None:
            if message["type"] == "session.close":
                await self.say("session.closed", session_id=SESSION)
                return


class Scripted:
    """What `connect` dials: each connection plays the next script; past the last one nobody is there."""

    def __init__(self, *scripts, frames=256):
        self.scripts = list(scripts)
        self.frames = frames
        self.peers = []
        self.tasks = []

    async def __call__(self):
        if len(self.peers) >= len(self.scripts):
            raise ConnectionLost("nobody there")
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
        """Raise what a script raised."""
        await asyncio.gather(*self.tasks)
