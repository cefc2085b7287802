"""
Recordings of our client's sessions on another SDK's runtime, replayed to our client without that SDK.

Record them again with `ARCP_TYPESCRIPT_RECORD=1 make soak`, or `AMENDS_GO_RECORD=1` for the Go SDK. A connection is a list of frames, each with who sent it; of
the client's frames the type and the id. Heartbeats and acknowledgements are left out, because their number depends on the time.
"""

import json
import os
from pathlib import Path

from amends.arcp.transports import Connection, ConnectionLost
from tests.arcp.scripted import Scripted

FILE = Path(__file__).parent / "recorded.jsonl"
NOT_RECORDED = {
    "a_lost_connection",
    "a_thousand_events",
    "fifty_jobs_at_once",
    "heartbeats_of_an_idle_session",
    "retries_under_one_key",
}
"""Cases that are long, or that need a socket."""
_TIMED = {"session.ping", "session.pong", "session.ack"}


class Recorder:
    """Wraps a dial function, and keeps the frames of its connections."""

    def __init__(self, dial):
        self._dial = dial
        self.connections = []

    async def __call__(self):
        frames = []
        self.connections.append(frames)
        return _Recorded(await self._dial(), frames)


class _Recorded:
    def __init__(self, connection, frames):
        self._connection = connection
        self._frames = frames

    def __getattr__(self, name):
        return getattr(self._connection, name)

    async def send_all(self, frames):
        self._keep("client", *frames)
        await self._connection.send_all(frames)

    async def send(self, frame):
        await self.send_all([frame])

    def post(self, frames):
        sent = self._connection.post(frames)
        if sent:
            self._keep("client", *frames)
        return sent

    async def receive(self):
        frame = await self._connection.receive()
        if frame is not None:
            self._keep("runtime", frame)
        return frame

    async def receive_into(self, take):
        return await Connection.receive_into(self, take)

    def _keep(self, side, *frames):
        for frame in frames:
            message = json.loads(frame)
            if message["type"] in _TIMED:
                continue
            if side == "client":
                message = {"type": message["type"], "id": message["id"]}
            self._frames.append([side, message])


def write(recorded, file=FILE):
    """Write the connections of all cases: name → connections."""
    lines = [json.dumps({"case": name, "connections": made}) for name, made in sorted(recorded.items())]
    file.write_text("\n".join(lines) + "\n")


def read(file=FILE):
    """Return name → connections."""
    entries = map(json.loads, file.read_text().splitlines())
    return {entry["case"]: entry["connections"] for entry in entries}


def recording():
    """Whether the cases are to be recorded."""
    return bool(os.environ.get("ARCP_TYPESCRIPT_RECORD"))


def replay(connections):
    """Return a dial function: each connection plays a recorded one."""

    def script(frames):
        async def play(peer):
            renamed = {}
            for side, recorded in frames:
                if side == "runtime":
                    text = json.dumps(recorded)
                    for old, new in renamed.items():
                        text = text.replace(old, new)
                    await peer.raw(text)
                    continue
                while (message := await peer.take()) is not None and message["type"] in _TIMED:
                    continue
                if message is None:
                    raise ConnectionLost("the client closed the connection")
                assert message["type"] == recorded["type"], (message, recorded)
                renamed[recorded["id"]] = message["id"]
            while await peer.take() is not None:
                continue

        return play

    return Scripted(*map(script, connections))
