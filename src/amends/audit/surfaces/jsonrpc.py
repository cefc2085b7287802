"""JSON-RPC over HTTP (plain or server-sent events) and over the pipes of a process, as probes need it: frames as received."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from types import TracebackType
from typing import Protocol, Self

import msgspec

from amends.audit.surfaces.evidence import Answer, answered, as_text, not_probed
from amends.audit.surfaces.exchange import TIMEOUT, Budget, Exchange, OutOfProbesError, Reply, document
from amends.audit.surfaces.proxy import DISTURBANCES, Proxy, repeated

__all__ = [
    "HttpPeer",
    "Peer",
    "ProcessPeer",
    "again",
    "as_mapping",
    "probe",
    "summary",
    "without_credentials",
]

_SSE = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
MAX_LINE = 1 << 20
START_TIMEOUT = 30.0
"""Seconds for the first answer of a process, which may have to load a large library."""


class Peer(Protocol):
    """Something that answers JSON-RPC."""

    async def call(self, method: str, params: object) -> object:
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
        self.patience = TIMEOUT * 2
        """Seconds for one answer."""
        self.status = 0
        """The status of the last answer."""

    async def call(self, method: str, params: object) -> object:
        """Send a request."""
        number = next(self._ids)
        return await self.post({"jsonrpc": "2.0", "id": number, "method": method, "params": params}, number)

    async def post(self, frame: object, number: int | None = None) -> object:
        """Send a frame; bytes are sent as they are."""
        content = frame if isinstance(frame, bytes) else msgspec.json.encode(frame)
        reply = await self._exchange.send(
            "POST",
            self._path,
            headers=_SSE | self.headers,
            content=content,
            patience=self.patience,
            enough=_with_answer(number),
        )
        self.status = reply.status
        session = reply.headers.get("mcp-session-id")
        if session:
            self.headers["Mcp-Session-Id"] = session
        return next((each for each in _frames(reply) if _answers(each, number)), reply.as_response())

    async def notify(self, method: str) -> None:
        """Send a notification; what the service answers does not matter."""
        with suppress(Exception):
            await self.post({"jsonrpc": "2.0", "method": method})


def _frames(reply: Reply) -> Iterable[object]:
    if "text/event-stream" not in reply.headers.get("content-type", ""):
        return [reply.json]
    data = [line[5:].strip() for line in reply.text.splitlines() if line.startswith("data:")]
    return [document(each) for each in data]


def _with_answer(number: int | None) -> Callable[[Reply], bool]:
    """Return a function that tells whether a stream has the response to request `number`."""
    return lambda reply: any(_answers(each, number) for each in _frames(reply))


def _answers(frame: object, number: int | None) -> bool:
    """Return whether a frame is the response to request `number`; an error may have no id."""
    if not isinstance(frame, dict) or "jsonrpc" not in frame or "method" in frame:
        return False
    return number is None or frame.get("id") == number or ("error" in frame and frame.get("id") is None)


class ProcessPeer:
    """A server on the pipes of a process, one JSON document per line. The process ends with the block."""

    def __init__(self, command: Sequence[str], budget: Budget) -> None:
        self._command = command
        self._budget = budget
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
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            # asyncio waits for the end of the output, too, which it does not read while much of it is left.
            assert process.stdout is not None
            with suppress(TimeoutError):
                async with asyncio.timeout(2):
                    while await process.stdout.read(MAX_LINE):
                        pass
                    await process.wait()

    async def call(self, method: str, params: object) -> object:
        """Send a request, and read lines until its response arrives."""
        number = next(self._ids)
        await self._budget.spend_slowly()
        await self._write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        assert self._process is not None
        stdout = self._process.stdout
        assert stdout is not None
        async with self._budget.within(self._timeout):
            while line := await stdout.readline():
                frame = document(line)
                if _answers(frame, number):
                    self._timeout = TIMEOUT
                    return frame
        raise ConnectionResetError("the server ended")

    async def notify(self, method: str) -> None:
        """Send a notification."""
        await self._write({"jsonrpc": "2.0", "method": method})

    async def _write(self, frame: dict[str, object]) -> None:
        assert self._process is not None
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write(msgspec.json.encode(frame) + b"\n")
        await stdin.drain()


async def probe(
    peer: Peer,
    name: str,
    method: str,
    params: object,
    *,
    expected: str = "",
    about: str = "",
    target: str = "",
    fields: Sequence[str] = (),
) -> Answer:
    """Send a request that must fail and return its answer as evidence. `about` says what was wrong with it."""
    sent = f"{method} {about}".strip()
    try:
        response = await peer.call(method, params)
    except OutOfProbesError:
        return Answer(probe=name, sent=sent, outcome="not-probed", because="the audit's limit was reached")
    except Exception as error:  # noqa: BLE001 - any failure of the connection is an answer that did not come
        return Answer(probe=name, sent=sent, outcome="no-answer", because=type(error).__name__)
    said = as_mapping(response)
    body = said.get("error") or said.get("result") or said.get("body") or response
    failed = _failed(response)
    because = "" if failed else expected
    return answered(
        name, sent, response, failed=failed, body=as_text(body), target=target, because=because, fields=fields
    )


def as_mapping(value: object) -> Mapping[str, object]:
    """Return an object of JSON, or an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def _failed(response: object) -> bool:
    if not isinstance(response, dict):
        return False
    if isinstance(response.get("status"), int):
        return bool(response["status"] >= 400)
    result = response.get("result")
    return "error" in response or (
        isinstance(result, dict) and (result.get("isError") is True or _ended_badly(result))
    )


