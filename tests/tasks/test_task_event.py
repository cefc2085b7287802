"""What hooks get about a task."""

import msgspec
import pytest

from amends.core.enums import Recovery
from amends.tasks.events import TaskEvent


@pytest.mark.parametrize(
    ("recovery", "recoverable"),
    [(Recovery.TERMINAL, False), (Recovery.UNCERTAIN, True), (Recovery.TRANSIENT, True), (None, True)],
)
def test_recoverable(recovery, recoverable):
    """As in the agent error contract: only a terminal failure is not."""
    event = TaskEvent(kind="failed", at=1.0, task="t", code="TIMEOUT", recovery=recovery)
    assert event.recoverable is recoverable


def test_the_message_is_the_standard_one():
    assert (
        TaskEvent(kind="failed", at=1.0, task="t", code="AGENT_BUSY").message
        == "Agent is processing another request"
    )
    assert TaskEvent(kind="failed", at=1.0, task="t", code="NO_SUCH_CODE").message
    assert TaskEvent(kind="finished", at=1.0, task="t").message == ""


def test_there_is_no_place_for_texts_or_values():
    """Neither payloads nor results nor the text of a failure can be in an event."""
    names = {field.name for field in msgspec.structs.fields(TaskEvent)}
    assert names.isdisjoint({"payload", "result", "text", "message", "details", "fault"})
