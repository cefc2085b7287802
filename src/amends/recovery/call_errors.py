"""
Calls that cannot have been meant: what is no function, arguments it does not take, a coroutine where none is awaited.

They are mistakes of the program that calls, not failures of what it calls, so they are raised as they are: repeating
them cannot help, and no other way should be taken because of them.
"""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["MisuseError", "refuse_coroutine", "refuse_misuse", "refuse_plain"]


class MisuseError(TypeError):
    """What was given to recovery cannot be called in this way."""


def refuse_coroutine(result: Any) -> NoReturn:
    """A coroutine that nobody awaits is no result."""
    result.close()
    raise MisuseError("the call returned a coroutine; await it with arecover, or decorate the async function")


def refuse_plain(result: Any) -> None:
    """What cannot be awaited came from a plain function, which has done its work by now."""
    from inspect import isawaitable

    if not isawaitable(result):
        raise MisuseError(
            f"the call returned {type(result).__name__}, which cannot be awaited: recover is for plain functions, "
            "arecover for async ones"
        )


def refuse_misuse(call: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: TypeError) -> None:
    """Tell a TypeError that calling `call` like this raises from one that was raised in it."""
    if not callable(call):
        close = getattr(call, "close", None)
        if hasattr(call, "__await__") and close is not None:
            close()  # a coroutine that was made to be given here, and that nobody will await
        raise MisuseError(
            f"the function to call is missing: {type(call).__name__} is none. Give the function and its arguments, "
            "recover(f, x), and not what it returned, recover(f(x))"
        ) from None
    if not _raised_here(error):
        return
    from inspect import signature

    try:
        expected = signature(call)
    except (TypeError, ValueError):
        return  # a builtin that does not say
    try:
        expected.bind(*args, **kwargs)
    except TypeError as mismatch:
        name = getattr(call, "__qualname__", type(call).__name__)
        raise MisuseError(f"{name} cannot be called like this: {mismatch}") from None


def _raised_here(error: BaseException) -> bool:
    """Whether the call itself raised it, and nothing that ran in it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    home = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))
    return home.startswith("amends.recovery.")
