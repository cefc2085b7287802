"""The probes of an ARCP runtime: wrong tokens and versions, broken frames, and jobs and agents that do not exist."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import msgspec

from amends.audit.surfaces.evidence import Answer, Evidence, answered, not_probed
from amends.audit.surfaces.exchange import TIMEOUT, USER_AGENT, document

try:
    from websockets.asyncio.client import connect
except ImportError as missing:
    raise ImportError("amends audit arcp needs an extra: pip install 'amends[arcp]'") from missing

__all__ = ["observe_arcp"]

VERSION = "1.1"
_ERRORS = frozenset({"session.error", "job.error", "session.bye", "error"})


async def observe_arcp(url: str, *, token: str | None = None) -> Evidence:
    """
    Send the probes and return what was answered.

    Args:
        url: ws: or wss: address of the runtime.
        token: a bearer token; without it only what happens before a session is open is probed.

    """
    answers = [
        await _opening(
            url, "expired-credentials", "session.hello with an unknown token", _hello("amends-audit")
        ),
        await _opening(url, "no-credentials", "session.hello without a token", _hello(None)),
        await _opening(url, "broken-json", "a broken frame", b'{"arcp": '),
        await _opening(url, "unsupported-version", "arcp 99", _frame("session.hello", {}, version="99")),
    ]
    if token is None:
        answers.append(not_probed("unknown-agent", "needs --token: a session"))
        return Evidence(surface="arcp", target=url, answers=answers)
    async with _session(url, token) as session:
        agent = {"agent": "amends-audit-unknown", "input": {}}
        answers.append(await session.probe("unknown-agent", "job.submit", agent))
        unknown = {"job_id": "job_amends_audit"}
        answers.append(await session.probe("unknown-job", "job.cancel", unknown))
        answers.append(await session.probe("unknown-job", "job.subscribe", unknown))
        answers.append(await session.probe("malformed-call", "job.submit", {"agent": 7}))
        version = session.version
    return Evidence(surface="arcp", target=url, answers=answers, version=version)


def _frame(kind: str, payload: Any, *, version: str = VERSION, session_id: str | None = None) -> bytes:
    frame = {"arcp": version, "id": f"msg_audit_{next(_IDS)}", "type": kind, "payload": payload}
    return msgspec.json.encode(frame | ({"session_id": session_id} if session_id else {}))


_IDS = count(1)


def _hello(token: str | None) -> bytes:
    payload: dict[str, Any] = {"client": {"name": "amends-audit", "version": "1"}, "capabilities": {}}
    if token is not None:
        payload["auth"] = {"scheme": "bearer", "token": token}
    return _frame("session.hello", payload)


def _open(url: str) -> connect:
    return connect(url, open_timeout=TIMEOUT, close_timeout=1, user_agent_header=USER_AGENT, max_size=1 << 20)


async def _opening(url: str, name: str, sent: str, frame: bytes) -> Answer:
    """Send a first frame that must be refused, and return what is answered before the connection is closed."""
    try:
        async with asyncio.timeout(TIMEOUT), _open(url) as socket:
            await socket.send(frame.decode())
            received = document(await socket.recv())
    except Exception as error:  # noqa: BLE001 - a connection that is closed without an answer
        return Answer(probe=name, sent=sent, outcome="no-answer", because=type(error).__name__)
    return _answer(name, sent, received, url)


def _answer(name: str, sent: str, received: Any, url: str) -> Answer:
    kind = received.get("type") if isinstance(received, Mapping) else None
    payload = received.get("payload") if isinstance(received, Mapping) else None
    body = msgspec.json.encode(payload).decode("utf-8", "replace")
    failed = kind in _ERRORS or (isinstance(payload, Mapping) and "code" in payload)
    return answered(
        name,
        sent,
        received,
        failed=failed,
        body=body,
        target=url,
        because="" if failed else f"answered with {kind}",
    )


class _Session:
    """An open session."""

    def __init__(self, socket: Any, session_id: str | None, url: str, version: str) -> None:
        self._socket, self._id, self._url = socket, session_id, url
        self.version = version

    async def probe(self, name: str, kind: str, payload: dict[str, Any]) -> Answer:
        """Send a request that must fail, and return the first answer that is not a heartbeat."""
        try:
            async with asyncio.timeout(TIMEOUT):
                await self._socket.send(_frame(kind, payload, session_id=self._id).decode())
                while True:
                    received = document(await self._socket.recv())
                    if isinstance(received, Mapping) and not str(received.get("type")).startswith(
                        "session.p"
                    ):
                        return _answer(name, kind, received, self._url)
        except Exception as error:  # noqa: BLE001 - no answer in time
            return Answer(probe=name, sent=kind, outcome="no-answer", because=type(error).__name__)


@asynccontextmanager
async def _session(url: str, token: str) -> Any:
    async with _open(url) as socket:
        await socket.send(_hello(token).decode())
        async with asyncio.timeout(TIMEOUT):
            welcome = document(await socket.recv())
        payload = welcome.get("payload") if isinstance(welcome, Mapping) else None
        known: Mapping[str, Any] = payload if isinstance(payload, Mapping) else {}
        runtime = known.get("runtime")
        version = " ".join(map(str, runtime.values())) if isinstance(runtime, Mapping) else ""
        session_id = welcome.get("session_id") if isinstance(welcome, Mapping) else None
        yield _Session(socket, session_id or known.get("session_id"), url, version)