def _ended_badly(result: Mapping[str, object]) -> bool:
    """Return whether a result is an A2A task that failed or was rejected."""
    task = result.get("task") if isinstance(result.get("task"), Mapping) else result
    status = task.get("status") if isinstance(task, Mapping) else None
    state = (
        str(status.get("state", "")).lower().removeprefix("task_state_")
        if isinstance(status, Mapping)
        else ""
    )
    return state in {"failed", "rejected"}


_EXPIRED = {"Authorization": "Bearer amends-audit-expired"}
_REFUSED = frozenset({401, 403})


async def without_credentials(exchange: Exchange, path: str, method: str, params: object) -> list[Answer]:
    """Send a request without credentials and with expired ones. A service that answers otherwise does not ask for any."""
    frame = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    answers = []
    for name, sent in (("no-credentials", {}), ("expired-credentials", _EXPIRED)):
        headers = _SSE | sent
        answer = await exchange.probe(
            name, "POST", path, headers=headers, content=frame, credentials=False, enough=_with_answer(1)
        )
        status = answer.response.get("status") if isinstance(answer.response, dict) else None
        asks = answer.outcome == "no-answer" or status in _REFUSED
        answers.append(answer if asks else not_probed(name, "the service does not ask for credentials"))
    return answers


def summary(response: object) -> str:
    """Return what an answer is, to compare it with another: a result, or the code of its error."""
    if not isinstance(response, dict):
        return "no JSON"
    error = response.get("error")
    if isinstance(error, dict):
        return f"error {error.get('code')}"
    if "result" in response:
        return "a failed result" if _failed(response) else "a result"
    return f"status {response.get('status')}"


_ANSWERS = ("a result", "error ")


async def again(peer: HttpPeer, proxy: Proxy, name: str, method: str, params: object) -> Answer:
    """Send a request whose answer the proxy disturbs, and then send it again; it has to be answered as before."""
    answers: list[str] = []
    for mode in ("", name, ""):
        proxy.mode = mode
        try:
            answers.append(summary(await peer.call(method, params)))
        except OutOfProbesError:
            return Answer(
                probe=name, sent=method, outcome="not-probed", because="the audit's limit was reached"
            )
        except Exception as error:  # noqa: BLE001 - the disturbance, or a server that does not answer any more
            if not mode:
                answers.append(type(error).__name__)
        if not answers[0].startswith(_ANSWERS):
            return Answer(probe=name, sent=method, outcome="not-probed", because=f"{method}: {answers[0]}")
    return repeated(name, f"{method}, {DISTURBANCES[name]}, again", answers[0], answers[-1])
