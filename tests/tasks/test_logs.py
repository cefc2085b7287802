"""Log records of events (T11)."""

import logging

import pytest

from amends.tasks.events import TaskEvent, log_event, record_of


def event(kind, **more):
    return TaskEvent(kind=kind, at=0.0, task="t", agent="worker", **more)


@pytest.mark.parametrize(
    ("kind", "level"),
    [
        ("retry", "info"),
        ("fallback", "warning"),
        ("failed", "error"),
        ("undo-failed", "error"),
        ("doubt", "warning"),
        ("taken-over", "warning"),
    ],
)
def test_the_record_of_a_failure(kind, level):
    """The members of the agent error contract, and those members of the event that have a value."""
    record = record_of(event(kind, code="AGENT_BUSY", attempt=2, delay=1.5))
    assert record == {
        "level": level,
        "timestamp": "1970-01-01T00:00:00Z",
        "agent": "worker",
        "taskId": "t",
        "event": kind,
        "error": {"code": "AGENT_BUSY", "message": "Agent is processing another request"},
        "attempt": 2,
        "delay": 1.5,
    }


@pytest.mark.parametrize("kind", ["submitted", "attempt", "finished", "asked", "undone", "ended"])
def test_other_events_are_not_logged(kind, caplog):
    caplog.set_level(logging.DEBUG)
    log_event(event(kind))
    assert record_of(event(kind)) is None
    assert caplog.records == []


def test_a_level_that_is_off(caplog):
    caplog.set_level(logging.ERROR, "amends.tasks")
    log_event(event("retry", code="TIMEOUT"))
    log_event(event("failed", code="TIMEOUT"))
    assert [record.getMessage() for record in caplog.records] == ["task t: failed TIMEOUT at worker"]
    assert caplog.records[0].amends["error"]["code"] == "TIMEOUT"
