"""What failed in an A2A call: a task that says so, an error of the protocol, or an answer that is none."""

from __future__ import annotations

from typing import Any

import httpx
from a2a.client.errors import A2AClientError, A2AClientTimeoutError
from a2a.types.a2a_pb2 import StreamResponse, Task, TaskState, TaskStatus
from a2a.utils.errors import A2AError

from amends.bindings.a2a.http_recorder import Heard
from amends.carriers.extraction import extract
from amends.carriers.layers import KEY
from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault, Origin
from amends.core.text import strip, truncate
from amends.errors.base import FaultError
from amends.foreign import from_exception
from amends.foreign.codes import JSONRPC
from amends.foreign.outcomes import INVALID, LOST, fault_of

__all__ = ["FAILED", "PENDING", "Progress", "failure"]

FAILED = frozenset({TaskState.TASK_STATE_FAILED, TaskState.TASK_STATE_REJECTED})
PENDING = frozenset(
    {TaskState.TASK_STATE_UNSPECIFIED, TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING}
)
"""The agent is at work; every other state is the end of its turn."""

_STATUS = Origin("a2a", "status_message")
_LONGEST = 1024
_MOST_HELD = 16
"""Events that say an error before its state is said: an agent that has more to say has failed as it is."""


def failure(exc: Exception, heard: Heard) -> FaultError:
    """The typed error of a call that raised."""
    return exc if isinstance(exc, FaultError) else FaultError.from_fault(_fault(exc, heard))


def _fault(exc: Exception, heard: Heard) -> Fault:
    said = heard.fault()
    if said is not None:
        return said
    if isinstance(exc, NotImplementedError):
        # The SDK's word for what this agent, or its protocol version, cannot do.
        return fault_of(INVALID)
    if isinstance(exc, A2AError) and not isinstance(exc, A2AClientError):
        return from_exception(exc)
    number = (heard.error() or {}).get("code")
    if isinstance(number, int) and number in JSONRPC:
        return fault_of(JSONRPC[number], details={"jsonrpc": number})
    known = httpx.HTTPError | OSError | A2AClientTimeoutError
    if isinstance(exc, known) or isinstance(exc.__cause__, known):
        return from_exception(exc)
    # Whatever else the SDK stumbles over is an answer that is none.
    return fault_of(LOST)


class Progress:
    """
    What one message has led to so far: its task, and whether that failed.

    An error may come in two events, first the artifact and then the state, so the artifact is held back; and so is a task that
    was looked at in between.
    """

    def __init__(self, task_id: str = "") -> None:
        self.task_id = task_id
        self.content = False
        """Whether anything was handed on that a repeat would contradict."""
        self.failed = False
        """Whether a task has failed, so that it takes no further message."""
        self._over = False
        self._held: list[StreamResponse] = []
        self._fault: Fault | None = None

    def take(self, event: StreamResponse) -> bool:
        """
        Whether the event is to be handed on; False for one that is part of a failure still to come.

        Raises:
            FaultError: when the task failed, with the events that say so as its `events`.

        """
        kind = event.WhichOneof("payload")
        if kind == "task":
            return self._task(event)
        if kind == "status_update":
            self.task_id = event.status_update.task_id or self.task_id
            self._state(event, event.status_update.status)
        elif kind == "artifact_update":
            self.task_id = event.artifact_update.task_id or self.task_id
            if _says_error(event.artifact_update.artifact.parts):
                self._hold(event)
                return False
            self.content = True
        elif kind == "message":
            self._over = self.content = True
        return True

    def over(self) -> bool:
        """Whether the agent's turn has ended."""
        return self._over

    def failing(self) -> bool:
        """Whether an error was said, and the state that goes with it has still to come."""
        return bool(self._held)

    def ended(self) -> None:
        """There is nothing more to see: an error without a state is an error too."""
        if self._held:
            self._fail(self._fault or _unstructured(TaskStatus()))

    def _task(self, event: StreamResponse) -> bool:
        task: Task = event.task
        self.task_id = task.id or self.task_id
        if self._held:
            # What the task was before is said by what it is now.
            self._held = [each for each in self._held if not each.HasField("task")]
        self._state(event, task.status)
        content = False
        for artifact in task.artifacts:
            if _says_error(artifact.parts):
                self._hold(event)
                if self._over:
                    self.ended()
                return False
            content = True
        self.content = self.content or content
        return True

    def _hold(self, event: StreamResponse) -> None:
        self._held.append(event)
        self._fault = extract(event, "a2a")
        if len(self._held) > _MOST_HELD:
            self.ended()

    def _state(self, event: StreamResponse, status: TaskStatus) -> None:
        state = status.state
        self._over = state not in PENDING
        if state in FAILED:
            self._held.append(event)
            self._fail(extract(event, "a2a") or self._fault or _unstructured(status))
        if status.message.parts:
            self.content = True

    def _fail(self, fault: Fault) -> None:
        self.failed = True
        error = FaultError.from_fault(fault)
        error.events = tuple(self._held)  # type: ignore[attr-defined]
        raise error


def _says_error(parts: Any) -> bool:
    return any(
        part.WhichOneof("content") == "data" and KEY in part.data.struct_value.fields for part in parts
    )


def _unstructured(status: TaskStatus) -> Fault:
    """A task that failed and says at most why in prose. One that was rejected was not begun."""
    rejected = status.state == TaskState.TASK_STATE_REJECTED
    said = " ".join(part.text for part in status.message.parts if part.text)
    return Fault(
        code="INTERNAL_ERROR",
        message=truncate(strip(said), _LONGEST),
        recovery=Recovery.TERMINAL if rejected else Recovery.UNCERTAIN,
        executed=Executed.NO if rejected else Executed.MAYBE,
        origin=_STATUS,
    )
