"""Call the functions of agents: with as many arguments as they take, async or in a thread."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from amends.durable.journal import Fenced
from amends.tasks.context import Interruption
from amends.tasks.threads import Threads

__all__ = ["FunctionExitedError", "invoke", "thread_key"]

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
