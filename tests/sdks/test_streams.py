"""Failures in the middle of a stream: the SDKs raise without a response, or with that of the successful answer."""

import json
import struct
import zlib

import pytest

from amends import from_exception
from tests.sdks import clients
from tests.sdks.server import Answer, serving

SSE = {"Content-Type": "text/event-stream"}


def events(*pairs):
    lines = (
        f"event: {name}\ndata: {json.dumps(value)}\n\n" if name else f"data: {json.dumps(value)}\n\n"
        for name, value in pairs
    )
    return Answer(200, "".join(lines), SSE)


def failing(call, answer):
    with serving(answer) as server, pytest.raises(Exception) as caught:
        call(server.url)
    return from_exception(caught.value)


TOKEN = (
    None,
    {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": {"content": "a"}}],
    },
)


@pytest.mark.parametrize(
    ("error", "code", "recovery"),
    [
        ({"message": "x", "type": "tokens", "param": None, "code": "rate_limit_exceeded"}, "RATE_LIMITED", "transient"),
        ({"message": "x", "type": "insufficient_quota", "param": None, "code": "insufficient_quota"}, "QUOTA_EXCEEDED", "terminal"),
        ({"message": "x", "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}, "CONTEXT_TOO_LONG", "correctable"),
        ({"message": "x", "type": "server_error", "param": None, "code": None}, "INTERNAL_ERROR", "uncertain"),
    ],
)  # fmt: skip
def test_openai(error, code, recovery):
    """The exception has the error object of the event."""
    pytest.importorskip("openai")

    def call(url):
        list(
            clients.openai_client(url).chat.completions.create(model="m", messages=clients.CHAT, stream=True)
        )

    fault = failing(call, events(TOKEN, (None, {"error": error})))
    assert (fault.code, fault.recovery.value) == (code, recovery)


@pytest.mark.parametrize(
    ("kind", "code", "recovery"),
    [
        ("overloaded_error", "OVERLOADED", "transient"),
        ("rate_limit_error", "RATE_LIMITED", "transient"),
        ("billing_error", "QUOTA_EXCEEDED", "terminal"),
        ("api_error", "INTERNAL_ERROR", "uncertain"),
    ],
)
def test_anthropic(kind, code, recovery):
    """The exception has the status 200 of the answer, which says nothing."""
    pytest.importorskip("anthropic")

    def call(url):
        client = clients.anthropic_client(url)
        list(client.messages.create(model="m", max_tokens=5, messages=clients.CHAT, stream=True))

    fault = failing(call, events(("error", {"type": "error", "error": {"type": kind, "message": "x"}})))
    assert (fault.code, fault.recovery.value) == (code, recovery)


def test_google_genai():
    """An error inside the stream, in the shape of google.rpc."""
    pytest.importorskip("google.genai")
    first = {"candidates": [{"content": {"role": "model", "parts": [{"text": "a"}]}}]}
    error = {"error": {"code": 503, "message": "x", "status": "UNAVAILABLE"}}

    def call(url):
        list(clients.genai_client(url).models.generate_content_stream(model="m", contents="x"))

    fault = failing(call, events((None, first), (None, error)))
    assert (fault.code, fault.recovery.value) == ("SERVICE_UNAVAILABLE", "transient")


def message(headers, payload):
    """Return a message of AWS's event streams."""
    packed = b"".join(
        bytes([len(key)]) + key.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for key, value in headers.items()
    )
    prelude = struct.pack(">II", 16 + len(packed) + len(payload), len(packed))
    head = prelude + struct.pack(">I", zlib.crc32(prelude))
    body = head + packed + payload
    return body + struct.pack(">I", zlib.crc32(body))


@pytest.mark.parametrize(
    ("word", "code", "recovery"),
    [
        ("throttlingException", "RATE_LIMITED", "transient"),
        ("modelStreamErrorException", "INTERNAL_ERROR", "uncertain"),
        ("serviceUnavailableException", "OVERLOADED", "transient"),
        ("validationException", "VALIDATION_ERROR", "correctable"),
    ],
)
def test_botocore(word, code, recovery):
    """EventStreamError of Bedrock."""
    pytest.importorskip("botocore")
    headers = {":exception-type": word, ":content-type": "application/json", ":message-type": "exception"}
    body = message(headers, b'{"message": "x"}')

    def call(url):
        text = [{"role": "user", "content": [{"text": "x"}]}]
        client = clients.botocore_client("bedrock-runtime", url)
        list(client.converse_stream(modelId="m", messages=text)["stream"])

    fault = failing(call, Answer(200, body, {"Content-Type": "application/vnd.amazon.eventstream"}))
    assert (fault.code, fault.recovery.value) == (code, recovery)
