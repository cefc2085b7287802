"""The timeline of a task, and the records it is made of."""

from typing import get_args

import pytest

from amends import Fault
from amends.core.decision import REASONS, Decision
from amends.core.enums import Action
from amends.effects.steps import StepRecord
from amends.tasks import Step, entries
from amends.tasks import fold as fold_module
from amends.tasks.entries import decode, encode
from amends.tasks.timeline import timeline

FAULT = Fault(code="MCP_RATE_LIMITED", vocabulary="task", message="slow\x1b[31m down")
AGAIN = Decision(action=Action.RETRY, delay=2.0, reason="hint")
OVER = Decision(action=Action.ESCALATE, delay=None, reason="attempts")
STEPS = (Step(name="a", type="work"), Step(name="b", type="work"))

RECORDS = [
    (
        entries.Submitted(at=0, id="t", type="plan", steps=STEPS, single=False, until=90.0),
        "2 steps, deadline",
    ),
    (entries.Taken(at=1, worker="w-1"), "taken by w-1"),
    (entries.Started(at=1, step="a", attempt=1), "must not happen twice"),
    (
        entries.Failed(at=2, step="a", began=1, fault=FAULT, decision=AGAIN),
        "a, attempt 1, 1 s: MCP_RATE_LIMITED slow",
    ),
    (entries.Released(at=2, until=4.0, lease="1", take=1), "waits 2 s, until 1970-01-01T00:00:04Z"),
    (entries.Taken(at=4, worker="w-2", takeover=True), "taken over after its worker was lost"),
    (entries.Doubted(at=4, step="a"), "verify whether it happened"),
    (entries.Released(at=4), "waits for an answer"),
    (entries.Verified(at=5, step="a", happened=False), "verified: it did not happen"),
    (entries.Parked(at=5, step="a", until=5.5), "the agent is busy; retry in 500 ms"),
    (entries.Asked(at=6, step="a", question="Which?"), "a asks: Which?"),
    (entries.Answered(at=7, step="a", answer="s3cret"), "a was answered"),
    (entries.Effect(at=8, step="a", name="order", result="s3cret"), "order committed"),
    (
        entries.Stepped(
            at=8,
            step="a",
            identity='["charge","17"]',
            kind="begin",
            record=StepRecord('["charge","17"]', "d", result='"s3cret"'),
        ),
        "a: charge/17 began",
    ),
    (
        entries.Delegated(at=8, step="a>x/y#1", agent="x", type="y", payload="s3cret", began=8),
        "y delegated to x: done",
    ),
    (entries.Finished(at=9, step="a", began=8, result="s3cret"), "a, attempt 2, 1 s: done"),
    (
        entries.Failed(at=9, step="b", began=9, fault=FAULT, decision=OVER),
        f"escalate ({REASONS['attempts']})",
    ),
    (entries.Finished(at=9, step="b", began=9, degraded="TIMEOUT"), "done by a fallback after TIMEOUT"),
    (entries.Cancelled(at=10), "cancelled by request"),
    (entries.Undoing(at=10), "undoing the finished steps"),
    (entries.Undoing(at=10, fault=FAULT), "undoing the finished steps after MCP_RATE_LIMITED"),
    (entries.Finished(at=11, step="a", began=10, undo=True), "undoing a, attempt 1, 1 s: done"),
    (entries.Ended(at=11, status="cancelled"), "cancelled"),
    (entries.Retried(at=12), "retried by request"),
    (entries.Repaired(at=12, valid=7), "continued after entry 7"),
    (entries.Failed(at=13, step="a", began=12, fault=FAULT, decision=AGAIN), "a, attempt 1"),
    (entries.Ended(at=13, status="failed", fault=FAULT), "failed: MCP_RATE_LIMITED"),
]


def test_every_record_has_a_line():
    """In order, with counted attempts and waits, and without payloads, results and control characters."""
    lines = timeline([record for record, _ in RECORDS])
    assert {type(record) for record, _ in RECORDS} == set(entries.Record.__args__)
    for line, (record, text) in zip(lines, RECORDS, strict=True):
        assert text in line.text, line
        assert line.what == type(record).__name__.lower()
        assert "s3cret" not in line.text
        assert "\x1b" not in line.text
    assert lines[3].wait == 2


@pytest.mark.parametrize(
    "record", [record for record, _ in RECORDS], ids=lambda record: type(record).__name__
)
def test_every_record_survives_encoding(record):
    """Decoding returns the encoded record."""
    assert decode(encode([record])) == [record]


def test_every_record_has_its_handlers():
    """In the state, in the timeline, and in `entries.__all__`."""
    assert set(get_args(entries.Record)) == {type(record) for record, _ in RECORDS}
    assert set(get_args(entries.Record)) == set(fold_module._RULES)
    assert {each for each in get_args(entries.Record) if each.__name__ not in entries.__all__} == set()
