"""The checker of the chaos tests: what it accepts as a delayed call, and what it reports."""

from typing import NamedTuple

import pytest

from amends.tasks.entries import Taken
from tests.tasks.call_evidence import CHECK, Call, judge, judge_actions, lease_end, note_checks
from tests.tasks.chaos import Ledger, flaky_agent

A = Call("t", "s", "a", "1", 1, checked=10, awaited=False, asked=11, at=12, until=20, wall=112, again=False)
LATE = A._replace(at=25, wall=125)
TAKEN = [Taken(at=105, worker="a"), Taken(at=121, worker="b", takeover=True)]


@pytest.mark.parametrize(
    ("call", "taken", "finished", "expected"),
    [
        (A, TAKEN, {}, "nothing"),
        (A, TAKEN, {"s": 122}, "nothing"),
        (LATE, TAKEN[:1], {}, "nothing"),  # nobody has taken the task: the worker still has it
        (LATE, TAKEN, {}, "delayed"),
        (LATE, TAKEN, {"s": 123}, "delayed"),
        (LATE._replace(again=True), TAKEN, {}, "delayed"),
        (LATE._replace(checked=21), TAKEN, {}, "violation"),  # it had lost the task when it checked
        (LATE._replace(until=1e12), TAKEN, {}, "violation"),  # it did not check
        (LATE._replace(awaited=True), TAKEN, {}, "violation"),  # it waited between the check and the call
        (LATE, [TAKEN[0], Taken(at=115, worker="b")], {}, "violation"),  # taken from a worker that had it
        (A, TAKEN, {"s": 111}, "violation"),
        (A._replace(again=True), TAKEN, {}, "violation"),
        (A, [TAKEN[0], Taken(at=110, worker="b")], {}, "violation"),
    ],
)
def test_one_call(call, taken, finished, expected):
    delayed, violations = judge([call], taken, finished)
    assert (delayed, violations) == {
        "nothing": ([], []),
        "delayed": ([call], []),
        "violation": ([], [call]),
    }[expected]


def test_an_epoch_that_was_fenced():
    """By another run of the same worker."""
    fenced = A._replace(at=13, wall=113)
    assert judge([A._replace(epoch=2), fenced], TAKEN[:1], {}) == ([], [fenced])
    late = LATE._replace(wall=112)
    assert judge([A._replace(epoch=2), late], TAKEN[:1], {}) == ([late], [])


def test_effects_that_happened_twice():
    """All but one must have been delayed."""
    again = A._replace(worker="b")
    assert judge_actions([A]) == judge_actions([LATE]) == ([], [])
    assert judge_actions([A, again]) == ([], [again])
    assert judge_actions([A, LATE]) == ([LATE], [])
    assert judge_actions([A, LATE._replace(checked=21)]) == ([], [LATE._replace(checked=21)])


def test_where_a_delayed_call_was():
    """Kept waiting by the file, or not yet made when the lease ended."""
    assert LATE.cause == "late, kept waiting"
    assert LATE._replace(asked=24).cause == "late, suspended"


class FakeLease:
    id, epoch, expires_in = "7", 3, 100.0

    async def extend(self):
        self.expires_in = 200.0


class FakeContext(NamedTuple):
    task: str = "t"
    step_name: str = "s"


async def test_what_a_call_records(tmp_path, monkeypatch):
    """The check before it, and the lease at the moment at which it is executed."""
    from amends.tasks.journal import LeaseGuard

    monkeypatch.setattr(LeaseGuard, "ensure", LeaseGuard.ensure)
    monkeypatch.setattr(LeaseGuard, "extend", LeaseGuard.extend)
    note_checks()
    guard = LeaseGuard(FakeLease())
    ledger = Ledger(f"{tmp_path}/ledger.db", shared=False)
    assert "book" in flaky_agent(ledger).capabilities
    ledger.record_start(FakeContext())
    await guard.ensure()
    ledger.record_start(FakeContext())
    await guard.extend()
    ledger.record_start(FakeContext())
    unchecked, checked, extended = ledger.calls("starts")
    ledger.close()
    CHECK.set(None)
    assert unchecked.until == lease_end() == 1e12
    assert (checked.message, checked.epoch, checked.again) == ("7", 3, 0)
    assert checked.checked <= checked.asked <= checked.at < checked.until <= checked.at + 100
    assert 99 < extended.until - checked.until < 101 + extended.at - checked.at
