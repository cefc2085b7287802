"""The faults that tasks end with say what is left behind."""

import pytest

from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault
from amends.tasks import entries
from amends.tasks.faults import (
    STOPPED,
    cancelled_fault,
    delegation_failed,
    final_fault,
    interrupted_attempt,
    workers_lost,
)
from amends.tasks.fold import fold
from amends.tasks.plan import Step
from amends.tasks.state import TaskState

FAULT = Fault(code="AGENT_BUSY", vocabulary="task", retry_after=2.0, user_message="Busy.")


def state(*records, single=False):
    steps = tuple(Step(name=name, type="pay") for name in (("a",) if single else ("a", "b", "c")))
    return fold(
        TaskState(), [entries.Submitted(at=1.0, id="t", type="x", steps=steps, single=single), *records]
    )


def finished(step, **more):
    return entries.Finished(at=3.0, step=step, began=2.0, result=step, **more)


def failed(step, **more):
    return entries.Failed(at=3.0, step=step, began=2.0, fault=FAULT, decision=STOPPED, **more)


def test_a_plan_that_failed():
    """Its cause, the step, what was kept, undone, not undone, and what is in doubt."""
    left = state(
        finished("a"),
        finished("b"),
        failed("c"),
        finished("a", undo=True),
        failed("b", undo=True),
    )
    fault = final_fault(left, FAULT)
    assert (fault.code, fault.retry_after, fault.user_message) == ("COORDINATION_FAILED", 2.0, "Busy.")
    assert fault.details["step"] == "c"
    assert fault.details["completed"] == {"b": "b"}
    assert (fault.details["undone"], fault.details["notUndone"]) == (["a"], ["b"])
    assert fault.executed is Executed.MAYBE
    assert fault.errors == (FAULT,)


def test_a_single_step_fails_with_its_own_fault():
    assert final_fault(state(failed("a"), single=True), FAULT) == FAULT
    doubtful = state(entries.Started(at=2.0, step="a", attempt=1), single=True)
    assert final_fault(doubtful, FAULT).details == {"inDoubt": ["a"]}
    assert final_fault(state(single=True), None).code == "INTERNAL_ERROR"


@pytest.mark.parametrize(
    ("records", "executed"),
    [
        ((), None),
        ((finished("a"), finished("a", undo=True)), None),
        ((entries.Doubted(at=2.0, step="a"),), Executed.MAYBE),
        ((finished("a"), failed("a", undo=True)), Executed.YES),
    ],
)
def test_a_cancelled_task(records, executed):
    """It has an error only if it leaves something behind."""
    fault = cancelled_fault(state(*records))
    assert (fault and fault.executed) == executed


def test_other_faults():
    error = delegation_failed(FAULT, "booking", "book").fault
    assert (error.code, error.retry_after, error.details["agent"]) == ("DELEGATION_FAILED", 2.0, "booking")
    assert "agent" not in delegation_failed(FAULT, None, "book").fault.details
    assert interrupted_attempt("a", 1.0, 2.0).fault.executed is Executed.NO
    assert (workers_lost(4).recovery, workers_lost(4).details) == (Recovery.TERMINAL, {"workersLost": 4})
