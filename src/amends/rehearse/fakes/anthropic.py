"""An Anthropic-compatible model: messages, the count of tokens and the list of models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from amends.rehearse.exchange import Answer, Request, json_answer
from amends.rehearse.fakes.fake import FakeService
from amends.rehearse.fakes.script import Tool, next_turn, pieces

__all__ = ["AnthropicFake"]


class AnthropicFake(FakeService):
    """Answers by the script, or by the tools that the request offers."""

    model = True

    def __init__(self, script: Sequence[Any] = ()) -> None:
        self._script = script

    def acts(self, request: Request) -> bool:
        """A model only computes."""
        return False

    def answer(self, request: Request) -> Answer:
        """Answer one request."""
        document = request.document()
        if request.path.endswith("/models"):
            model = {
                "type": "model",
                "id": "claude-sonnet-4-5",
                "display_name": "Claude",
                "created_at": "2026-01-01T00:00:00Z",
            }
            return json_answer(
                200, {"data": [model], "has_more": False, "first_id": model["id"], "last_id": model["id"]}
            )
        if not isinstance(document, dict):
            error = {"type": "invalid_request_error", "message": "The request body is not valid JSON"}
            return json_answer(400, {"type": "error", "error": error})
        if request.path.endswith("/count_tokens"):
            return json_answer(200, {"input_tokens": 12})
        messages = [each for each in document.get("messages") or () if isinstance(each, dict)]
        spoken = [each for each in messages if each.get("role") == "assistant"]
        called = [
            str(block.get("name"))
            for each in spoken
            if isinstance(each.get("content"), list)
            for block in each["content"]
            if isinstance(block, dict) and block.get("type") == "tool_use"
        ]
        tools = [
            Tool(str(each["name"]), each.get("input_schema"))
            for each in document.get("tools") or ()
            if isinstance(each, dict) and each.get("name")
        ]
        turn = next_turn(self._script, len(spoken), tools, called)
        made = sha256(request.body).hexdigest()[:12]
        if turn.tool:
            block: dict[str, Any] = {
                "type": "tool_use",
                "id": f"toolu_{made}",
                "name": turn.tool,
                "input": turn.arguments,
            }
        else:
            block = {"type": "text", "text": turn.text, "citations": None}
        message = {
            "id": f"msg_{made}",
            "type": "message",
            "role": "assistant",
            "model": document.get("model", "claude-sonnet-4-5"),
            "content": [block],
            "stop_reason": "tool_use" if turn.tool else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 12, "output_tokens": 6},
        }
        request_id = ("request-id", f"req_{made}")
        if document.get("stream") is True:
            headers = (("content-type", "text/event-stream; charset=utf-8"), request_id)
            return Answer(headers=headers, parts=tuple(_events(message, block)))
        return json_answer(200, message, request_id)

    def events(self, request: Request, answer: Answer) -> tuple[bytes, ...]:
        """A stream reports a failure as an event named error."""
        if answer.body.startswith(b"event:"):
            return (answer.body,)
        return (b"event: error\ndata: " + answer.body + b"\n\n",)


def _events(message: dict[str, Any], block: dict[str, Any]) -> Iterable[bytes]:
    def event(kind: str, **members: Any) -> bytes:
        return f"event: {kind}\ndata: ".encode() + msgspec.json.encode({"type": kind, **members}) + b"\n\n"

    begun = {**message, "content": [], "stop_reason": None, "usage": {"input_tokens": 12, "output_tokens": 1}}
    yield event("message_start", message=begun)
    tool = block["type"] == "tool_use"
    yield event(
        "content_block_start",
        index=0,
        content_block={**block, "input": {}} if tool else {**block, "text": ""},
    )
    if tool:
        for piece in pieces(msgspec.json.encode(block["input"]).decode()):
            yield event(
                "content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": piece}
            )
    else:
        for piece in pieces(block["text"]):
            yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
    yield event("content_block_stop", index=0)
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=delta, usage={"output_tokens": 6})
    yield event("message_stop")
