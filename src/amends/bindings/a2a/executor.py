"""
An executor whose failures end its task the way S4 says.

What it publishes itself passes untouched, input-required and auth-required included. Cancellation is no failure: it goes
through, and a task whose executor did not say so is marked as canceled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.events.event_queue import QueueShutDown  # type: ignore[attr-defined,unused-ignore]
from a2a.types.a2a_pb2 import Message, Task, TaskState, TaskStatus, TaskStatusUpdateEvent
from a2a.utils.errors import TaskNotCancelableError

from amends.bindings.a2a.responses import LOG, failed_events, protocol_error, refusal, said, trace_of

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
    """The same executor; what it raises ends the task."""

    def __init__(self, executor: AgentExecutor, *, mime_type: bool = False) -> None:
        self._executor = executor
        self._mime_type = mime_type

    def __getattr__(self, name: str) -> Any:
        # For whoever holds the executor to ask it for more than the SDK does.
        return getattr(self._executor, name)

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Run the agent."""
        told = Told(event_queue)
        try:
            await self._executor.execute(context, told)
        except QueueShutDown:
            # The SDK's way to say that nobody listens any more.
            raise
        except asyncio.CancelledError as exc:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Nobody cancelled this: something the agent waited for was, and the caller still waits.
            await self._failed(context, told, exc)
        except Exception as exc:  # noqa: BLE001 - failures of any kind are what this is for
            error = protocol_error(exc)
            if error is not None:
                LOG.info("task %s refused with %s", context.task_id, type(error).__name__)
                raise error from None
            await self._failed(context, told, exc)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Stop the agent."""
        told = Told(event_queue)
        try:
            await self._executor.cancel(context, told)
            if not told.over and context.task_id:
                await told.enqueue_event(_canceled(context))
        except QueueShutDown:
            raise
        except NotImplementedError:
            raise TaskNotCancelableError from None
        except Exception as exc:  # noqa: BLE001
            error = protocol_error(exc)
            if error is not None:
                raise error from None
            trace = trace_of(context.call_context)
            raise refusal(said(exc, trace, f"cancelling task {context.task_id}")) from None

    async def _failed(self, context: RequestContext, told: Told, exc: BaseException) -> None:
        trace = trace_of(context.call_context)
        error = said(exc, trace, f"task {context.task_id}")
        if told.over:
            # The caller has its answer already; only the log can still be told.
            return
        try:
            for event in self._events(context, told, error):
                await told.enqueue_event(event)
        except QueueShutDown:
            raise
        except Exception:  # noqa: BLE001
            LOG.exception("the failure of task %s could not be published trace_id=%s", context.task_id, trace)
            raise refusal(error) from None

    def _events(self, context: RequestContext, told: Told, error: dict[str, Any]) -> Iterator[Any]:
        task_id, context_id = context.task_id or "", context.context_id or ""
        if context.current_task is None and not told.begun:
            # A task's events may only come after the task.
            task = Task(id=task_id, context_id=context_id, status=_now(TaskState.TASK_STATE_SUBMITTED))
            if context.message is not None:
                task.history.append(context.message)
            yield task
        yield from failed_events(error, task_id=task_id, context_id=context_id, mime_type=self._mime_type)


class Told(EventQueue):
    """The queue an agent publishes to, and what was said through it."""

    def __init__(self, queue: EventQueue) -> None:
        self._queue = queue
        self.begun = False
        """Whether there is a task."""
        self.over = False
        """Whether the last word has been said: a final state, or a message instead of a task."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    async def enqueue_event(self, event: Any) -> None:
        """Pass an event on."""
        await self._queue.enqueue_event(event)
        if isinstance(event, Message):
            self.over = True
        elif isinstance(event, Task | TaskStatusUpdateEvent):
            self.begun = True
            self.over = event.status.state in _TERMINAL
        else:
            self.begun = True


def _canceled(context: RequestContext) -> TaskStatusUpdateEvent:
    return TaskStatusUpdateEvent(
        task_id=context.task_id or "",
        context_id=context.context_id or "",
        status=_now(TaskState.TASK_STATE_CANCELED),
    )


def _now(state: Any) -> TaskStatus:
    status = TaskStatus(state=state)
    status.timestamp.GetCurrentTime()
    return status
