"""An A2A agent over JSON-RPC, of versions 1.0 and 0.3: a message makes a task that is completed at once."""

from __future__ import annotations

from typing import Any

import msgspec

from amends.rehearse.examples import Example
from amends.rehearse.exchange import Answer, Request, json_answer
from amends.rehearse.fakes.fake import FakeService
from amends.rehearse.fakes.mcp import rpc

__all__ = ["A2AFake"]

_SEND = frozenset({"SendMessage", "message/send"})
_NOT_FOUND = -32001
_METHOD_NOT_FOUND = -32601


class A2AFake(FakeService):
    """The card is at /.well-known/agent-card.json, calls go to /rpc."""

    def __init__(self) -> None:
        self._tasks: dict[str, dict[str, Any]] = {}

    def reset(self) -> None:
        """Remove all tasks."""
        self._tasks.clear()

    def counts(self, request: Request) -> bool:
        """Only messages count, and not the card or the state of a task."""
        return rpc(request).get("method") in _SEND

    def acts(self, request: Request) -> bool:
        """A message makes a task."""
        return rpc(request).get("method") in _SEND

    def answer(self, request: Request) -> Answer:
        """Answer one request."""
        if request.method == "GET":
            return json_answer(200, _card(request)) if "agent" in request.path else Answer(status=404)
        message = rpc(request)
        method, params = message.get("method"), message.get("params")
        params = params if isinstance(params, dict) else {}
        old = "/" in str(method)
        if method in _SEND:
            task = self._task(params.get("message"), old=old, state="completed")
            return _reply(message, task if old else {"task": task})
        if method in {"GetTask", "tasks/get"}:
            task = self._tasks.get(str(params.get("id")), {})
            return _reply(message, task) if task else _error(message, _NOT_FOUND, "Task not found")
        return _error(message, _METHOD_NOT_FOUND, f"Method not found: {method}")

    def _task(self, message: object, *, old: bool, state: str, data: object = None) -> dict[str, Any]:
        sent = message if isinstance(message, dict) else {}
        number = len(self._tasks) + 1
        task: dict[str, Any] = {
            "id": f"task-{number}",
            "contextId": sent.get("contextId") or f"context-{number}",
        }
        task["status"] = {"state": state if old else f"TASK_STATE_{state.upper()}"}
        if data is not None:
            part: dict[str, Any] = {"kind": "data", "data": data} if old else {"data": data}
            artifact = {"artifactId": f"failure-{number}", "parts": [part]}
            role = "agent" if old else "ROLE_AGENT"
            task["status"]["message"] = {"messageId": f"message-{number}", "role": role, "parts": [part]}
        else:
            text: dict[str, Any] = {"text": "Done."}
            artifact = {
                "artifactId": f"artifact-{number}",
                "parts": [{"kind": "text", **text} if old else text],
            }
        task["artifacts"] = [artifact]
        if old:
            task["kind"] = "task"
        self._tasks[task["id"]] = task
        return task

    def failed(self, request: Request, example: Example, answer: Answer) -> Answer:
        """A failed task is a successful answer of the transport."""
        if example.status >= 400:
            return answer
        message = rpc(request)
        old = "/" in str(message.get("method"))
        params = message.get("params")
        sent = params.get("message") if isinstance(params, dict) else None
        task = self._task(sent, old=old, state="failed", data=msgspec.json.decode(answer.body))
        headers = tuple(each for each in answer.headers if each[0].lower() != "content-type")
        return _reply(message, task if old else {"task": task}, *headers)


def _reply(message: dict[str, Any], result: object, *headers: tuple[str, str]) -> Answer:
    return json_answer(200, {"jsonrpc": "2.0", "id": message.get("id"), "result": result}, *headers)


def _error(message: dict[str, Any], code: int, text: str) -> Answer:
    return json_answer(
        200, {"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": code, "message": text}}
    )


def _card(request: Request) -> dict[str, Any]:
    base = request.origin or f"http://{request.header('host')}"
    return {
        "name": "rehearsal",
        "description": "Takes any message",
        "version": "1",
        "protocolVersion": "0.3.0",
        "url": f"{base}/rpc",
        "preferredTransport": "JSONRPC",
        "supportedInterfaces": [
            {"url": f"{base}/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        ],
        "capabilities": {"streaming": False},
        "defaultInputModes": ["text"],
        "defaultOutputModes": ["text"],
        "skills": [{"id": "any", "name": "any", "description": "Anything", "tags": []}],
    }
