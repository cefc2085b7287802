"""
Guards an executor: an exception ends its task as failed, with an AdCP error.

Events that the executor publishes are not changed, input-required and auth-required included. A cancellation is not a
failure: it passes, and a task whose executor does not publish the state is set to canceled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import Event, EventQueue
from a2a.server.events.event_queue import QueueShutDown  # type: ignore[attr-defined,unused-ignore]
from a2a.types.a2a_pb2 import Message, Task, TaskState, TaskStatus, TaskStatusUpdateEvent
from a2a.utils.errors import TaskNotCancelableError

from amends.bindings.a2a.message_effects import MessageEffects, key_of
from amends.bindings.a2a.responses import (
    LOG,
    Sent,
    error_for,
    failed_events,
    internal_error,
    left_of,
    protocol_error,
    traceparent_of,
)
from amends.recovery.scope import tool_call
from amends.serving.server_errors import PLAIN, OwnErrors
from amends.serving.tracing import handling

__all__ = ["GuardedExecutor"]

_TERMINAL = frozenset(
    {
        TaskState.TASK_STATE_COMPLETED,
        TaskState.TASK_STATE_CANCELED,
        TaskState.TASK_STATE_FAILED,
        TaskState.TASK_STATE_REJECTED,
    }
)


class GuardedExecutor(AgentExecutor):
    """An executor that ends the task as failed if the wrapped executor raises."""

    def __init__(
        self,
        executor: AgentExecutor,
        *,
        mime_type: bool = False,
        own_errors: OwnErrors = PLAIN,
        ledger: MessageEffects | None = None,
    ) -> None:
        self._executor = executor
        self._ledger = ledger
        self._own_errors = own_errors
        self._mime_type = mime_type

    def __getattr__(self, name: str) -> object:
        # Applications may use further attributes of their executor.
        return getattr(self._executor, name)

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Run the agent."""
        queue = TrackedQueue(event_queue)
        try:
            # The agent's own calls continue the trace of the request.
            with (
                handling(traceparent_of(context.call_context), left_of(context.call_context)),
                tool_call(long=True),
            ):
                key = None if self._ledger is None else key_of(context)
                if self._ledger is None or key is None:
                    await self._executor.execute(context, queue)
                else:
                    await self._ledger.execute(
                        context, queue, key, lambda recording: self._executor.execute(context, recording)
                    )
        except QueueShutDown:
            # The SDK raises it if no client is connected any more.
            raise
        except asyncio.CancelledError as exc:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # This task was not cancelled, but something that the agent awaited; the caller still waits.
            await self._fail(context, queue, exc)
        except Exception as exc:  # noqa: BLE001 - the guard answers failures of any kind
            error = protocol_error(exc)
            if error is not None:
                LOG.info("task %s: refused with %s", context.task_id, type(error).__name__)
                raise error from None
            await self._fail(context, queue, exc)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Cancel the agent."""
        queue = TrackedQueue(event_queue)
        try:
            with handling(traceparent_of(context.call_context), left_of(context.call_context)):
                await self._executor.cancel(context, queue)
            if not queue.ended and context.task_id:
                await queue.enqueue_event(_canceled(context))
        except QueueShutDown:
            raise
        except NotImplementedError:
            raise TaskNotCancelableError from None
        except Exception as exc:  # noqa: BLE001
            error = protocol_error(exc)
            if error is not None:
                raise error from None
            what = f"cancelling task {context.task_id}"
            raise internal_error(self._error(exc, what, context)) from None

    async def _fail(self, context: RequestContext, queue: TrackedQueue, exc: BaseException) -> None:
        error = self._error(exc, f"task {context.task_id}", context)
        if queue.ended:
            # The caller has a final event already, so the failure is only logged.
            return
        try:
            for event in self._events(context, queue, error):
                await queue.enqueue_event(event)
        except QueueShutDown:
            raise
        except Exception:  # noqa: BLE001
            LOG.exception("the failure of task %s could not be published", context.task_id)
            raise internal_error(error) from None

    def _error(self, exc: BaseException, what: str, context: RequestContext) -> Sent:
        with handling(None, left_of(context.call_context)):
            traceparent = traceparent_of(context.call_context)
            return error_for(exc, what, traceparent, self._own_errors, of_agent=True)

    def _events(self, context: RequestContext, queue: TrackedQueue, error: Sent) -> Iterator[Event]:
        task_id, context_id = context.task_id or "", context.context_id or ""
        if context.current_task is None and not queue.started:
            # The task has to be published before events of the task.
            task = Task(id=task_id, context_id=context_id, status=_status(TaskState.TASK_STATE_SUBMITTED))
            if context.message is not None:
                task.history.append(context.message)
            yield task
        yield from failed_events(error, task_id=task_id, context_id=context_id, mime_type=self._mime_type)


class TrackedQueue(EventQueue):
    """The queue that an agent publishes to; it tracks whether the task has started and ended."""

    def __init__(self, queue: EventQueue) -> None:
        self._queue = queue
        self.started = False
        """Whether an event of the task was published."""
        self.ended = False
        """Whether a final event was published: a terminal state, or a message instead of a task."""

    def __getattr__(self, name: str) -> object:
        return getattr(self._queue, name)

    async def enqueue_event(self, event: Event) -> None:
        """Publish an event."""
        await self._queue.enqueue_event(event)
        if isinstance(event, Message):
            self.ended = True
        elif isinstance(event, Task | TaskStatusUpdateEvent):
            self.started = True
            self.ended = event.status.state in _TERMINAL
        else:
            self.started = True


def _canceled(context: RequestContext) -> TaskStatusUpdateEvent:
    return TaskStatusUpdateEvent(
        task_id=context.task_id or "",
        context_id=context.context_id or "",
        status=_status(TaskState.TASK_STATE_CANCELED),
    )


def _status(state: TaskState) -> TaskStatus:
    status = TaskStatus(state=state)
    status.timestamp.GetCurrentTime()
    return status
