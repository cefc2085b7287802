"""Envelopes and payloads: a total and liberal reader, a strict writer."""

import json
import re
import subprocess
import sys

import msgspec
import pytest
from arcp._envelope import Envelope as Published
from arcp._messages.session import SessionResume
from hypothesis import given
from hypothesis import strategies as st

from amends.arcp import wire
from amends.arcp.wire import Envelope, Malformed
from amends.arcp.wire import messages as m

FRAME = {"arcp": "1.1", "id": "01J", "type": "session.ping", "session_id": "s", "payload": {"nonce": "n"}}


def frame(**changes):
    return json.dumps({**FRAME, **changes})


def payload(type, value):
    message = wire.read(json.dumps({"arcp": "1", "id": "x", "type": type, "payload": value}))
    assert isinstance(message, Envelope)
    return wire.read_payload(message)


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


def test_resuming_from_the_beginning():
    """0 is written, because a published peer requires it."""
    written = json.loads(msgspec.json.encode(m.Hello(resume=m.Resume("sess_1", "x", 0))))["resume"]
    assert written == {"session_id": "sess_1", "resume_token": "x", "last_event_seq": 0}
    assert SessionResume.model_validate(written).last_event_seq == 0
    assert (
        payload("session.hello", {"resume": {"session_id": "s", "resume_token": "x"}}).resume.last_event_seq
        == 0
    )


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


def test_payloads_that_are_not_objects():
    """A payload that was skipped while reading the envelope may be invalid; reading it reports that."""
    broken = Envelope("1", "x", "job.submit", payload=msgspec.Raw(b'{"agent":'))
    assert wire.payload_of(broken) is None
    assert wire.read_payload(broken).reason == "the payload of job.submit cannot be read"
    # Skipping does not check escapes, so an invalid one is not noticed; deep brackets are allowed.
    odd = wire.read(frame(payload={"a": 1}).replace('{"a": 1}', '{"a": "\\q", "b": [' + "[]," * 300 + "[]]}"))
    assert isinstance(odd, Malformed) or wire.payload_of(odd) is None


def test_invalid_utf8_inside_a_string():
    """An incomplete character in bytes."""
    data = frame(type="job.result", payload={"result": "@"}).encode().replace(b"@", b"\xff")
    assert wire.read_payload(wire.read(data)).result == "\ufffd"
    deep = frame(payload={"a": "@"}).encode().replace(b'"@"', b'["\xff"' + b",[]" * 300 + b"]")
    assert isinstance(wire.read(deep), Envelope)


@pytest.mark.parametrize(
    ("type", "value", "reason"),
    [
        ("job.submit", {}, "does not fit"),
        ("job.submit", None, "does not fit"),
        ("job.submit", [], "does not fit"),
        ("job.submit", {"agent": 5}, "does not fit"),
        ("session.ack", {"last_processed_seq": "x"}, "does not fit"),
        ("job.teleport", {}, "unknown"),
    ],
)
def test_payloads_that_do_not_fit(type, value, reason):
    """Malformed with the request's id, so that it can be answered."""
    found = payload(type, value)
    assert isinstance(found, Malformed)
    assert reason in found.reason
    assert found.id == "x"


def test_payloads_as_peers_write_them():
    """Null for absent members, strings for numbers, agents by name or as objects, budgets in any form, unknown members."""
    assert payload("session.bye", None) == m.Bye()
    assert payload("job.submit", {"agent": "a", "max_runtime_sec": "30", "new": 1}).max_runtime_sec == 30
    welcome = payload("session.welcome", {"capabilities": {"agents": ["a", {"name": "b", "default": "1"}]}})
    assert welcome.capabilities.agents == ["a", m.Agent("b", default="1")]
    assert (
        payload(
            "session.welcome", {"heartbeat_interval_sec": None, "resume_window_sec": 600}
        ).resume_window_sec
        == 600
    )
    accepted = payload(
        "job.accepted", {"job_id": "j", "budget": {"USD": 5.0, "EUR": "5.00"}, "credentials": None}
    )
    assert accepted.budget == {"USD": 5.0, "EUR": "5.00"}
    assert payload("job.subscribed", {"job_id": "j", "replayed": 3}).replayed == 3


def test_every_type_of_the_protocol_has_its_struct():
    """Sections 6 to 8, v1.0 and v1.1; all types can be written and read back."""
    assert set(wire.MESSAGES) >= {
        *(f"session.{name}" for name in ("hello", "welcome", "error", "bye", "close", "closed", "resume")),
        *(f"session.{name}" for name in ("ping", "pong", "ack", "list_jobs", "jobs")),
        *(
            f"job.{name}"
            for name in ("submit", "accepted", "cancel", "cancelled", "event", "result", "error")
        ),
        *(f"job.{name}" for name in ("subscribe", "subscribed", "unsubscribe")),
    }
    for type, struct in wire.MESSAGES.items():
        required = [field for field in msgspec.structs.fields(struct) if field.required]
        example = struct(**{field.name: "x" if field.type is str else 1 for field in required})
        assert wire.read_payload(wire.read(wire.write(wire.envelope(type, example)))) == example


def test_secrets_are_not_shown():
    """Tokens and credentials are not in the `repr`."""
    secret = "s3cr3t"
    for value in (
        m.Auth("bearer", secret),
        m.Hello(auth=m.Auth("bearer", secret)),
        m.Resume("s", secret),
        m.Welcome(session_id="s", resume_token=secret),
        m.Accepted("j", credentials=[{"value": secret}]),
        m.Subscribed("j", credentials=[{"value": secret}]),
    ):
        assert secret not in repr(value) + str(value)
        assert secret.encode() in msgspec.json.encode(value)


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


def test_ids():
    """Unique, sortable by time and of one form; a forked child generates different ones."""
    ids = [wire.message_id() for _ in range(10_000)]
    assert len(set(ids)) == len(ids)
    assert ids == sorted(ids)
    assert all(re.fullmatch(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", id) for id in ids[:100])
    assert re.fullmatch(r"job_[0-7][0-9A-HJKMNP-TV-Z]{25}", wire.new_id("job"))
    assert len({wire.new_id("job")[14:] for _ in range(1000)}) == 1000
    script = """
import os
from amends.arcp.wire import message_id
message_id()
reading, writing = os.pipe()
if os.fork() == 0:
    os.write(writing, message_id()[10:].encode())
    os._exit(0)
os.wait()
assert os.read(reading, 100).decode()[:8] != message_id()[10:18]
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_times():
    """UTC with a Z, in both directions."""
    assert wire.text_of(0) == "1970-01-01T00:00:00Z"
    assert wire.text_of(1_778_715_720.5) == "2026-05-13T23:42:00.500Z"
    assert wire.seconds_of("2026-05-13T23:42:00.500Z") == 1_778_715_720.5
    assert wire.seconds_of("2026-05-13t23:42:00z") == wire.seconds_of("2026-05-13T23:42:00+00:00")
    for text in (
        None,
        5,
        "",
        "now",
        "2026-05-13T23:42:00",
        "2026-02-30T00:00:00Z",
        "2026-05-13T23:42:00-01:00",
    ):
        assert wire.seconds_of(text) is None
    one, two = wire.now_text(), wire.now_text()
    assert wire.seconds_of(one) <= wire.seconds_of(two)


def test_reading_the_wire_loads_no_network():
    """Pure, except for the clock and the random numbers of ids."""
    script = "import sys, amends.arcp.wire, amends.arcp.leases; print('asyncio' in sys.modules, 'websockets' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"]
