"""The typed error of a failed A2A call: a failed task, a protocol error, a failed or an invalid response."""

from __future__ import annotations

from collections.abc import Iterable

import httpx
from a2a.client.errors import A2AClientError, A2AClientTimeoutError
from a2a.types.a2a_pb2 import Part, StreamResponse, Task, TaskState, TaskStatus
from a2a.utils.errors import A2AError
from msgspec.structs import replace

from amends.bindings.a2a.http_recorder import Recording
from amends.bindings.a2a.traces import with_trace
from amends.carriers import jsonrpc
from amends.carriers.extraction import extract
from amends.carriers.native import read as read_native
from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault, Origin
from amends.core.meanings import BAD_KEY, INVALID, LOST, fault_of
from amends.core.text import strip, truncate
from amends.dialects.adcp import KEY
from amends.dialects.members import integer
from amends.errors.base import FaultError
from amends.foreign import from_exception
from amends.foreign.codes import JSONRPC
from amends.foreign.trust import trusted
from amends.proof import Claim, Proof, rests_on

__all__ = ["FAILED", "PENDING", "Progress", "failure"]

FAILED = frozenset({TaskState.TASK_STATE_FAILED, TaskState.TASK_STATE_REJECTED})
PENDING = frozenset(
    {TaskState.TASK_STATE_UNSPECIFIED, TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING}
)
"""States in which the agent works; every other state ends the agent's turn."""

_STATUS = Origin("a2a", "status_message")
_SILENCE = Origin("a2a", layer="transport")
"""Of a call that got no answer, or one that cannot be read."""
_LONGEST = 1024
_MOST_HELD = 16
"""Events with an error that are held back while the failed state is missing; after more the task counts as failed."""


def failure(exc: Exception, recording: Recording) -> FaultError:
    """Return the typed error of an exception that a call raised."""
    return exc if isinstance(exc, FaultError) else FaultError.from_fault(with_trace(_fault(exc, recording)))


def _fault(exc: Exception, recording: Recording) -> Fault:
    if recording.response is None and isinstance(exc.__cause__, httpx.HTTPStatusError):
        # The recorder is not installed in the HTTP client of a client that the SDK made.
        recording.response = exc.__cause__.response
    fault = recording.fault()
    native = _native(recording)
    if fault is not None:
        # The status decides; google.rpc's details may name a field and a wait.
        return fault if native is None else _with_details(fault, native)
    if isinstance(exc, NotImplementedError):
        # The SDK raises it for what the agent, or its protocol version, does not support.
        return fault_of(INVALID)
    if native is not None:
        return native
    if isinstance(exc, A2AError) and not isinstance(exc, A2AClientError):
        error = {"message": exc.message, "data": exc.data}
        return jsonrpc.read({"jsonrpc": "2.0", "error": error}).fault or from_exception(exc)
    known = httpx.HTTPError | OSError | A2AClientTimeoutError
    if isinstance(exc, known) or isinstance(exc.__cause__, known):
        return replace(from_exception(exc), origin=_SILENCE)
    # Any other exception of the SDK means that the response is invalid.
    return replace(fault_of(LOST), origin=_SILENCE)


def _native(recording: Recording) -> Fault | None:
    """Return the fault of a JSON-RPC error without an AdCP error: its number, and google.rpc's details."""
    error = recording.error()
    found = None if error is None else read_native({"jsonrpc": "2.0", "error": error}, "a2a")
    if error is None or found is None or found.fault is None:
        return None
    fault = found.fault
    described = fault.field or fault.retry_after or "reason" in (fault.details or {})
    # Other numbers are those of a server, and say nothing.
    return fault if described or integer(error.get("code")) in JSONRPC else None


def _with_details(fault: Fault, native: Fault) -> Fault:
    return replace(
        fault,
        field=fault.field or native.field,
        retry_after=fault.retry_after or native.retry_after,
        errors=fault.errors or native.errors,
    )


