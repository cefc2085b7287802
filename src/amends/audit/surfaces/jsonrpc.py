"""JSON-RPC over HTTP (plain or server-sent events) and over the pipes of a process, as probes need it: frames as received."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from types import TracebackType
from typing import Any, Protocol, Self

import msgspec

from amends.audit.surfaces.evidence import Answer, answered
from amends.audit.surfaces.exchange import TIMEOUT, Exchange, OutOfProbesError, Reply, document

__all__ = ["HttpPeer", "Peer", "ProcessPeer", "probe"]

_SSE = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
MAX_LINE = 1 << 20
START_TIMEOUT = 30.0
"""Seconds for the first answer of a process, which may have to load a large library."""


class Peer(Protocol):
    """Something that answers JSON-RPC."""

    async def call(self, method: str, params: Any) -> Any:
        """Return the response to a request, as received; an HTTP response without JSON-RPC as `extract` reads it."""
        ...

    async def notify(self, method: str) -> None:
        """Send a notification."""
        ...


class HttpPeer:
    """A JSON-RPC endpoint over HTTP. The session id of MCP is kept."""

    def __init__(self, exchange: Exchange, path: str, headers: Mapping[str, str] | None = None) -> None:
        self._exchange, self._path = exchange, path
        self.headers = dict(headers or {})
        self._ids = count(1)

    async def call(self, method: str, params: Any) -> Any:
        """Send a request."""
        number = next(self._ids)
        return await self.post({"jsonrpc": "2.0", "id": number, "method": method, "params": params}, number)

    async def post(self, frame: Any, number: int | None = None) -> Any:
        """Send a frame; bytes are sent as they are."""
        content = frame if isinstance(frame, bytes) else msgspec.json.encode(frame)
        reply = await self._exchange.send("POST", self._path, headers=_SSE | self.headers, content=content)
        session = reply.headers.get("mcp-session-id")
        if session:
            self.headers["Mcp-Session-Id"] = session
        return next((each for each in _frames(reply) if _answers(each, number)), reply.as_response())

    async def notify(self, method: str) -> None:
        """Send a notification; what the service answers does not matter."""
        with suppress(Exception):
            await self.post({"jsonrpc": "2.0", "method": method})


def _frames(reply: Reply) -> Iterable[Any]:
    if "text/event-stream" not in reply.headers.get("content-type", ""):
        return [reply.json]
    data = [line[5:].strip() for line in reply.text.splitlines() if line.startswith("data:")]
    return [document(each) for each in data]


def _answers(frame: Any, number: int | None) -> bool:
    """Return whether a frame is the response to request `number`; an error may have no id."""
    if not isinstance(frame, dict) or "jsonrpc" not in frame or "method" in frame:
        return False
    return number is None or frame.get("id") == number or ("error" in frame and frame.get("id") is None)


class ProcessPeer:
    """A server on the pipes of a process, one JSON document per line. The process ends with the block."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._ids = count(1)
        self._timeout = START_TIMEOUT
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=MAX_LINE,
            start_new_session=True,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(2):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

    async def call(self, method: str, params: Any) -> Any:
        """Send a request, and read lines until its response arrives."""
        number = next(self._ids)
        await self._write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        assert self._process is not None
        stdout = self._process.stdout
        assert stdout is not None
        async with asyncio.timeout(self._timeout):
            while line := await stdout.readline():
                frame = document(line)
                if _answers(frame, number):
                    self._timeout = TIMEOUT
                    return frame
        raise ConnectionResetError("the server ended")

    async def notify(self, method: str) -> None:
        """Send a notification."""
        await self._write({"jsonrpc": "2.0", "method": method})

    async def _write(self, frame: dict[str, Any]) -> None:
        assert self._process is not None
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write(msgspec.json.encode(frame) + b"\n")
        await stdin.drain()


async def probe(
    peer: Peer, name: str, method: str, params: Any, *, expected: str = "", about: str = "", target: str = ""
) -> Answer:
    """Send a request that must fail and return its answer as evidence. `about` says what was wrong with it."""
    sent = f"{method} {about}".strip()
    try:
        response = await peer.call(method, params)
    except OutOfProbesError:
        return Answer(probe=name, sent=sent, outcome="not-probed", because="the audit's limit was reached")
    except Exception as error:  # noqa: BLE001 - any failure of the connection is an answer that did not come
        return Answer(probe=name, sent=sent, outcome="no-answer", because=type(error).__name__)
    body = response.get("error") or response.get("result") or response.get("body") or response
    text = body if isinstance(body, str) else msgspec.json.encode(body).decode("utf-8", "replace")
    failed = _failed(response)
    return answered(
        name, sent, response, failed=failed, body=text, target=target, because="" if failed else expected
    )


def _failed(response: Any) -> bool:
    if not isinstance(response, dict):
        return False
    if isinstance(response.get("status"), int):
        return bool(response["status"] >= 400)
    result = response.get("result")
    return "error" in response or (
        isinstance(result, dict) and (result.get("isError") is True or _ended_badly(result))
    )


def _ended_badly(result: Mapping[str, Any]) -> bool:
    """Return whether a result is an A2A task that failed or was rejected."""
    task = result.get("task") if isinstance(result.get("task"), Mapping) else result
    status = task.get("status") if isinstance(task, Mapping) else None
    state = (
        str(status.get("state", "")).lower().removeprefix("task_state_")
        if isinstance(status, Mapping)
        else ""
    )
    return state in {"failed", "rejected"}
