"""
Bad input: no bytes and no value make a decoder raise, hang, or return more than its limit.

Hypothesis changes real documents of every shape; a table has documents that are known to cause problems in parsers.
"""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends.carriers.extraction import VIAS, examine
from amends.core.fault import Fault
from amends.core.wire import MAX_BYTES
from amends.dialects import NAMES, decode, dialect, encode
from amends.dialects.problem import MAX_PARTS
from amends.dialects.translation import losses
from tests.strategies import documents, hostile, mutated, often, rarely, seldom

EVERY_VIA = (None, *VIAS)
SECONDS = 5.0
"""CPU time: much more than any document takes, much less than a hang."""


def faults_in(fault):
    """Return the number of a fault and all its nested faults."""
    found, level = 0, [fault]
    while level:
        found += len(level)
        level = [child for one in level for child in one.errors]
    return found


def bounded(fault):
    """Check the limits of a decoded fault."""
    if fault is None:
        return True
    assert isinstance(fault, Fault)
    assert 0 < len(fault.code) <= 64
    assert faults_in(fault) <= MAX_PARTS + 1
    assert fault.retry_after is None or abs(fault.retry_after) < float("inf")
    return True


def try_everything(value, vias=EVERY_VIA, names=NAMES):
    """Read one value with every reader, and check time and limits."""
    for via in vias:
        began = time.process_time()
        seen, reading = examine(value, via)
        assert time.process_time() - began < SECONDS
        assert seen is None or seen in VIAS
        assert bounded(reading.fault)
    for name in names:
        began = time.process_time()
        fault = decode(value, name)
        assert time.process_time() - began < SECONDS
        assert bounded(fault)


class Deaf(str):
    """A text whose methods raise."""

    __slots__ = ()

    def fails(self, *args):
        raise RuntimeError

    __bool__ = __len__ = __eq__ = __hash__ = __iter__ = __str__ = __repr__ = lower = encode = strip = fails


class Ambiguous:
    """A value that cannot be compared, like an array of NumPy."""

    def __eq__(self, other):
        raise ValueError("ambiguous")

    __hash__ = None


@pytest.mark.parametrize(
    "value", [Deaf("TIMEOUT"), Ambiguous(), memoryview(b"TIMEOUT")[::2]], ids=["str", "eq", "view"]
)
def test_a_value_whose_methods_raise(value):
    """Values that raise when they are compared, measured or copied are read in every place, and faults with them written."""
    places = [
        value,
        {"status": value, "code": 5, "name": "x", "message": "m"},
        {"status": 429, "extra": value},
        {"isError": True, "structuredContent": {"adcp_error": value}},
        {
            "isError": True,
            "structuredContent": {"adcp_error": {"code": "TIMEOUT", "message": "m", "details": {"x": value}}},
            "_meta": {"amends/fault": {"v": 1, "executed": value, "tries": value, "errors": value}},
        },
        {"type": value, "payload": value},
    ]
    for place in places:
        try_everything(place)
        for name in NAMES:
            fault = decode(place, name)
            for other in NAMES if fault is not None else ():
                encode(fault, other)
                losses(fault, other)


@often
@given(hostile())
def test_any_value(value):
    """Every reader handles any value."""
    try_everything(value)


@often
@given(st.binary(max_size=60) | st.text(max_size=60))
def test_any_bytes(data):
    """Every reader handles any bytes and text."""
    try_everything(data)


@pytest.mark.parametrize("via", VIAS)
@rarely
@given(st.data())
def test_broken_documents(via, data):
    """Readers handle real documents with changed or removed values."""
    try_everything(data.draw(mutated(via)), vias=(None, via))


@pytest.mark.parametrize("via", VIAS)
@seldom
@given(st.data())
def test_broken_bytes(via, data):
    """Readers handle real documents that are cut, changed, doubled, or in another encoding."""
    document = json.dumps(data.draw(st.sampled_from(documents[via]))).encode()
    cut = data.draw(st.integers(0, len(document)))
    put = data.draw(st.binary(max_size=4))
    for broken in (
        document[:cut],
        document[:cut] + put + document[cut:],
        document[:cut] + put + document[cut + len(put) :],
        document + document,
        document.decode().encode("utf-16"),
        b"\xef\xbb\xbf" + document,
    ):
        try_everything(broken, vias=(None, via))


