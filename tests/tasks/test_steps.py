"""The state of one step after its attempts."""

import pytest

from amends.core.decision import Decision
from amends.core.enums import Action, Executed, Recovery
from amends.core.fault import Fault
from amends.tasks.entries import Failed, Finished
from amends.tasks.plan import Step
from amends.tasks.steps import StepState

RETRY = Decision(action=Action.RETRY, delay=4.0, reason="transient")
STOP = Decision(action=Action.ESCALATE, delay=None, reason="terminal")


def state(**changes):
    return StepState(Step(name="s", type="t", optional=changes.pop("optional", False)), **changes)


def failed(decision, executed=Executed.MAYBE):
    fault = Fault(
        code="TIMEOUT", vocabulary="task", recovery=Recovery.UNCERTAIN, executed=executed, attempt=3
    )
    return Failed(at=12.0, step="s", began=10.0, fault=fault, decision=decision)


def test_a_retry():
    """The wait, the attempts here and below, and the time of the next attempt."""
    step = state(open=True)
    step.apply_failed(failed(RETRY))
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
    step = state(open=open)
    step.apply_failed(failed(STOP, executed))
    assert (step.state, step.doubtful, step.in_doubt) == ("failed", doubtful, doubtful)
    assert step.fault.code == "TIMEOUT"


def test_a_finished_step():
    step = state(open=True, doubtful=True)
    step.apply_finished(Finished(at=3.0, step="s", began=1.0, result=7))
    assert (step.state, step.result, step.ended, step.in_doubt, step.settled) == ("done", 7, 3.0, False, True)
    by_fallback = state()
    by_fallback.apply_finished(Finished(at=3.0, step="s", began=1.0, degraded="TIMEOUT"))
    assert (by_fallback.degraded, by_fallback.stepper.state.attempt) == ("TIMEOUT", 0)


def test_what_counts_as_settled():
    """A failed step only if it is optional."""
    assert not state().settled
    assert not state(state="failed").settled
    assert state(state="failed", optional=True).settled


def test_a_reset():
    """Answers and effects are kept unless the step was undone; a doubt is never forgotten."""
    step = state(state="failed", doubtful=True, answers=["yes"], effects={"e": 1})
    step.reset()
    assert (step.state, step.open, step.answers, step.effects, step.round) == (
        "ready",
        True,
        ["yes"],
        {"e": 1},
        1,
    )
    undone = state(state="done", answers=["yes"], effects={"e": 1}, delegations={"d": 1})
    undone.undo = state(state="done")
    undone.reset()
    assert (undone.round, undone.answers, undone.effects, undone.delegations, undone.undo) == (
        2,
        [],
        {},
        {},
        None,
    )


def test_a_copy_shares_nothing():
    step = state(answers=[1], effects={"e": 1}, delegations={}, redone={"d": 1})
    step.undo = state()
    copy = step.copy()
    copy.answers.append(2)
    copy.effects["f"] = copy.redone["x"] = 2
    copy.undo.state = "done"
    assert (step.answers, step.effects, step.redone, step.undo.state) == ([1], {"e": 1}, {"d": 1}, "ready")
    assert (step.delegation_round("d"), step.delegation_round("other")) == (2, 1)
