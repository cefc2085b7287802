"""The state of a task is the fold of its records, and a record that does not fit changes nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends.core.fault import Fault
from amends.durable.journal import ImpossibleRecord
from amends.tasks import entries
from amends.tasks.faults import STOPPED
from amends.tasks.fold import fold
from amends.tasks.plan import Step
from amends.tasks.state import TaskState

PLAN = (Step(name="a", type="x"), Step(name="b", type="x", after=("a",)))
SUBMITTED = entries.Submitted(at=1.0, id="t", type="plan", steps=PLAN, single=False)
FAULT = Fault(code="TIMEOUT", vocabulary="task")
NAMES = st.sampled_from(["a", "b", "no such step"])
RECORDS = st.one_of(
    st.builds(entries.Taken, at=st.just(2.0), worker=st.just("w"), takeover=st.booleans()),
    st.builds(entries.Started, at=st.just(2.0), step=NAMES, attempt=st.just(1), undo=st.booleans()),
    st.builds(entries.Finished, at=st.just(3.0), step=NAMES, began=st.just(2.0), undo=st.booleans()),
    st.builds(
        entries.Failed,
        at=st.just(3.0),
        step=NAMES,
        began=st.just(2.0),
        fault=st.just(FAULT),
        decision=st.just(STOPPED),
        undo=st.booleans(),
    ),
    st.builds(entries.Doubted, at=st.just(3.0), step=NAMES),
    st.builds(entries.Verified, at=st.just(3.0), step=NAMES, happened=st.booleans()),
    st.builds(entries.Asked, at=st.just(3.0), step=NAMES, question=st.just("?")),
    st.builds(entries.Answered, at=st.just(3.0), step=NAMES),
    st.builds(entries.Released, at=st.just(3.0), until=st.none() | st.just(9.0)),
    st.builds(entries.Cancelled, at=st.just(3.0)),
    st.builds(entries.Retried, at=st.just(3.0)),
    st.builds(entries.Undoing, at=st.just(3.0), fault=st.none() | st.just(FAULT)),
    st.builds(entries.Ended, at=st.just(4.0), status=st.sampled_from(["completed", "failed", "unheard"])),
)


def state(*records):
    return fold(TaskState(), [SUBMITTED, *records])


@given(st.lists(RECORDS, max_size=12))
def test_any_records(records):
    """They fit or are refused as a whole; the state before them is not changed; one by one or together is the same."""
    before = state()
    try:
        together = fold(before, records)
    except ImpossibleRecord:
        together = None
    assert before == state()
    one_by_one = before
    try:
        for record in records:
            one_by_one = fold(one_by_one, [record])
    except ImpossibleRecord:
        assert together is None
    else:
        assert together == one_by_one
        together.response()


def test_the_first_record():
    """Nothing fits a task that was not submitted."""
    with pytest.raises(ImpossibleRecord):
        fold(TaskState(), [entries.Cancelled(at=1.0)])


def test_a_lost_worker():
    """Steps that it may have been running are contested; a finished step shows that workers are not lost for ever."""
    lost = state(entries.Taken(at=5.0, worker="w", takeover=True))
    assert (lost.takeovers, lost.steps["a"].contested, lost.steps["b"].contested) == (1, 5.0, None)
    going = fold(lost, [entries.Finished(at=6.0, step="a", began=5.5)])
    assert (going.takeovers, going.alone, going.done) == (0, False, ["a"])


def test_a_retry_keeps_what_was_not_undone():
    """And what is in doubt has to be verified first."""
    ended = state(
        entries.Finished(at=2.0, step="a", began=1.0, result=1),
        entries.Started(at=2.0, step="b", attempt=1),
        entries.Ended(at=3.0, status="failed", fault=FAULT),
    )
    again = fold(ended, [entries.Retried(at=4.0)])
    assert (again.status, again.done, again.steps["b"].open) == ("pending", ["a"], True)
    undone = fold(ended, [entries.Finished(at=3.0, step="a", began=3.0, undo=True), entries.Retried(at=4.0)])
    assert (undone.done, undone.steps["a"].round, undone.steps["a"].state) == ([], 2, "ready")


def test_a_delegation_is_part_of_its_step():
    name = "a>w/x#1"
    made = entries.Delegated(at=2.0, step=name, agent="w", type="x", payload=None, began=1.0, result=7)
    delegated = state(made)
    assert (delegated.steps["a"].delegations, delegated.done) == ({name: 7}, [name])
    started = state(entries.Started(at=2.0, step=name, attempt=1, agent="w", type="x"))
    assert started.in_doubt == [name]
    with pytest.raises(ImpossibleRecord):
        state(entries.Started(at=2.0, step="nothing>w/x#1", attempt=1))
