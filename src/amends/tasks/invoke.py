"""Call the functions of agents: with as many arguments as they take, async or in a thread; hooks with a time limit."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from amends.durable.journal import Fenced
from amends.tasks.capability import HOOK_SECONDS, Capability, Hook
from amends.tasks.context import Interruption
from amends.tasks.lease_guard import LeaseGuard
from amends.tasks.threads import Threads

__all__ = ["FunctionExitedError", "HookCalls", "invoke", "thread_key"]

_ANY_NUMBER = 1 << 30
_PASSED_ON = (Exception, asyncio.CancelledError, KeyboardInterrupt, GeneratorExit, Interruption, Fenced)


class FunctionExitedError(RuntimeError):
    """A function of an agent raised SystemExit, or another exception that would have ended the worker."""


async def invoke(
    function: Callable[..., Any], *available: Any, threads: Threads, key: str, wait: bool = True
) -> Any:
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
        if is_async:
            return await function(*arguments)
        result = await threads.run(thread_key(function, key), function, *arguments, wait=wait)
        return await result if inspect.isawaitable(result) else result
    except _PASSED_ON:
        raise
    except BaseException as exit:
        # After SystemExit, asyncio would end the event loop, and with it all other tasks of this worker.
        raise FunctionExitedError(f"raised {type(exit).__name__}") from exit


def thread_key(function: Callable[..., Any], key: str) -> tuple[int, str]:
    """The key of the thread in which a function runs."""
    return id(function), key


def _signature_of(function: Callable[..., Any]) -> tuple[int, bool]:
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

    async def call(self, hook: Hook, *arguments: Any, most: float | None = None) -> Any:
        """
        Call a hook and return what it returns.

        Args:
            hook: the function.
            arguments: its arguments, as many as it takes.
            most: seconds for this call, if less than usual.

        Raises:
            TimeoutError: the call took too long, or the deadline is over.
            Fenced: this worker has lost the task; nothing was called.
        """
        seconds = self._seconds if most is None else min(most, self._seconds)
        if self._until is not None:
            seconds = min(seconds, self._until - self._clock())
        if seconds <= 0:
            raise TimeoutError
        if self._guard is not None:
            await self._guard.ensure()
        async with asyncio.timeout(seconds):
            return await invoke(hook, *arguments, threads=self._threads, key=self._key)
