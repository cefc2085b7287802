"""The streams of models while they arrive: the same result however the parts are cut."""

import json

import pytest

from amends.vendors.watch import StreamWatch

TOKEN = b'data: {"choices": [{"delta": {"content": "Hi"}}]}\n\n'
START = b'event: message_start\ndata: {"type": "message_start", "message": {"id": "m", "usage": {}}}\n\n'
FAIL = b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}\n\n'
BARE = b'{\n  "error": {\n    "code": 503,\n    "status": "UNAVAILABLE",\n    "message": "x"\n  }\n}\n'
LINES = b'{"model": "m", "response": "a"}\n{"error": "model runner crashed"}\n'


def watched(data, size, vendor=None):
    """Feed a stream in parts; return what was delivered, the failure and the number of events."""
    watch, passed = StreamWatch(vendor), b""
    for place in range(0, len(data), size):
        good, fault = watch.feed(data[place : place + size])
        passed += good
        if fault is not None:
            return passed, fault, watch.delivered
    return passed, watch.end(), watch.delivered


@pytest.mark.parametrize("size", [1, 2, 7, 50, 10_000])
def test_a_failure_is_found_however_the_parts_are_cut(size):
    """Nothing before it is held back for good."""
    passed, fault, delivered = watched(START + TOKEN + TOKEN + FAIL + TOKEN, size)
    assert (fault.code, fault.executed, delivered) == ("OVERLOADED", "maybe", 2)
    assert passed.startswith(START + TOKEN + TOKEN)
    passed, fault, delivered = watched(START + FAIL, size)
    assert (fault.code, fault.executed, delivered) == ("OVERLOADED", "maybe", 0)
    passed, fault, delivered = watched(START + FAIL, size, "anthropic")
    assert (fault.code, fault.executed, delivered) == ("OVERLOADED", "no", 0)
    passed, fault, delivered = watched(TOKEN + BARE, size)
    assert (fault.code, delivered) == ("SERVICE_UNAVAILABLE", 1)
    passed, fault, delivered = watched(LINES, size)
    assert (fault.code, delivered) == ("INTERNAL_ERROR", 1)
    assert watched(START + TOKEN + b"data: [DONE]\n\n", size)[1] is None


def test_a_crlf_stream():
    """Lines may end with both characters."""
    data = (START + TOKEN + FAIL).replace(b"\n", b"\r\n")
    assert watched(data, 5)[1].code == "OVERLOADED"


@pytest.mark.parametrize(
    ("value", "output"),
    [
        ({"choices": [{"delta": {"role": "assistant", "content": ""}}]}, False),
        ({"choices": [{"delta": {"role": "assistant", "tool_calls": [{"index": 0}]}}]}, True),
        ({"choices": [{"text": "a"}]}, True),
        ({"choices": []}, False),
        ({"type": "response.created", "response": {"error": None}}, False),
        ({"type": "response.output_text.delta", "delta": "a"}, True),
        ({"type": "content_block_start", "content_block": {"type": "text", "text": ""}}, False),
        ({"candidates": [{"content": {"parts": [{"text": "a"}]}}]}, True),
    ],
)
def test_what_counts_as_output(value, output):
    """An event that announces something has none."""
    watch = StreamWatch()
    assert watch.feed(b"data: " + json.dumps(value).encode() + b"\n\n")[1] is None
    assert bool(watch.delivered) is output


def test_text_about_errors_is_no_failure():
    """The words of a model are output, whatever they say."""
    watch = StreamWatch()
    text = {"choices": [{"delta": {"content": '{"error": {"code": "insufficient_quota"}}'}}]}
    assert watch.feed(b"data: " + json.dumps(text).encode() + b"\n\n")[1] is None
    assert watch.feed(b": comment\n\nid: 3\nretry: 10\n\nnonsense\n\x00\xff\n")[1] is None
    assert watch.delivered == 1
