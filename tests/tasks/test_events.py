"""The events of a task's records."""

import pytest

from amends.core.decision import Decision
from amends.core.enums import Action
from amends.core.fault import Fault
from amends.tasks import entries
from amends.tasks.events import publish, publish_record
from amends.tasks.fold import fold
from amends.tasks.plan import Step
from amends.tasks.state import TaskState

FAULT = Fault(code="TIMEOUT", vocabulary="task", message="with a secret")


def decided(action, **more):
    decision = Decision(action=action, delay=2.0 if action is Action.RETRY else None, reason="transient")
    return entries.Failed(at=3.0, step="s", began=2.0, fault=FAULT, decision=decision, **more)


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        (entries.Finished(at=3.0, step="s", began=2.0), "finished"),
        (entries.Finished(at=3.0, step="s", began=2.0, undo=True), "undone"),
        (decided(Action.RETRY), "retry"),
        (decided(Action.ESCALATE), "failed"),
        (decided(Action.ESCALATE, undo=True), "undo-failed"),
        (entries.Asked(at=3.0, step="s", question="?"), "asked"),
        (entries.Ended(at=3.0, status="failed", fault=FAULT), "ended"),
        (entries.Cancelled(at=3.0), None),
    ],
)
def test_the_event_of_a_record(events, record, kind):
    """With the step's capability and agent, and without the text of the failure."""
    state = fold(submitted(), [record])
    publish_record(state, record)
    assert [event.kind for event in events] == ([] if kind is None else [kind])
    for event in events:
        assert (event.task, event.agent, event.trace) == ("t", "worker", "00-1")
        assert "secret" not in repr(event)
        if event.step is not None:
            assert event.capability == "pay"


def test_a_fallback_is_not_a_failure(events):
    """If the fallback failed as well, it is one."""
    failed = decided(Action.FALLBACK)
    done = fold(submitted(), [failed, entries.Finished(at=3.0, step="s", began=2.0, degraded="TIMEOUT")])
    publish_record(done, failed)
    publish_record(fold(submitted(), [failed]), failed)
    assert [event.kind for event in events] == ["fallback", "failed"]


def test_an_event_without_a_step(events):
    publish(submitted(), "taken-over", at=5.0)
    assert (events[0].step, events[0].capability, events[0].at) == (None, None, 5.0)


def submitted():
    step = Step(name="s", type="pay", agent="worker")
    return fold(TaskState(), [entries.Submitted(at=1.0, id="t", type="pay", steps=(step,), trace="00-1")])
