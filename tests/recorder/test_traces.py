"""`group_traces` and `describe`: one timeline per trace, one sentence per event."""

import pytest

from amends import Decision, Fault
from amends.core.enums import Action
from amends.recorder import Event, group_traces
from amends.recorder.event import OUTCOMES
from amends.recorder.traces import describe, stamp

FAULT = Fault(code="TIMEOUT", status=504)


def event(**members):
    return Event(**({"at": 1.0, "where": "call", "outcome": "retry", "fault": FAULT} | members))


def test_events_without_a_trace_are_alone():
    """They are not one trace."""
    traces = group_traces([event(), event(), event(trace_id="a"), event(trace_id="a", at=2.0)])
    assert [(trace.id, len(trace.events)) for trace in traces] == [("a", 2), ("", 1), ("", 1)]


@pytest.mark.parametrize(
    ("members", "text"),
    [
        (
            {"outcome": "sent", "where": "http server", "status": 504, "sent": "X"},
            "TIMEOUT 504; sent to the caller with 504 as X",
        ),
        (
            {"outcome": "recovered", "elapsed": 0.25, "attempt": 2},
            "TIMEOUT 504, try 2; recovered after 250 ms",
        ),
        ({"outcome": "lost", "count": 3}, "3 events could not be written"),
        (
            {
                "outcome": "gave-up",
                "decision": Decision(action=Action.VERIFY, delay=None, reason="effect-unknown"),
            },
            "TIMEOUT 504, try 1; gave-up (the call may have had its effect, and a repeat is not known to be safe)",
        ),
        (
            {"name": "GET shop.test", "method": "GET", "url": "https://shop.test/a"},
            "GET https://shop.test/a: TIMEOUT 504, try 1",
        ),
        (
            {"where": "gateway", "upstream": "shop", "name": "POST /orders"},
            "shop: POST /orders: TIMEOUT 504, try 1",
        ),
    ],
)
def test_a_sentence(members, text):
    """What was asked for, the code, the try, the outcome and why."""
    assert describe(event(**members)).startswith(text)


def test_every_outcome_has_a_sentence():
    """Also in the head of a trace."""
    for outcome in OUTCOMES:
        (trace,) = group_traces([event(outcome=outcome, trace_id="a")])
        assert trace.sentence.startswith(outcome)
        assert describe(event(outcome=outcome))


def test_times_have_milliseconds():
    """RFC 3339 in UTC."""
    assert stamp(1736073000.25) == "2025-01-05T10:30:00.250Z"