@pytest.mark.parametrize("name", NAMES)
@rarely
@given(st.data())
def test_a_decoded_fault_can_be_written_in_every_dialect(name, data):
    """Any decoded fault can be written in every dialect and read again."""
    via = {"problem": "problem", "envelope": "cli"}.get(name, name)
    fault = decode(data.draw(mutated(via)), name)
    if fault is not None:
        for other in NAMES:
            decode(encode(fault, other), other)
        assert dialect(name).decode(encode(fault, name)) is not None


def nested(levels, wrap, value=0):
    """Return a value with that many levels."""
    for _ in range(levels):
        value = wrap(value)
    return value


WRAPS = {
    "arrays": lambda value: [value],
    "objects": lambda value: {"a": value},
    "errors": lambda value: {"code": "X", "title": "x", "errors": [value]},
    "error": lambda value: {"ok": False, "error": value},
    "details": lambda value: {"code": "X", "details": value},
    "result": lambda value: {"jsonrpc": "2.0", "result": value},
    "task": lambda value: {"task": value},
    "payload": lambda value: {"type": "job.error", "payload": value},
    "body": lambda value: {"status": 500, "body": value},
    "data": lambda value: {"error": {"code": 1, "data": value}},
    "adcp_error": lambda value: {"isError": True, "structuredContent": {"adcp_error": value}},
    "parts": lambda value: {"artifacts": [{"parts": [{"data": value}]}]},
    "structured": lambda value: {"isError": True, "structuredContent": value},
    "stdout": lambda value: {"exit": 1, "stdout": value},
}


@pytest.mark.parametrize("name", WRAPS)
def test_ten_thousand_levels(name):
    """Issue 2: readers handle values with 10,000 levels at each position."""
    try_everything(nested(10_000, WRAPS[name]))


@pytest.mark.parametrize("via", VIAS)
def test_ten_thousand_levels_inside_real_documents(via):
    """Readers handle each document with each member replaced by 10,000 levels."""
    for document in documents[via]:
        for name in document:
            try_everything({**document, name: nested(10_000, WRAPS["arrays"])}, vias=(None, via))
            try_everything({**document, name: nested(10_000, WRAPS["objects"])}, vias=(None, via))


@pytest.mark.parametrize(
    "opening", ["[", '{"a":', '{"errors":[', '{"error":{"data":', '{"isError":true,"structuredContent":']
)
def test_ten_thousand_levels_of_text(opening):
    """Readers handle JSON text with 10,000 levels, complete and cut off."""
    closing = "".join({"[": "]", "{": "}"}[letter] for letter in reversed(opening) if letter in "[{")
    for levels in (10_000, 100_000):
        for text in (opening * levels, opening * levels + "0" + closing * levels):
            try_everything(text.encode(), vias=(None, "mcp", "http"), names=("problem",))
    inner = opening * 10_000 + "0" + closing * 10_000
    try_everything({"isError": True, "content": [{"type": "text", "text": inner}] * 3})
    try_everything({"status": 500, "body": inner})
    try_everything({"exit": 1, "stdout": "log\n" + inner, "stderr": inner})


