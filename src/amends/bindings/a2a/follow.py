"""
Follows a message or a task to its end: by its events, and by GetTask if the events break off or cannot be subscribed.

A failure has two parts, the error in the task and the task's state, and an agent may publish them one after the other. If
only the error is there, the follower continues until the state comes, or until nothing more comes.
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
from amends.bindings.a2a.deadlines import Deadline, EventReader
from amends.bindings.a2a.faults import Progress, failure
from amends.bindings.a2a.http_recorder import Recording
from amends.bindings.a2a.traces import limited
from amends.errors.base import FaultError
from amends.foreign.trust import trusted
from amends.recovery.clock import CLOCK

__all__ = ["Follower"]

_HISTORY = 100
"""Messages of each task in which a lost message is searched."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 5.0
"""Seconds between two GetTask calls while the agent works."""


class Follower:
    """Follows messages and tasks of one agent, for one call of the client."""

    def __init__(self, calls: Calls, context: ClientCallContext | None, deadline: Deadline) -> None:
        self._calls = calls
        self._context = context
        self._deadline = deadline

    async def send(self, sent: SendMessageRequest, progress: Progress) -> AsyncGenerator[StreamResponse]:
        """
        Make one attempt to send a message: yield its events, and those of its task if the stream breaks off.

        Raises:
            FaultError: the task failed, or the message could not be sent, or its response was lost.

        """
        sdk = await self._calls.connection.sdk()
        lost: FaultError | None = None
        context, progress.call = limited(self._context, self._calls.policy.attempts)
        source = sdk.send_message(copy_of(sent), context=context)
        async with EventReader(source, self._deadline, self._calls.timeout) as events:
            while True:
                try:
                    event = await events.next()
                except FaultError as error:
                    lost = trusted(error, own=progress.own, call=progress.call)
                    break
                if event is None:
                    break
                if progress.accept(event):
                    yield event
        if not progress.task_id or (lost is None and (progress.is_ended() or not events.streamed)):
            progress.finish()
            if progress.task_id or progress.is_ended():
                return
            raise lost or failure(EOFError(), Recording())
        # The stream broke off, or ended before the agent's turn did.
        async with aclosing(self.follow(progress, lost, once=lost is None)) as rest:
            async for event in rest:
                yield event

    async def follow(
        self, progress: Progress, lost: FaultError | None = None, *, once: bool = False
    ) -> AsyncGenerator[StreamResponse]:
        """
        Yield the state of a task and its further events, until the agent's turn ends.

        Args:
            progress: has the task's id.
            lost: the error that broke off the task's stream.
            once: yield only the present state. The agent closed the stream itself, and may work for a long time.

        Raises:
            FaultError: the task failed, or cannot be read, or nothing came from it within the time limit.

        """
        sdk = await self._calls.connection.sdk()
        pause, changed = _FIRST_PAUSE, CLOCK.now()
        previous: Task | None = None
        while True:
            # The error was there the last time, and the state has had time to follow.
            waited = previous is not None and progress.is_failing()
            try:
                task = await self._calls.call(
                    "get_task", GetTaskRequest(id=progress.task_id), self._context, READ, self._deadline
                )
            except FaultError as error:
                progress.finish()
                if lost is None:
                    raise
                raise lost from error
            event = StreamResponse(task=task)
            if task != previous and progress.accept(event):
                changed = CLOCK.now()
                yield event
            if progress.is_ended() or waited or (once and not progress.is_failing()):
                progress.finish()
                return
            previous = task
            try:
                source = sdk.subscribe(SubscribeToTaskRequest(id=progress.task_id), context=self._context)
                async with EventReader(source, self._deadline, self._calls.timeout) as events:
                    while (further := await events.next()) is not None:
                        # The first event repeats the present state, which does not count as a change.
                        if further.task != task and progress.accept(further):
                            changed = CLOCK.now()
                            yield further
            except FaultError as error:
                if getattr(error, "events", None) is not None:
                    raise
                # The task cannot be subscribed, or the stream broke off again: continue with GetTask.
                lost = error
            if progress.is_ended():
                progress.finish()
                return
            if CLOCK.now() - changed > self._calls.timeout or self._deadline.is_over():
                progress.finish()
                raise lost or failure(TimeoutError(), Recording())
            await CLOCK.asleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def find_lost(self, sent: SendMessageRequest) -> AsyncGenerator[StreamResponse] | None:
        """
        Search the task of a message whose response was lost; return the task's events, or None if it is not found.

        A message that is not found may still arrive, so None does not prove that it had no effect.
        """
        found: str | None = None
        try:
            for task in await self._candidates(sent):
                if any(message.message_id == sent.message.message_id for message in task.history):
                    found = task.id
        except FaultError:
            return None
        return None if found is None else self.follow(Progress(found))

    async def _candidates(self, sent: SendMessageRequest) -> list[Task]:
        """Return the task that a message names, or the tasks of the context that it names."""
        if sent.message.task_id:
            request = GetTaskRequest(id=sent.message.task_id)
            return [await self._calls.call("get_task", request, self._context, READ, self._deadline)]
        if sent.message.context_id:
            query = ListTasksRequest(context_id=sent.message.context_id, history_length=_HISTORY)
            listed = await self._calls.call("list_tasks", query, self._context, READ, self._deadline)
            return list(listed.tasks)
        return []
