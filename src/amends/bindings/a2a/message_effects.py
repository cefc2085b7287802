"""
The ledger of effects around an A2A agent: a message that carries a key is executed once.

The key is `metadata["amends/key"]` of the message (M8). A message without one is executed as it always was: in a conversation,
the same text twice is usually meant twice. The events that the agent published are the outcome; a repeated message gets them
again, under the ids of its own task.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from a2a.server.agent_execution import RequestContext
from a2a.server.events import Event, EventQueue
from a2a.types.a2a_pb2 import Message, Task, TaskArtifactUpdateEvent, TaskState, TaskStatusUpdateEvent
from google.protobuf.json_format import (  # type: ignore[import-untyped,unused-ignore]
    MessageToDict,
    ParseDict,
)

from amends.carriers.extraction import extract
from amends.core.fault import Fault
from amends.effects import Effects
from amends.effects.arguments import owned_key
from amends.errors.base import FaultError

__all__ = ["META_KEY", "MessageEffects", "key_of"]

META_KEY = "amends/key"
_KINDS: dict[str, type[Event]] = {
    kind.__name__: kind for kind in (Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent)
}
_FAILED = frozenset(
    {TaskState.TASK_STATE_FAILED, TaskState.TASK_STATE_REJECTED, TaskState.TASK_STATE_CANCELED}
)


def key_of(context: RequestContext) -> str | None:
    """Return the key of a message, or None."""
    message = context.message
    if message is None or META_KEY not in message.metadata:
        return None
    key: object = message.metadata[META_KEY]
    return owned_key(_owner(context), key) if isinstance(key, str) and key else None


def _owner(context: RequestContext) -> str:
    """Return who sent the message, as far as that is known for certain."""
    user = context.call_context.user
    return user.user_name if user.is_authenticated else ""


class MessageEffects:
    """The ledger of one agent."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects

    async def execute(
        self,
        context: RequestContext,
        queue: EventQueue,
        key: str,
        execute: Callable[[EventQueue], Awaitable[None]],
    ) -> None:
        """Execute a message once, or publish the events of the first execution."""
        recording = RecordingQueue(queue)

        async def call() -> list[tuple[str, dict[str, object]]]:
            await execute(recording)
            if recording.failure is not None:
                raise FaultError.from_fault(recording.failure)
            return [(type(event).__name__, MessageToDict(event)) for event in recording.events]

        parts = [MessageToDict(part) for part in context.message.parts] if context.message is not None else []
        try:
            events = await self._effects.acall("message", call, {"parts": parts}, key=key)
        except FaultError:
            if recording.failure is not None:
                return  # the agent published its own failure
            raise
        if not recording.events:
            for name, event in events or ():
                await queue.enqueue_event(_event(name, event, context))


def _event(name: str, data: dict[str, object], context: RequestContext) -> Event:
    """Return a recorded event under the ids of another task."""
    event = _KINDS[name]()
    ParseDict(data, event)
    task_id, context_id = context.task_id or "", context.context_id or ""
    if isinstance(event, Task):
        event.id = task_id
    else:
        event.task_id = task_id
    event.context_id = context_id
    return event


class RecordingQueue(EventQueue):
    """The queue that an agent publishes to; it keeps the events."""

    def __init__(self, queue: EventQueue) -> None:
        self._queue = queue
        self.events: list[Event] = []
        self.failure: Fault | None = None
        """The fault of a task that the agent itself ended as failed."""

    def __getattr__(self, name: str) -> object:
        return getattr(self._queue, name)

    async def enqueue_event(self, event: Event) -> None:
        """Publish an event."""
        await self._queue.enqueue_event(event)
        self.events.append(event)
        if isinstance(event, Task | TaskStatusUpdateEvent) and event.status.state in _FAILED:
            found = extract(MessageToDict(event), via="a2a", native=True)
            self.failure = found or Fault(code="SERVICE_UNAVAILABLE", vocabulary="adcp")
