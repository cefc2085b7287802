"""
Errors of the program that calls `recover`: no function, wrong arguments, a coroutine where nothing awaits it.

They are raised as they are. A repeat cannot help, and no fallback is taken because of them. A plain call inside an event
loop only gets a warning, because it may be meant.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Any, NoReturn

from amends.core.wrong_calls import nearest

__all__ = [
    "LOOP_CHECK",
    "LoopCheck",
    "MisuseError",
    "refuse_coroutine",
    "refuse_generator",
    "refuse_misuse",
    "refuse_plain",
    "refuse_source",
]


class MisuseError(TypeError):
    """The function that was given to recovery cannot be called in this way."""


def refuse_coroutine(result: Any) -> NoReturn:
    """Close a coroutine that a plain call returned, and raise MisuseError."""
    result.close()
    raise MisuseError("the call returned a coroutine; await it with arecover, or decorate the async function")


def refuse_generator(call: object, result: Any) -> None:
    """Raise MisuseError if `call` is a generator function: its body has not run yet. A plain one may return a generator."""
    from functools import partial
    from inspect import isgeneratorfunction

    function = call
    while isinstance(function, partial):
        function = function.func
    if isgeneratorfunction(function) or isgeneratorfunction(getattr(type(function), "__call__", None)):  # noqa: B004 - an object with a generator __call__
        result.close()
        raise MisuseError(
            "a generator function runs after the call is over: read its items with recover_stream, or call the function "
            "that it calls"
        )


def refuse_plain(result: object) -> None:
    """Raise MisuseError if `arecover` called a plain function: its result cannot be awaited."""
    from inspect import isasyncgen, isawaitable

    if isasyncgen(result):
        raise MisuseError("the call returned an async generator: read its items with arecover_stream")
    if not isawaitable(result):
        raise MisuseError(
            f"the call returned {type(result).__name__}, which cannot be awaited: recover is for plain functions, "
            "arecover for async ones"
        )


def refuse_source(items: object, method: str, advice: str) -> None:
    """Raise MisuseError if what a source of items returned has not the method of an iterable."""
    if not hasattr(items, method):
        if hasattr(items, "__await__"):
            close = getattr(items, "close", None)
            if close is not None:
                close()  # a coroutine: without this, Python warns that it was never awaited
        raise MisuseError(f"the source returned {type(items).__name__}: {advice}")


class LoopCheck:
    """
    Warns, once per process, if a plain call is recovered on a thread that runs an event loop: its waits block the loop.

    Calls that fail or wait are all checked. Of the calls that succeed at once, the first thousand are: the check costs as
    much as the rest of such a call. The clients of amends are checked only when they wait.
    """

    __slots__ = ("left", "warned")

    def __init__(self) -> None:
        self.left = 1000
        self.warned = False

    def check(self, *, succeeded: bool = False) -> None:
        """Warn if this thread runs an event loop. `succeeded`: the call succeeded at once, so nothing waited."""
        self.left = max(0, self.left - 1)
        if self.warned:
            return
        from amends.recovery.async_library import in_event_loop

        if not in_event_loop() or (succeeded and _called_by_client()):
            return
        self.warned, self.left = True, 0
        import warnings

        warnings.warn(
            "a plain call was recovered inside a running event loop, where its waits block all tasks: use `await "
            "arecover(…)`, decorate an async function, or run it in a thread (`asyncio.to_thread`)",
            RuntimeWarning,
            stacklevel=_caller_level(),
        )


LOOP_CHECK = LoopCheck()
"""The check of this process."""


def _called_by_client() -> bool:
    """Return whether another package of amends, such as a client, called recovery."""
    frame: Any = sys._getframe(2)  # noqa: SLF001 - documented
    while frame is not None and frame.f_globals.get("__name__", "").startswith("amends.recovery."):
        frame = frame.f_back
    return frame is not None and str(frame.f_globals.get("__name__", "")).startswith("amends.")


def _caller_level() -> int:
    """Return the stack level of the first function outside this package, for a warning in the function that asks."""
    # `warnings` has skip_file_prefixes for this from Python 3.12 on.
    frame, level = sys._getframe(1), 1  # noqa: SLF001 - documented
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("amends."):
        frame, level = frame.f_back, level + 1
    return level


def refuse_misuse(
    call: object, args: tuple[object, ...], kwargs: dict[str, object], error: TypeError
) -> None:
    """Raise MisuseError if `call` cannot be called with these arguments; return if `error` was raised inside it."""
    if not callable(call):
        close = getattr(call, "close", None)
        if hasattr(call, "__await__") and close is not None:
            close()  # a coroutine: without this, Python warns that it was never awaited
        raise MisuseError(
            f"the first argument is the function to call, not {type(call).__name__}: write recover(f, x), "
            "not recover(f(x))"
        ) from None
    if not _raised_by_the_call(error):
        return
    from inspect import signature

    try:
        expected = signature(call)
    except (TypeError, ValueError):
        return  # a builtin without a signature
    try:
        expected.bind(*args, **kwargs)
    except TypeError as mismatch:
        name = getattr(call, "__qualname__", type(call).__name__)
        meant = _meant_for_recover(kwargs.keys() - expected.parameters.keys())
        raise MisuseError(f"{name} cannot be called like this: {mismatch}{meant}") from None


def _meant_for_recover(unknown: Collection[str]) -> str:
    """Return a hint for arguments of a call that look like misspelt options of `recover`."""
    from amends.recovery.plan import Options

    options = [*Options.__struct_fields__, "history", "options"]
    found = {wrong: near for wrong in sorted(unknown) if (near := nearest(wrong, options))}
    return "".join(f"; recover has no option {wrong!r}: use {near}" for wrong, near in found.items())


def _raised_by_the_call(error: BaseException) -> bool:
    """Return whether the call expression itself raised the error: its traceback ends in this package."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))
    return module.startswith("amends.recovery.")
