"""An OpenAI-compatible model: chat completions, responses, embeddings and the list of models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from amends.rehearse.exchange import Answer, Request, json_answer
from amends.rehearse.fakes.fake import FakeService
from amends.rehearse.fakes.script import Tool, Turn, next_turn, pieces

__all__ = ["OpenAIFake"]

_CREATED = 1_767_225_600
"""A fixed moment, so that answers are the same in every run."""
_DIMENSIONS = 8


class OpenAIFake(FakeService):
    """Answers by the script, or by the tools that the request offers."""

    model = True

    def __init__(self, script: Sequence[Any] = ()) -> None:
        self._script = script

    def acts(self, request: Request) -> bool:
        """A model only computes, unless a background response or a file is made."""
        document = request.document()
        return isinstance(document, dict) and bool(document.get("background"))

    def answer(self, request: Request) -> Answer:
        """Answer one request."""
        path = request.path.rstrip("/")
        document = request.document()
        if path.endswith("/models") or "/models/" in path:
            return json_answer(
                200,
                {
                    "object": "list",
                    "data": [
                        {"id": "gpt-4o", "object": "model", "created": _CREATED, "owned_by": "rehearsal"}
                    ],
                },
            )
        if not isinstance(document, dict):
            return _refused("We could not parse the JSON body of your request.")
        if path.endswith("/embeddings"):
            return _embeddings(document)
        if path.endswith("/moderations"):
            return json_answer(
                200,
                {
                    "id": "modr-1",
                    "model": "omni-moderation-latest",
                    "results": [{"flagged": False, "categories": {}, "category_scores": {}}],
                },
            )
        if path.endswith("/responses"):
            return self._responses(document, request)
        if path.endswith("/completions"):
            return self._chat(document, request)
        return _refused(f"Unknown request URL: {request.method} {request.path}.", 404)

    def events(self, request: Request, answer: Answer) -> tuple[bytes, ...]:
        """A chat stream reports a failure as data; a stream of responses as an event of its own."""
        if request.path.endswith("/responses"):
            return (answer.body,)
        data = next((line[6:] for line in answer.body.splitlines() if line.startswith(b"data: ")), b"{}")
        document = msgspec.json.decode(data)
        error = document.get("error") if isinstance(document, dict) else None
        return (_data({"error": error if isinstance(error, dict) else document}),)

    def _chat(self, document: dict[str, Any], request: Request) -> Answer:
        messages = [each for each in document.get("messages") or () if isinstance(each, dict)]
        spoken = [each for each in messages if each.get("role") == "assistant"]
        called = [
            call.get("function", {}).get("name", "")
            for each in spoken
            for call in each.get("tool_calls") or ()
            if isinstance(call, dict)
        ]
        shape = document.get("response_format")
        schema = shape.get("json_schema", {}).get("schema") if isinstance(shape, dict) else None
        turn = next_turn(self._script, len(spoken), list(_tools(document.get("tools"))), called, schema)
        if document.get("tool_choice") == "none":
            turn = Turn(text=turn.text or "All done.")
        made = _digest(request.body)
        model = document.get("model", "gpt-4o")
        head = {
            "id": f"chatcmpl-{made}",
            "created": _CREATED,
            "model": model,
            "system_fingerprint": "fp_rehearsal",
        }
        usage = {"prompt_tokens": 12, "completion_tokens": 6, "total_tokens": 18}
        finish = "tool_calls" if turn.tool else "stop"
        if document.get("stream") is True:
            options = document.get("stream_options")
            counted = isinstance(options, dict) and options.get("include_usage")
            head["object"] = "chat.completion.chunk"
            return _stream(_chat_chunks(head, turn, made, finish, usage if counted else None))
        message: dict[str, Any] = {"role": "assistant", "content": turn.text or None, "refusal": None}
        if turn.tool:
            message["tool_calls"] = [_tool_call(turn, made)]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        return json_answer(
            200, {**head, "object": "chat.completion", "choices": [choice], "usage": usage}, _request_id(made)
        )

    def _responses(self, document: dict[str, Any], request: Request) -> Answer:
        items = document.get("input")
        items = [each for each in items if isinstance(each, dict)] if isinstance(items, list) else []
        called = [str(each.get("name")) for each in items if each.get("type") == "function_call"]
        spoken = [
            each for each in items if each.get("type") == "function_call" or each.get("role") == "assistant"
        ]
        form = document.get("text")
        form = form.get("format") if isinstance(form, dict) else None
        schema = form.get("schema") if isinstance(form, dict) else None
        turn = next_turn(self._script, len(spoken), list(_tools(document.get("tools"))), called, schema)
        made = _digest(request.body)
        if turn.tool:
            item: dict[str, Any] = {
                "type": "function_call",
                "id": f"fc_{made}",
                "call_id": f"call_{made}",
                "name": turn.tool,
                "arguments": _arguments(turn),
                "status": "completed",
            }
        else:
            content = [{"type": "output_text", "text": turn.text, "annotations": [], "logprobs": []}]
            item = {
                "type": "message",
                "id": f"msg_{made}",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        response = {
            "id": f"resp_{made}",
            "object": "response",
            "created_at": _CREATED,
            "status": "completed",
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "max_output_tokens": None,
            "metadata": {},
            "model": document.get("model", "gpt-4o"),
            "output": [item],
            "parallel_tool_calls": True,
            "previous_response_id": None,
            "reasoning": {"effort": None, "summary": None},
            "temperature": 1.0,
            "text": {"format": {"type": "text"}},
            "tool_choice": "auto",
            "tools": document.get("tools") or [],
            "top_p": 1.0,
            "truncation": "disabled",
            "usage": {
                "input_tokens": 12,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": 6,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 18,
            },
        }
        if document.get("stream") is True:
            return _stream(_response_events(response, item))
        return json_answer(200, response, _request_id(made))


def _refused(message: str, status: int = 400) -> Answer:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return json_answer(status, {"error": error})


def _tools(tools: object) -> Iterable[Tool]:
    """Yield the functions that a request offers, in the form of chat or of responses."""
    for each in tools if isinstance(tools, list) else ():
        if isinstance(each, dict) and each.get("type", "function") == "function":
            function = each.get("function", each)
            if isinstance(function, Mapping) and function.get("name"):
                yield Tool(str(function["name"]), function.get("parameters"))


def _digest(body: bytes) -> str:
    return sha256(body).hexdigest()[:12]


def _request_id(made: str) -> tuple[str, str]:
    return "x-request-id", f"req_{made}"


def _arguments(turn: Turn) -> str:
    return msgspec.json.encode(turn.arguments).decode()


def _tool_call(turn: Turn, made: str) -> dict[str, Any]:
    return {
        "id": f"call_{made}",
        "type": "function",
        "function": {"name": turn.tool, "arguments": _arguments(turn)},
    }


def _data(document: object) -> bytes:
    return b"data: " + msgspec.json.encode(document) + b"\n\n"


def _event(kind: str, document: dict[str, Any]) -> bytes:
    return f"event: {kind}\n".encode() + _data({"type": kind, **document})


def _stream(parts: Iterable[bytes]) -> Answer:
    headers = (("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache"))
    return Answer(headers=headers, parts=tuple(parts))


def _chat_chunks(
    head: dict[str, Any], turn: Turn, made: str, finish: str, usage: dict[str, int] | None
) -> Iterable[bytes]:
    def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return _data({**head, "choices": [choice]})

    yield chunk({"role": "assistant", "content": None if turn.tool else ""})
    if turn.tool:
        call = _tool_call(turn, made)
        arguments = call["function"]["arguments"]
        call["function"] = {"name": turn.tool, "arguments": ""}
        yield chunk({"tool_calls": [{"index": 0, **call}]})
        for piece in pieces(arguments):
            yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
    else:
        for piece in pieces(turn.text):
            yield chunk({"content": piece})
    yield chunk({}, finish)
    if usage is not None:
        yield _data({**head, "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _response_events(response: dict[str, Any], item: dict[str, Any]) -> Iterable[bytes]:
    number = iter(range(1_000_000))

    def event(kind: str, **members: Any) -> bytes:
        return _event(f"response.{kind}", {**members, "sequence_number": next(number)})

    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    yield event("created", response=begun)
    yield event("in_progress", response=begun)
    place = {"output_index": 0, "item_id": item["id"]}
    if item["type"] == "function_call":
        yield event(
            "output_item.added", output_index=0, item={**item, "arguments": "", "status": "in_progress"}
        )
        for piece in pieces(item["arguments"]):
            yield event("function_call_arguments.delta", **place, delta=piece)
        yield event("function_call_arguments.done", **place, arguments=item["arguments"], name=item["name"])
    else:
        yield event(
            "output_item.added", output_index=0, item={**item, "content": [], "status": "in_progress"}
        )
        part = item["content"][0]
        yield event("content_part.added", **place, content_index=0, part={**part, "text": ""})
        for piece in pieces(part["text"]):
            yield event("output_text.delta", **place, content_index=0, delta=piece, logprobs=[])
        yield event("output_text.done", **place, content_index=0, text=part["text"], logprobs=[])
        yield event("content_part.done", **place, content_index=0, part=part)
    yield event("output_item.done", output_index=0, item=item)
    yield event("completed", response=response)


def _embeddings(document: dict[str, Any]) -> Answer:
    given = document.get("input")
    texts = given if isinstance(given, list) and not (given and isinstance(given[0], int)) else [given]
    coded = document.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": place, "embedding": _vector(text, coded=coded)}
        for place, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": 4, "total_tokens": 4}
    return json_answer(
        200,
        {
            "object": "list",
            "data": data,
            "model": document.get("model", "text-embedding-3-small"),
            "usage": usage,
        },
    )


def _vector(text: object, *, coded: bool) -> object:
    from base64 import b64encode
    from struct import pack

    digest = sha256(msgspec.json.encode(text)).digest()
    numbers = [round(each / 255 - 0.5, 4) for each in digest[:_DIMENSIONS]]
    return b64encode(pack(f"<{_DIMENSIONS}f", *numbers)).decode() if coded else numbers
