"""
Call the functions of agents: with as many arguments as they take, async or in a thread; hooks with a time limit.

A thread cannot be stopped. A caller that no longer waits for one leaves it running, and a later call with the same key waits for
that thread instead of starting another. The threads are daemons, so the end of the process does not wait for them.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future

from amends.core.enums import Recovery
from amends.errors.task import InternalError
from amends.tasks.capability import HOOK_SECONDS, Capability, Hook
from amends.tasks.context import Interruption
from amends.tasks.journal import Fenced, LeaseGuard

__all__ = ["FunctionExitedError", "HookCalls", "NoThreadError", "Threads", "invoke", "thread_key"]

THREADS = 32
"""Threads of one agent, if it does not choose."""

_ANY_NUMBER = 1 << 30
_PASSED_ON = (Exception, asyncio.CancelledError, KeyboardInterrupt, GeneratorExit, Interruption, Fenced)


class NoThreadError(Exception):
    """All threads of the agent are in use."""


class Threads:
    """The threads of one agent. Not more than a number of them run at once."""

    def __init__(self, limit: int = THREADS, name: str = "agent") -> None:
        if limit < 1:
            raise ValueError("an agent needs at least one thread")
        self._limit, self._name = limit, name
        self._running: dict[Hashable, Future[object]] = {}

    def running(self, key: Hashable) -> Future[object] | None:
        """The future of the thread that was started with this key, if it has not ended."""
        return self._running.get(key)

    async def run(self, key: Hashable, function: Hook, *arguments: object, wait: bool = False) -> object:
        """
        Run a function in a thread and return its result; if a thread with this key is running, wait for that one.

        Args:
            key: identifies the call: the same for every attempt of it.
            function: the function.
            arguments: its arguments.
            wait: whether to wait for a thread if all are in use.

        Raises:
            NoThreadError: all threads are in use, and `wait` is false.
        """
        while True:
            found = self._running.get(key)
            if found is not None:
                return await asyncio.wrap_future(found)
            if len(self._running) < self._limit:
                return await asyncio.wrap_future(self._start(key, function, arguments))
            if not wait:
                raise NoThreadError
            waiting = [asyncio.wrap_future(each) for each in list(self._running.values())]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)

    def _start(self, key: Hashable, function: Hook, arguments: tuple[object, ...]) -> Future[object]:
        future: Future[object] = Future()
        future.set_running_or_notify_cancel()  # from here on it cannot be cancelled
        self._running[key] = future
        context = contextvars.copy_context()

        def work() -> None:
            try:
                result = context.run(function, *arguments)
            except BaseException as error:  # noqa: BLE001 - the caller gets it
                self._running.pop(key, None)
                future.set_exception(error)
            else:
                self._running.pop(key, None)
                future.set_result(result)

        thread = threading.Thread(target=work, name=f"amends-{self._name}", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            del self._running[key]
            raise
        return future


class FunctionExitedError(RuntimeError):
    """A function of an agent raised SystemExit, or another exception that would have ended the worker."""


async def invoke(function: Hook, *available: object, threads: Threads, key: str, wait: bool = True) -> object:
    """
    Call `function` with as many of the arguments as it takes. A function that is not async runs in a thread.

    Args:
        function: the function.
        available: the arguments.
        threads: the agent's threads.
        key: the same for every attempt of the call. While a thread of an earlier attempt runs, it is waited for instead.
        wait: whether to wait for a thread if all are in use.

    Raises:
        NoThreadError: all threads are in use, and `wait` is false.
        FunctionExitedError: the function raised SystemExit.
    """
    arity, is_async = _signature_of(function)
    arguments = available if arity >= len(available) else available[:arity]
    try:
        result = (
            function(*arguments)
            if is_async
            else await threads.run(thread_key(function, key), function, *arguments, wait=wait)
        )
        return await result if inspect.isawaitable(result) else result
    except _PASSED_ON:
        raise
    except BaseException as exit:
        # After SystemExit, asyncio would end the event loop, and with it all other tasks of this worker.
        raise FunctionExitedError(f"raised {type(exit).__name__}") from exit


def thread_key(function: Hook, key: str) -> tuple[int, str]:
    """The key of the thread in which a function runs."""
    return id(function), key


def _signature_of(function: Hook) -> tuple[int, bool]:
    """The number of positional arguments that a function takes, and whether it is async."""
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__
    )
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return _ANY_NUMBER, is_async
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return _ANY_NUMBER, is_async
    return sum(
        each.kind in {each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD} for each in parameters
    ), is_async


class HookCalls:
    """The calls of one capability's hooks for one task."""

    def __init__(
        self,
        guard: LeaseGuard | None,
        threads: Threads | None,
        capability: Capability | None,
        key: str,
        *,
        clock: Callable[[], float],
        until: float | None,
    ) -> None:
        """
        Args:
            guard: the worker's hold on the task, which is checked before each call.
            threads: the agent's threads.
            capability: has the time limit; without one, or without a time limit of its own, it is 300 s.
            key: identifies the step among all steps of all tasks.
            clock: wall-clock seconds.
            until: the task's deadline.
        """
        self._guard, self._threads, self._key = guard, threads or Threads(), key
        self._seconds = HOOK_SECONDS
        if capability is not None and capability.timeout is not None:
            self._seconds = capability.timeout
        self._clock, self._until = clock, until

    async def call(
        self, hook: Hook, *arguments: object, most: float | None = None, may_ask: bool = False
    ) -> object:
        """
        Call a hook and return what it returns.

        Args:
            hook: the function.
            arguments: its arguments, as many as it takes.
            most: seconds for this call, if less than usual.
            may_ask: whether the hook may ask a question, as a fallback may.

        Raises:
            TimeoutError: the call took too long, or the deadline is over.
            FaultError: the hook asked a question that it may not ask, or waits for another one.
            Fenced: this worker has lost the task; nothing was called.
        """
        seconds = self._seconds if most is None else min(most, self._seconds)
        if self._until is not None:
            seconds = min(seconds, self._until - self._clock())
        if seconds <= 0:
            raise TimeoutError
        if self._guard is not None:
            await self._guard.ensure()
        try:
            async with asyncio.timeout(seconds):
                return await invoke(hook, *arguments, threads=self._threads, key=self._key)
        except Interruption as interruption:
            if may_ask:
                raise
            raise InternalError(
                "Only a capability and its fallbacks can wait for an answer or a verification; a hook cannot",
                recovery=Recovery.TERMINAL,
            ) from interruption
