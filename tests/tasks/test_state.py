"""What is derived from a task's state: its response, and what it waits for."""

from amends.core.fault import Fault
from amends.tasks import entries
from amends.tasks.faults import STOPPED
from amends.tasks.fold import fold
from amends.tasks.plan import Step
from amends.tasks.state import TaskState

FAULT = Fault(code="TIMEOUT", vocabulary="task")


def state(*records, single=False):
    names = ("a",) if single else ("a", "b")
    steps = tuple(Step(name=name, type="pay", optional=name == "b") for name in names)
    return fold(
        TaskState(), [entries.Submitted(at=1.0, id="t", type="x", steps=steps, single=single), *records]
    )


def finished(step, result, **more):
    return entries.Finished(at=3.0, step=step, began=2.0, result=result, **more)


def test_results():
    """A single step's result is the task's; a plan's results have the steps' names; failures of optional steps are listed."""
    done = entries.Ended(at=4.0, status="completed")
    assert state(finished("a", 7), done, single=True).response().result == 7
    failed = entries.Failed(at=3.0, step="b", began=2.0, fault=FAULT, decision=STOPPED)
    response = state(finished("a", 7, degraded="TIMEOUT"), failed, done).response()
    assert (response.result, response.failures, response.error) == ({"a": 7}, {"b": FAULT}, None)
    assert response.metadata.degraded


def test_a_task_that_is_not_over_has_neither_result_nor_error():
    undoing = state(finished("a", 7), entries.Undoing(at=4.0, fault=FAULT))
    assert (undoing.response().result, undoing.response().error, undoing.over) == (None, None, False)
    ended = fold(undoing, [entries.Ended(at=5.0, status="failed", fault=FAULT)])
    assert (ended.response().error, ended.over) == (FAULT, True)


def test_what_it_waits_for():
    """The question with its schema, or the step to verify; only while it waits for nothing else."""
    asked = state(entries.Asked(at=2.0, step="a", question="How many?", schema={"type": "integer"}))
    assert asked.waits
    assert asked.pending_input() == {
        "step": "a",
        "kind": "answer",
        "question": "How many?",
        "schema": {"type": "integer"},
    }
    assert asked.response().input is None
    assert fold(asked, [entries.Released(at=3.0)]).response().status == "input_required"
    doubted = state(entries.Doubted(at=2.0, step="b"))
    assert (doubted.pending_input()["kind"], doubted.in_doubt) == ("verify", ["b"])
    assert state().pending_input() is None
