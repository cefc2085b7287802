"""
Errors of the program that calls `recover`: no function, wrong arguments, a coroutine where nothing awaits it.

They are raised as they are. A repeat cannot help, and no fallback is taken because of them.
"""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["MisuseError", "refuse_coroutine", "refuse_misuse", "refuse_plain", "refuse_source"]


class MisuseError(TypeError):
    """The function that was given to recovery cannot be called in this way."""


def refuse_coroutine(result: Any) -> NoReturn:
    """Close a coroutine that a plain call returned, and raise MisuseError."""
    result.close()
    raise MisuseError("the call returned a coroutine; await it with arecover, or decorate the async function")


def refuse_plain(result: Any) -> None:
    """Raise MisuseError if `arecover` called a plain function: its result cannot be awaited."""
    from inspect import isawaitable

    if not isawaitable(result):
        raise MisuseError(
            f"the call returned {type(result).__name__}, which cannot be awaited: recover is for plain functions, "
            "arecover for async ones"
        )


def refuse_source(items: Any, method: str, advice: str) -> None:
    """Raise MisuseError if what a source of items returned has not the method of an iterable."""
    if not hasattr(items, method):
        if hasattr(items, "__await__"):
            close = getattr(items, "close", None)
            if close is not None:
                close()  # a coroutine: without this, Python warns that it was never awaited
        raise MisuseError(f"the source returned {type(items).__name__}: {advice}")


def refuse_misuse(call: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: TypeError) -> None:
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
        raise MisuseError(f"{name} cannot be called like this: {mismatch}") from None


def _raised_by_the_call(error: BaseException) -> bool:
    """Return whether the call expression itself raised the error: its traceback ends in this package."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))
    return module.startswith("amends.recovery.")
