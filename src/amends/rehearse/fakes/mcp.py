"""An MCP server over streamable HTTP with two tools: `find_orders` reads, `create_order` acts."""

from __future__ import annotations

from typing import Any

import msgspec

from amends.rehearse.examples import Example
from amends.rehearse.exchange import Answer, Request, json_answer
from amends.rehearse.fakes.fake import FakeService

__all__ = ["McpFake", "rpc"]

_ITEM = {"type": "string", "description": "what to order"}
_QUANTITY = {"type": "integer", "minimum": 1, "maximum": 12}
_TOOLS = [
    {
        "name": "find_orders",
        "description": "List the orders.",
        "inputSchema": {"type": "object", "properties": {"item": _ITEM}},
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "create_order",
        "description": "Place an order.",
        "inputSchema": {
            "type": "object",
            "properties": {"item": _ITEM, "quantity": _QUANTITY},
            "required": ["item", "quantity"],
        },
        "annotations": {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False},
    },
]
_METHOD_NOT_FOUND = -32601
_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")


def rpc(request: Request) -> dict[str, Any]:
    """Return the JSON-RPC message of a request; empty if it is none."""
    document = request.document()
    return document if isinstance(document, dict) else {}


def tool_of(request: Request) -> str:
    """Return the name of the tool that a request calls, or an empty text."""
    message = rpc(request)
    params = message.get("params")
    called = message.get("method") == "tools/call" and isinstance(params, dict)
    return str(params.get("name", "")) if called and isinstance(params, dict) else ""


class McpFake(FakeService):
    """Answers every request with one JSON document, and keeps no sessions."""

    def __init__(self) -> None:
        self._orders: list[dict[str, Any]] = []

    def reset(self) -> None:
        """Remove all orders."""
        self._orders.clear()

    def counts(self, request: Request) -> bool:
        """Only calls of tools count; the rest is the handshake of a client."""
        return bool(tool_of(request))

    def acts(self, request: Request) -> bool:
        """Only one tool acts."""
        return tool_of(request) == "create_order"

    def answer(self, request: Request) -> Answer:
        """Answer one message."""
        if request.method == "GET":
            return Answer(status=405, headers=(("allow", "POST"),))
        if request.method == "DELETE":
            return Answer(status=204)
        message = rpc(request)
        if "id" not in message:
            return Answer(status=202)
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        method = message.get("method")
        result: dict[str, Any]
        if method == "initialize":
            asked = params.get("protocolVersion")
            result = {
                "protocolVersion": asked if asked in _VERSIONS else _VERSIONS[0],
                "capabilities": {"tools": {"listChanged": False}},
                "serverInfo": {"name": "rehearsal", "version": "1"},
            }
        elif method == "ping":
            result = {}
        elif method == "tools/list":
            result = {"tools": _TOOLS}
        elif method == "tools/call":
            result = self._call(str(params.get("name")), params.get("arguments") or {})
        else:
            error = {"code": _METHOD_NOT_FOUND, "message": f"Method not found: {method}"}
            return json_answer(200, {"jsonrpc": "2.0", "id": message["id"], "error": error})
        return json_answer(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if name == "create_order":
            self._orders.append({"id": f"order-{len(self._orders) + 1}", **arguments})
            return _result(self._orders[-1])
        if name == "find_orders":
            item = arguments.get("item")
            return _result({"orders": [each for each in self._orders if item in (None, each.get("item"))]})
        return {"content": [{"type": "text", "text": f"Unknown tool: {name}"}], "isError": True}

    def failed(self, request: Request, example: Example, answer: Answer) -> Answer:
        """A failed tool is a successful answer of the transport."""
        if example.status >= 400:
            return answer
        result = msgspec.json.decode(answer.body)
        headers = tuple(each for each in answer.headers if each[0].lower() != "content-type")
        return json_answer(200, {"jsonrpc": "2.0", "id": rpc(request).get("id"), "result": result}, *headers)


def _result(value: dict[str, Any]) -> dict[str, Any]:
    text = msgspec.json.encode(value).decode()
    return {"content": [{"type": "text", "text": text}], "structuredContent": value, "isError": False}
