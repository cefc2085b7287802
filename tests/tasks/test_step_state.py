"""The state of one step after its attempts."""

import pytest

from amends.core.decision import Decision
from amends.core.enums import Action, Executed, Recovery
from amends.core.fault import Fault
from amends.tasks.entries import Answered, Effect, Failed, Finished, Record, Retried, Submitted
from amends.tasks.fold import delegation, fold
from amends.tasks.plan import Step
from amends.tasks.state import StepState, TaskState

RETRY = Decision(action=Action.RETRY, delay=4.0, reason="transient")
STOP = Decision(action=Action.ESCALATE, delay=None, reason="terminal")


def state(**changes):
    return StepState(Step(name="s", type="t", optional=changes.pop("optional", False)), **changes)


def after(step: StepState, record: Record) -> StepState:
    """The step after one record of its task."""
    task = fold(TaskState(), [Submitted(at=0.0, id="t", type="t", steps=(step.plan,))])
    task.steps["s"] = step
    return fold(task, [record]).steps["s"]


def failed(decision, executed=Executed.MAYBE):
    fault = Fault(
        code="TIMEOUT", vocabulary="task", recovery=Recovery.UNCERTAIN, executed=executed, attempt=3
    )
    return Failed(at=12.0, step="s", began=10.0, fault=fault, decision=decision)


def test_a_retry():
    """The wait, the attempts here and below, and the time of the next attempt."""
    step = after(state(open=True), failed(RETRY))
    stepper = step.stepper.state
    assert (step.state, step.due, step.open, step.doubtful) == ("ready", 16.0, False, False)
    assert (stepper.attempt, stepper.waited, stepper.below, stepper.uncertain) == (1, 4.0, 2, 1)
    assert step.fault is None


@pytest.mark.parametrize(
    ("open", "executed", "doubtful"),
    [(True, Executed.MAYBE, True), (True, Executed.NO, False), (False, Executed.MAYBE, False)],
)
def test_a_last_failure(open, executed, doubtful):
    """It leaves a doubt if its start was recorded and it may have happened."""
    step = after(state(open=open), failed(STOP, executed))
    assert (step.state, step.doubtful, step.in_doubt) == ("failed", doubtful, doubtful)
    assert step.fault.code == "TIMEOUT"


def test_a_finished_step():
    step = after(state(open=True, doubtful=True), Finished(at=3.0, step="s", began=1.0, result=7))
    assert (step.state, step.result, step.ended, step.in_doubt, step.settled) == ("done", 7, 3.0, False, True)
    by_fallback = after(state(), Finished(at=3.0, step="s", began=1.0, degraded="TIMEOUT"))
    assert (by_fallback.degraded, by_fallback.stepper.state.attempt) == ("TIMEOUT", 0)


def test_what_counts_as_settled():
    """A failed step only if it is optional."""
    assert not state().settled
    assert not state(state="failed").settled
    assert state(state="failed", optional=True).settled


def test_a_reset():
    """Answers and effects are kept unless the step was undone; a doubt is never forgotten."""
    step = state(state="failed", doubtful=True, answers=["yes"], effects={"e": 1})
    step = after(step, Retried(at=5.0))
    assert (step.state, step.open, step.answers, step.effects, step.round) == (
        "ready",
        True,
        ["yes"],
        {"e": 1},
        1,
    )
    undone = state(state="done", answers=["yes"], effects={"e": 1}, delegations={"d": 1})
    undone.undo = state(state="done")
    undone = after(undone, Retried(at=5.0))
    assert (undone.round, undone.answers, undone.effects, undone.delegations, undone.undo) == (
        2,
        [],
        {},
        {},
        None,
    )


def test_the_state_before_a_record_does_not_change():
    """Neither the step nor what was done to undo it."""
    step = state(answers=[1], effects={"e": 1}, delegations={"d": 1}, redone={"d": 1}, state="failed")
    step.undo = state(effects={"u": 1})
    before = [1], {"e": 1}, {"d": 1}, {"d": 1}, "failed", {"u": 1}
    for record in (
        Retried(at=5.0),
        Finished(at=6.0, step="s", began=5.5, undo=True),
        Effect(at=6.0, step="s", name="v", undo=True),
        Effect(at=6.0, step="s", name="f"),
        Answered(at=6.0, step="s", answer=2),
    ):
        assert after(step, record) != step
        assert (
            step.answers,
            step.effects,
            step.delegations,
            step.redone,
            step.state,
            step.undo.effects,
        ) == before


def test_the_rounds_of_delegations():
    """They grow when the delegation was undone."""
    parent = state(redone={"d": 1})
    assert [delegation(name, "a", "t", None, parent).round for name in ("d", "other")] == [2, 1]