DIFFICULT = {
    "empty": b"",
    "a byte-order mark": b"\xef\xbb\xbf",
    "utf-16": '{"code": "X"}'.encode("utf-16"),
    "utf-32": '{"code": "X"}'.encode("utf-32"),
    "invalid utf-8": b'{"code": "\xff\xfe\xc0\x80"}',
    "overlong utf-8": b'{"code": "\xc0\xaf"}',
    "a lone surrogate": b'{"code": "\\ud800", "message": "\\udfff"}',
    "a lone surrogate as a key": b'{"\\ud800": 1, "code": "X"}',
    "a lone surrogate in utf-8": b'{"code": "\xed\xa0\x80"}',
    "a NUL": b'{"code": "X\x00"}\x00',
    "1e400": b'{"code": "X", "retry_after": 1e400, "status": -1e400}',
    "NaN": b'{"code": "X", "retry_after": NaN, "status": Infinity, "recovery": NaN}',
    "a million digits": b'{"code": "X", "retry_after": ' + b"9" * 1_000_000 + b"}",
    "a million digits behind the point": b'{"code": "X", "retry_after": 0.' + b"9" * 1_000_000 + b"}",
    "4300 digits": b'{"status": ' + b"9" * 4300 + b', "headers": {"retry-after": ' + b"9" * 4301 + b"}}",
    "a huge exponent": b'{"code": "X", "retry_after": 1e' + b"9" * 100_000 + b"}",
    "truncated": b'{"code": "X", "message": "abc',
    "truncated in an escape": b'{"code": "\\u12',
    "truncated in a character": '{"code": "漢'.encode()[:-1],
    "a thousand equal keys": b"{" + b'"code": "X",' * 1000 + b'"code": "Y"}',
    "many members": b"{" + b",".join(b'"%d":0' % number for number in range(200_000)) + b"}",
    "many items": b'{"errors": [' + b"{}," * 300_000 + b"{}]}",
    "many problems": b'{"status": 422, "errors": [' + b'{"status":422},' * 30_000 + b"{}]}",
    "many messages": b'{"isError": true, "content": [' + b'{"type":"text","text":"{"},' * 30_000 + b"{}]}",
    "many parts": b'{"artifacts": [' + b'{"parts":[{"data":{}}]},' * 30_000 + b"{}]}",
    "a long string": b'{"code": "X", "message": "' + b"a" * (MAX_BYTES - 100) + b'"}',
    "many lines": b'{"exit": 1, "stdout": "' + b"\\n{" * 1_000_000 + b'"}',
    "many commas": b'{"status": 429, "headers": {"RateLimit": "' + b"," * 1_000_000 + b'"}}',
    "many semicolons": b'{"status": 429, "headers": {"RateLimit": "' + b";" * 1_000_000 + b'"}}',
    "spaces": b" " * MAX_BYTES,
    "just too large": b'"' + b"a" * (MAX_BYTES - 1) + b'"',
}


@pytest.mark.parametrize("name", DIFFICULT)
def test_difficult_documents(name):
    """Readers handle documents that are known to cause problems in parsers."""
    data = DIFFICULT[name]
    if len(data) < 1000:
        try_everything(data)
        try_everything(data.decode("utf-8", "surrogateescape"))
        try_everything(bytearray(data))
        try_everything(memoryview(data))
    else:
        # Parsing is the same for every `via`, so a few are enough for large documents.
        try_everything(data, vias=(None, "mcp"), names=("problem", "envelope"))


def test_a_hundred_megabytes():
    """A document of 100 MB is rejected by its size, without parsing."""
    huge = b'{"code": "X", "message": "' + b"a" * 100_000_000 + b'"}'
    began = time.process_time()
    try_everything(huge)
    try_everything({"exit": 1, "stdout": huge, "stderr": ""}, vias=("cli",), names=())
    try_everything({"status": 500, "body": huge}, vias=("http",), names=())
    assert time.process_time() - began < SECONDS


@pytest.mark.parametrize(
    "number", [10**400, -(10**400), 10**5000, -(10**5000)], ids=["big", "-big", "huge", "-huge"]
)
def test_numbers_beyond_a_double(number):
    """Readers handle huge numbers in every member; Python refuses to convert some of them to text."""
    for via, found in documents.items():
        for document in found:
            for name in document:
                try_everything({**document, name: number}, vias=(None, via))
    for header in ("Retry-After", "retry-after-ms", "x-ratelimit-remaining", "date"):
        try_everything({"status": 503, "headers": {header: number}})
    try_everything({"code": "X", "retry_after": number, "retry_after_ms": number, "status": number})


def test_values_that_contain_themselves():
    """Readers handle values that contain themselves, and values that double on every level."""
    endless: dict = {"code": "X", "title": "x", "status": 500, "isError": True}
    endless |= {
        "errors": [endless],
        "error": endless,
        "payload": endless,
        "body": endless,
        "details": endless,
    }
    # Making a value plain is the same for every `via`.
    try_everything(endless, vias=(None, "problem"), names=())
    double: dict = {"code": "X"}
    for _ in range(200):
        double = {"code": "X", "title": "x", "status": 422, "errors": [double, double]}
    try_everything(double, vias=(None, "adcp"), names=("envelope",))


@pytest.mark.soak
@pytest.mark.parametrize("via", VIAS)
def test_broken_documents_at_length(via):
    """Like test_broken_documents, with 5,000 examples."""
    from hypothesis import settings

    @settings(often, max_examples=5000)
    @given(mutated(via))
    def everything(value):
        try_everything(value, vias=EVERY_VIA)

    everything()
