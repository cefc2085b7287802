"""`Event`: entries of the store, and entries that are none."""

from amends import Fault
from amends.recorder.event import ENDS, OUTCOMES, Event, decode_events, encode_events


def test_events_survive_the_store():
    """The id is the position in the store."""
    event = Event(
        at=1.5, where="call", outcome="retry", fault=Fault(code="TIMEOUT", trace_id="ab12"), facts={"a": [1]}
    )
    (read,) = decode_events(encode_events([event]), 12)
    assert read.id == "12.0"
    assert (read.at, read.fault, read.facts) == (1.5, event.fault, {"a": [1]})
    assert read.has_trace("ab")
    assert not read.has_trace("b1")


def test_anything_else_has_no_events():
    """Garbage, other JSON and deep nesting."""
    for entry in (b"", b"{", b"\xff\x00", b"[]", b"{}", b'[{"at":1}]', b'[{"at":"x"}]', b"[" * 100_000, b"7"):
        assert decode_events(entry, 1) == []


def test_the_ends_are_outcomes():
    """Every end is a key of OUTCOMES."""
    assert set(OUTCOMES) >= ENDS
