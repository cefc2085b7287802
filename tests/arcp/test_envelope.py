"""Envelopes and payloads: a total and liberal reader, a strict writer."""

import json
import subprocess
import sys

import msgspec
import pytest
from arcp._envelope import Envelope as Published
from hypothesis import given
from hypothesis import strategies as st

from amends.arcp import wire
from amends.arcp.wire import Envelope, Malformed
from amends.arcp.wire import messages as m

FRAME = {"arcp": "1.1", "id": "01J", "type": "session.ping", "session_id": "s", "payload": {"nonce": "n"}}


def frame(**changes):
    return json.dumps({**FRAME, **changes})


def test_absent_members_are_not_written():
    """5: one line, no nulls, our version, a new id."""
    message = wire.envelope("job.submit", m.Submit("echo", {"a": 1}), session_id="s")
    text = wire.write(message)
    assert json.loads(text) == {
        "arcp": "1.1",
        "id": message.id,
        "type": "job.submit",
        "session_id": "s",
        "payload": {"agent": "echo", "input": {"a": 1}},
    }
    assert b"\n" not in text
    full = wire.envelope("job.event", {}, job_id="j", event_seq=3, trace_id="t", id="mine")
    assert json.loads(wire.write(full))["event_seq"] == 3
    assert json.loads(wire.write(wire.envelope("session.bye")))["payload"] == {}
    with pytest.raises(TypeError):
        wire.write(wire.envelope("job.submit", {"a": object()}))


def test_a_published_peer_reads_what_we_write():
    """Ids are ULIDs, the only form that it accepts."""
    message = json.loads(wire.write(wire.envelope("job.submit", m.Submit("echo"), trace_id="ab" * 16)))
    assert Published.from_wire(message).type == "job.submit"
    assert Published.from_wire({**message, "id": wire.new_id("evt")}).id


def test_written_messages_are_read_back():
    """The payload is decoded only when it is read as its type."""
    message = wire.read(wire.write(wire.envelope("session.ack", m.Ack(7))))
    assert message.payload.__class__ is msgspec.Raw
    assert wire.read_payload(message) == m.Ack(7)
    assert wire.payload_of(message) == {"last_processed_seq": 7}
    assert wire.payload_of(Envelope("1", "x", "t", payload={"a": 1})) == {"a": 1}
    assert wire.payload_of(Envelope("1", "x", "t", payload=5)) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"session_id": None, "trace_id": None, "job_id": None, "event_seq": None},
        {"event_seq": "5"},
        {"event_seq": 5.0},
        {"arcp": "1"},
        {"arcp": "1.0"},
        {"arcp": "1.7"},
        {"unknown": {"deep": [1]}, "another": None},
    ],
)
def test_a_liberal_reader(changes):
    """Nulls, numbers as strings, later versions, unknown members."""
    message = wire.read(frame(**changes))
    assert isinstance(message, Envelope)
    assert wire.read(frame(**changes).encode()) is not None
    assert wire.read(bytearray(frame(**changes).encode())).type == "session.ping"
    assert message.event_seq in {None, 5}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a JSON"),
        (b"\xff\xfe", "not a JSON"),
        ("nonsense", "not a JSON"),
        ("[]", "not a JSON"),
        ("5", "not a JSON"),
        ("null", "not a JSON"),
        ("{}", "does not fit"),
        (frame(type=5), "does not fit"),
        (frame(id=None), "does not fit"),
        (frame(event_seq="many"), "does not fit"),
        (frame(event_seq=10**400), "does not fit"),
        (frame(event_seq=2**63), "does not fit"),
        (frame(event_seq=-1), "does not fit"),
        (frame(arcp="2"), "another version"),
        (frame(arcp="11"), "another version"),
        (frame(arcp=""), "another version"),
        (frame(payload=[[[]]]).replace("[[[]]]", "[" * 300 + "]" * 300), "too deep"),
        (frame(payload={"a": 1}).replace('{"a": 1}', '{"a":' * 400 + "1" + "}" * 400), "too deep"),
        ("[" * 100_000, "too deep"),
        ("{" * 5_000, "not a JSON"),
    ],
)
def test_invalid_envelopes(data, reason):
    """Malformed with a reason of ours; never an exception."""
    found = wire.read(data)
    assert isinstance(found, Malformed)
    assert reason in found.reason


def test_a_malformed_frame_with_an_id_can_be_answered():
    """The id is available, truncated to a limit."""
    assert wire.read(frame(type=5, id="mine")).id == "mine"
    assert wire.read(frame(arcp="3", id="x" * 100)).id == "x" * 64
    assert "hunter2" not in repr(wire.read(frame(type=["hunter2"])))


def test_size():
    """The size of a frame is checked before it is decoded."""
    assert wire.read(frame(), limit=10).reason == "the frame is too large"
    assert isinstance(wire.read(b" " * (wire.MAX_FRAME + 1)), Malformed)
    wide = frame(payload={"list": [{}] * 5000})
    assert isinstance(wire.read(wide), Envelope)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("NaN", None),
        ("Infinity", None),
        ("1e400", None),
        ('"\\ud800"', "\ufffd"),
        ('"\\ud83d\\ude00"', "\U0001f600"),
        ("12345678901234567890123", 12345678901234567890123),
        ("0.1", 0.1),
        ('[NaN, {"\\ud800": 1}]', [None, {"\ufffd": 1}]),
    ],
)
def test_values_that_other_writers_allow(written, read):
    """NaN or an unpaired surrogate must not lose a result."""
    message = wire.read(
        frame(type="job.result", payload={"result": 0}).replace('"result": 0', f'"result": {written}')
    )
    assert wire.read_payload(message).result == read
    assert wire.payload_of(message) == {"result": read}


def test_invalid_utf8_inside_a_string():
    """An incomplete character in bytes."""
    data = frame(type="job.result", payload={"result": "@"}).encode().replace(b"@", b"\xff")
    assert wire.read_payload(wire.read(data)).result == "\ufffd"
    deep = frame(payload={"a": "@"}).encode().replace(b'"@"', b'["\xff"' + b",[]" * 300 + b"]")
    assert isinstance(wire.read(deep), Envelope)


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_no_bytes_make_it_raise(data):
    """Reading arbitrary bytes never raises."""
    found = wire.read(data)
    if isinstance(found, Envelope):
        wire.read_payload(found)
        wire.payload_of(found)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
MEMBERS = st.dictionaries(
    st.sampled_from(["arcp", "id", "type", "session_id", "event_seq", "payload", "x"]), JSON
)


@given(MEMBERS, st.sampled_from(sorted(wire.MESSAGES)), JSON)
def test_no_document_makes_it_raise(members, type, value):
    """Reading arbitrary documents never raises, with every type and any payload."""
    for document in (members, {**FRAME, **members}, {**FRAME, "type": type, "payload": value}):
        found = wire.read(json.dumps(document))
        if isinstance(found, Envelope):
            wire.read_payload(found)
            assert wire.payload_of(found) is None or isinstance(wire.payload_of(found), dict)


def test_reading_the_wire_loads_no_network():
    """Pure, except for the clock and the random numbers of ids."""
    script = "import sys, amends.arcp.wire, amends.arcp.leases; print('asyncio' in sys.modules, 'websockets' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"]