class Progress:
    """
    The state of one message: its task, and whether the task failed.

    Agents may send an error in two events, first an artifact and then the failed state. So an event with an error is held
    back until the state is known, and so is a task that was read in between.
    """

    def __init__(self, task_id: str = "", *, own: bool = False, call: str | None = None) -> None:
        self.task_id = task_id
        self.own, self.call = own, call
        """Whether the user says that the agent is our own, and the id that was sent with the call."""
        self.content = False
        """Whether the caller got content, which a repeat of the message would contradict."""
        self.failed = False
        """Whether the task has failed; it accepts no further message then."""
        self._ended = False
        self._held: list[StreamResponse] = []
        self._fault: Fault | None = None

    def accept(self, event: StreamResponse) -> bool:
        """
        Process an event; return whether to yield it to the caller. An event that is part of a failure is held back.

        Raises:
            FaultError: the task failed, or waits for a sign-in; its `events` are the events of the failure.

        """
        kind = event.WhichOneof("payload")
        if kind == "task":
            return self._accept_task(event)
        if kind == "status_update":
            self.task_id = event.status_update.task_id or self.task_id
            self._accept_status(event, event.status_update.status)
        elif kind == "artifact_update":
            self.task_id = event.artifact_update.task_id or self.task_id
            if _has_error(event.artifact_update.artifact.parts):
                self._hold(event)
                return False
            self.content = True
        elif kind == "message":
            self._ended = self.content = True
        return True

    def is_ended(self) -> bool:
        """Whether the agent's turn has ended."""
        return self._ended

    def is_failing(self) -> bool:
        """Whether an event with an error is held back, and the failed state has not come yet."""
        return bool(self._held)

    def finish(self) -> None:
        """Process the end of the events: an error without a failed state is a failure too. Raises FaultError."""
        if self._held:
            self._fail(self._fault or _unstructured(TaskStatus()))

    def _accept_task(self, event: StreamResponse) -> bool:
        task: Task = event.task
        self.task_id = task.id or self.task_id
        if self._held:
            # A newer task replaces the one that is held back.
            self._held = [each for each in self._held if not each.HasField("task")]
        self._accept_status(event, task.status)
        content = False
        for artifact in task.artifacts:
            if _has_error(artifact.parts):
                self._hold(event)
                if self._ended:
                    self.finish()
                return False
            content = True
        self.content = self.content or content
        return True

    def _hold(self, event: StreamResponse) -> None:
        self._held.append(event)
        self._fault = extract(event, "a2a", native=False)
        if len(self._held) > _MOST_HELD:
            self.finish()

    def _accept_status(self, event: StreamResponse, status: TaskStatus) -> None:
        state = status.state
        self._ended = state not in PENDING
        if state in FAILED:
            self._held.append(event)
            self._fail(extract(event, "a2a", native=False) or self._fault or _unstructured(status))
        if state == TaskState.TASK_STATE_AUTH_REQUIRED:
            # The task goes on after the sign-in, so it has not failed, and the message is not sent again.
            self.content = True
            self._raise(extract(event, "a2a", native=True) or fault_of(BAD_KEY), (*self._held, event))
        if status.message.parts:
            self.content = True

    def _fail(self, fault: Fault) -> None:
        self.failed = True
        self._raise(fault, tuple(self._held))

    def _raise(self, fault: Fault, events: tuple[StreamResponse, ...]) -> None:
        error = FaultError.from_fault(with_trace(fault))
        error.events = events  # type: ignore[attr-defined]
        raise trusted(error, own=self.own, call=self.call)


def _has_error(parts: Iterable[Part]) -> bool:
    return any(
        part.WhichOneof("content") == "data" and KEY in part.data.struct_value.fields for part in parts
    )


@rests_on(Claim.NOT_HAPPENED, Proof.STATUS)
def _unstructured(status: TaskStatus) -> Fault:
    """Return the fault of a task that failed without an AdCP error. A rejected task was not started."""
    rejected = status.state == TaskState.TASK_STATE_REJECTED
    text = " ".join(part.text for part in status.message.parts if part.text)
    return Fault(
        code="INTERNAL_ERROR",
        message=truncate(strip(text), _LONGEST),
        recovery=Recovery.TERMINAL if rejected else Recovery.UNCERTAIN,
        executed=Executed.NO if rejected else Executed.MAYBE,
        origin=_STATUS,
    )
