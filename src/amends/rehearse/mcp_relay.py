"""An MCP server on stdio whose tools fail as planned: the relay is between the host and the server."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import IO, Any

import msgspec

from amends.rehearse.examples import examples_of
from amends.rehearse.exchange import Request
from amends.rehearse.kinds import KINDS
from amends.rehearse.plan import Failure, Plan, ServiceOptions
from amends.rehearse.stage import Stage

__all__ = ["relay"]

_SERVICE = "mcp"
_USUAL = ("in-success", "rate", "validation", "lost", "silent")


def relay(command: Sequence[str], plan: Plan) -> int:
    """
    Start an MCP server, pass its messages on unchanged, and let calls of tools fail as planned. Returns its exit code.

    The failures that were sent, and effects that may have happened twice, are reported on stderr when the host closes the server.
    """
    kinds = {each.kind for each in examples_of(_SERVICE)} | {"lost", "silent"}
    wanted = [each for each in plan.failure if each.service == _SERVICE] or [
        Failure(_SERVICE, kind, call=place)
        for place, kind in enumerate(
            (each for each in KINDS if each in kinds and each in (plan.kinds or _USUAL)), 1
        )
    ]
    stage = Stage(plan, [ServiceOptions(_SERVICE)])
    stage.begin(wanted)
    process = subprocess.Popen(list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - the user's
    assert process.stdin is not None
    assert process.stdout is not None
    link = _Relay(stage, process.stdin, sys.stdout.buffer)
    out = threading.Thread(target=link.from_server, args=(process.stdout,), daemon=True)
    out.start()
    try:
        link.from_host(sys.stdin.buffer)
    finally:
        try:
            process.stdin.close()
        except OSError:
            pass
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    out.join(5)
    _report(stage)
    return process.returncode


class _Relay:
    """Passes messages between the host and the server."""

    def __init__(self, stage: Stage, server: IO[bytes], host: IO[bytes]) -> None:
        self._stage, self._server, self._host = stage, server, host
        self._dropped: set[Any] = set()
        """Ids of calls whose answer is lost."""
        self._lock = threading.Lock()

    def from_host(self, source: IO[bytes]) -> None:
        """Pass on what the host sends, except for calls that fail before they are carried out."""
        for line in source:
            answer = self._failing(line)
            if answer is None:
                self._server.write(line)
                self._server.flush()
            elif answer:
                self._to_host(answer)

    def from_server(self, source: IO[bytes]) -> None:
        """Pass on what the server sends, except for answers that are lost."""
        for line in source:
            message = _decoded(line)
            if message.get("id") in self._dropped and ("result" in message or "error" in message):
                self._dropped.discard(message["id"])
                continue
            self._to_host(line)

    def _to_host(self, line: bytes) -> None:
        with self._lock:
            self._host.write(line)
            self._host.flush()

    def _failing(self, line: bytes) -> bytes | None:
        """Return the line that answers a call instead of the server; empty for none, None if the server answers."""
        message = _decoded(line)
        if message.get("method") != "tools/call" or "id" not in message:
            return None
        request = Request(_SERVICE, "POST", "/mcp", body=line.strip())
        sent, call = self._stage.handle(request)
        if call is not None:
            self._stage.finished(call)
        if call is None or call.failure is None:
            return None
        if sent.ending in {"lost", "late"}:
            self._dropped.add(message["id"])
            return None
        if sent.ending == "silent":
            return b""
        if sent.status >= 400:
            result: dict[str, Any] = {
                "content": [{"type": "text", "text": sent.body.decode("utf-8", "replace")}],
                "isError": True,
            }
            return msgspec.json.encode({"jsonrpc": "2.0", "id": message["id"], "result": result}) + b"\n"
        return sent.body + b"\n"


def _decoded(line: bytes) -> dict[str, Any]:
    try:
        message = msgspec.json.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _report(stage: Stage) -> None:
    """Say on stderr what was sent and what the host did next. How the host ended is not known here, so there is no score."""
    record = stage.end()
    for incident in record.incidents:
        again = [
            each
            for each in record.calls
            if each.number > incident.call and each.digest == record.calls[incident.call - 1].digest
        ]
        then = (
            f"the same call came again after {again[0].at - incident.at:.2f} s"
            if again
            else "the call was not repeated"
        )
        sys.stderr.write(f"amends rehearse: call {incident.call} met {incident.failure}; {then}\n")
    for name, why in record.unsent.items():
        sys.stderr.write(f"amends rehearse: {name} was not sent: {why}\n")
