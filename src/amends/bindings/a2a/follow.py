"""
What becomes of a message or a task: its events, and where they break off or cannot be had, what the task says when asked.

An error is told by what the task says and by its state, and those come one after the other. Whoever looks in between sees
half of it, and so looks on: to the state, or to where there is nothing more to see.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from a2a.client.client import ClientCallContext
from a2a.types.a2a_pb2 import (
    GetTaskRequest,
    ListTasksRequest,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
)

from amends.bindings.a2a.calls import READ, Calls, copy_of
from amends.bindings.a2a.deadlines import Clock, Events
from amends.bindings.a2a.faults import Progress, failure
from amends.bindings.a2a.http_recorder import Heard
from amends.errors.base import FaultError
from amends.recovery.clock import CLOCK

__all__ = ["Follower"]

_HISTORY = 100
"""Messages of each task among which a lost one is looked for."""
_FIRST_LOOK, _LAST_LOOK = 0.5, 5.0
"""Seconds between two looks at a task that is still at work."""


class Follower:
    """Follows messages and tasks of one agent, for one caller."""

    def __init__(self, calls: Calls, context: ClientCallContext | None, clock: Clock) -> None:
        self._calls = calls
        self._connection = calls.connection
        self._context = context
        self._clock = clock

    async def answer(self, sent: SendMessageRequest, progress: Progress) -> AsyncGenerator[StreamResponse]:
        """One attempt: the events of the message, and if they break off, those of its task."""
        sdk = self._connection.made or await self._connection.sdk()
        lost: FaultError | None = None
        source = sdk.send_message(copy_of(sent), context=self._context)
        async with Events(source, self._clock, self._calls.timeout) as events:
            while True:
                try:
                    event = await events.next()
                except FaultError as error:
                    lost = error
                    break
                if event is None:
                    break
                if progress.take(event):
                    yield event
        if not progress.task_id or (lost is None and (progress.over() or not self._connection.streams())):
            progress.ended()
            if progress.task_id or progress.over():
                return
            raise lost or failure(EOFError(), Heard())
        # Broken off, or ended before the agent's turn did: the task knows how it goes on.
        async with aclosing(self.task(progress, lost, once=lost is None)) as rest:
            async for event in rest:
                yield event

    async def task(
        self, progress: Progress, lost: FaultError | None = None, *, once: bool = False
    ) -> AsyncGenerator[StreamResponse]:
        """
        What becomes of a task whose id is known: its state, then its further events, or looks from time to time.

        `once`: only its state. Its agent has said goodbye, and may be at work for long.
        """
        sdk = self._connection.made or await self._connection.sdk()
        pause, seen = _FIRST_LOOK, CLOCK.now()
        before: Task | None = None
        while True:
            # An error was said, and its state had time to follow.
            waited = before is not None and progress.failing()
            try:
                task = await self._calls.call(
                    "get_task", GetTaskRequest(id=progress.task_id), self._context, READ, self._clock
                )
            except FaultError as error:
                progress.ended()
                raise lost or error from error
            event = StreamResponse(task=task)
            if task != before and progress.take(event):
                seen = CLOCK.now()
                yield event
            if progress.over() or waited or (once and not progress.failing()):
                progress.ended()
                return
            before = task
            try:
                source = sdk.subscribe(SubscribeToTaskRequest(id=progress.task_id), context=self._context)
                async with Events(source, self._clock, self._calls.timeout) as events:
                    while (further := await events.next()) is not None:
                        # The first is the state that is known already, which is no sign of life.
                        if further.task != task and progress.take(further):
                            seen = CLOCK.now()
                            yield further
            except FaultError as error:
                if getattr(error, "events", None) is not None:
                    raise
                # Nothing to subscribe to, or broken off again: look instead.
                lost = error
            if progress.over():
                progress.ended()
                return
            if CLOCK.now() - seen > self._calls.timeout or self._clock.over():
                progress.ended()
                raise lost or failure(TimeoutError(), Heard())
            await CLOCK.asleep(pause)
            pause = min(pause * 2, _LAST_LOOK)

    async def lost(self, sent: SendMessageRequest) -> AsyncGenerator[StreamResponse] | None:
        """
        The rest of a message's story, where its task can be found; None where nobody can tell.

        That the message is not there proves nothing: it may still be on its way.
        """
        found: str | None = None
        try:
            for task in await self._candidates(sent):
                if any(message.message_id == sent.message.message_id for message in task.history):
                    found = task.id
        except FaultError:
            return None
        return None if found is None else self.task(Progress(found))

    async def _candidates(self, sent: SendMessageRequest) -> list[Task]:
        """The tasks a message may have led to, by what it names."""
        if sent.message.task_id:
            looked = GetTaskRequest(id=sent.message.task_id)
            return [await self._calls.call("get_task", looked, self._context, READ, self._clock)]
        if sent.message.context_id:
            query = ListTasksRequest(context_id=sent.message.context_id, history_length=_HISTORY)
            listed = await self._calls.call("list_tasks", query, self._context, READ, self._clock)
            return list(listed.tasks)
        return []
