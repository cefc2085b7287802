"""What the caller of the present request sent: its trace, and the tries and the time that it has left."""

from contextvars import ContextVar

import pytest

from amends.recovery import incoming
from amends.recovery.incoming import NOTHING, Left, from_environment, handling, left, left_in, outgoing_left

ID, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_a_request_that_a_module_keeps_gives_the_trace(monkeypatch):
    """The sources are read in their order, and only while they have a request; other values are ignored."""
    monkeypatch.setattr(incoming, "_SOURCES", [])
    outer, inner = (ContextVar(name, default=None) for name in ("outer", "inner"))
    incoming.add_source(outer, lambda request: request["traceparent"])
    incoming.add_source(inner, lambda request: request, first=True)
    assert incoming.incoming() is None
    parent, other = (f"00-{id}-{PARENT}-01" for id in (ID, ID[::-1]))
    outer.set({"traceparent": parent})
    inner.set("no traceparent")
    assert incoming.incoming() == parent
    inner.set(other)
    assert incoming.incoming() == other


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("3", Left(tries=3)),
        ("0", Left(tries=1)),
        (";deadline-ms=1000", Left(until=100.95)),
        ("2;deadline-ms=10", Left(tries=2, until=100.0)),
        ("2;call=ab12", Left(tries=2, call="ab12")),
        ("2;unknown=1;deadline-ms=x", Left(tries=2)),
    ],
)
def test_what_a_caller_states(text, stated):
    """Tries, time and the id of the call, each of which may be missing; a part of the time is kept for the own answer."""
    assert left_in(text, 100.0) == stated


@pytest.mark.parametrize("text", [None, 7, "many", "-1", "3" * 300, "3\n", "٣", ";deadline-ms=" + "9" * 400])
def test_wrong_statements_count_as_absent(text):
    """Whatever a caller sends, nothing is raised and nothing is limited."""
    assert left_in(text, 0.0) is NOTHING


@pytest.mark.parametrize(("tries", "seconds"), [(1, None), (7, 2.5), (None, 0.25)])
def test_what_is_sent_is_read(tries, seconds):
    """The text of an outgoing call says the same to the called service, less the time for its answer."""
    stated = left_in(outgoing_left(tries, seconds), 0.0)
    assert stated.tries == tries
    assert (stated.until is None) == (seconds is None)
    assert seconds is None or 0.9 * seconds - 0.05 <= stated.until < seconds


def test_the_innermost_context_counts():
    """What `handling` was entered with is left again afterwards; a command reads its environment."""
    with handling(None, "5"):
        with from_environment({"AMENDS_LEFT": "2", "TRACEPARENT": f"00-{ID}-{PARENT}-01"}):
            assert (left().tries, incoming.handled_trace()) == (2, ID)
        assert left().tries == 5
    assert left() is NOTHING
