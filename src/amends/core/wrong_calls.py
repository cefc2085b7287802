"""
Calls with an option that does not exist: the error names what was called and the option that is meant.

    @explains_wrong_calls
    def run(argv, *, read_only=False, policy=DEFAULT): ...

    run(["sync"], readonly=True)  # TypeError: run() has no option 'readonly'; use read_only
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

__all__ = ["explains_wrong_calls", "missing_option", "nearest", "refuse_unknown"]

F = TypeVar("F", bound=Callable[..., Any])

_WORDS = {
    "expires_in": ("ttl", "expires", "expiry", "expiration", "max_age"),
    "attempts": ("retries", "max_attempts", "max_retries", "tries", "max_tries", "retry"),
    "vendor": ("service", "provider"),
    "suggestions": ("suggestion", "fix", "hint", "hints"),
    "read_only": ("readonly", "safe", "pure"),
    "backoff": ("delay", "retry_delay", "wait", "initial_delay", "backoff_factor"),
    "max_wait": ("max_delay", "max_backoff", "max_time"),
    "deadline": ("timeout", "total_timeout"),
    "timeout": ("deadline", "seconds", "time_limit"),
    "key": ("idempotency_key",),
    "idempotent": ("idempotency",),
}
"""The options of this package, and other libraries' names for them."""
_COROUTINE = 0x80
"""`inspect.CO_COROUTINE`: importing `inspect` takes longer than everything else here."""
_OF_POLICY = frozenset({"attempts", "backoff", "max_wait"})
"""Options of `Policy`, which most callables take as `policy`."""


def nearest(wrong: str, options: Iterable[str]) -> str | None:
    """
    Return the option that is meant, as it is written in a call; None if there is none.

    >>> nearest("readonly", ["read_only", "key"]), nearest("retries", ["policy", "timeout"]), nearest("x", ["timeout"])
    ('read_only', 'policy=Policy(attempts=…)', None)
    """
    from difflib import get_close_matches

    known = list(options)
    for option, words in _WORDS.items():
        if wrong in words and option in known:
            return option
    for option in _OF_POLICY:
        if (wrong in _WORDS[option] or wrong == option) and "policy" in known:
            return f"policy=Policy({option}=…)"
    near = get_close_matches(wrong, known, 1, 0.75) or [option for option in known if wrong in option]
    return near[0] if near else None


def missing_option(name: str, wrong: str, options: Iterable[str]) -> str:
    """
    Return the message for a call with an option that does not exist.

    >>> missing_option("run", "readonly", ["read_only"])
    "run() has no option 'readonly'; use read_only"
    >>> missing_option("once", "x", ["key", "verify"])
    "once() has no option 'x'; there are key, verify"
    """
    known = list(options)
    near = nearest(wrong, known)
    return f"{name}() has no option {wrong!r}; " + (
        f"use {near}" if near else f"there are {', '.join(known)}"
    )


def refuse_unknown(name: str, given: Iterable[str], options: Iterable[str]) -> None:
    """
    Check the names of options that are passed on, for a callable that takes any.

    >>> refuse_unknown("connect", {"tokens": 3}, ["token", "settings"])
    Traceback (most recent call last):
    TypeError: connect() has no option 'tokens'; use token

    Raises:
        TypeError: an option does not exist.

    """
    known = list(options)
    for each in given:
        if each not in known:
            raise TypeError(missing_option(name, each, known))


def explains_wrong_calls(function: F) -> F:
    """
    Decorate a function, a method, an `__init__` or a dataclass: a call with wrong arguments raises a TypeError that names what to write.

    >>> @explains_wrong_calls
    ... def send(what, *, attempts=3): ...
    >>> send("tea", max_retries=2)
    Traceback (most recent call last):
    TypeError: send() has no option 'max_retries'; use attempts
    >>> send()
    Traceback (most recent call last):
    TypeError: send() missing 1 required positional argument: 'what'
    """
    from functools import wraps

    if isinstance(function, type):
        function.__init__ = explains_wrong_calls(function.__init__)  # type: ignore[misc]
        return function
    if function.__code__.co_flags & _COROUTINE:

        @wraps(function)
        async def acall(*args: Any, **options: Any) -> Any:
            try:
                return await function(*args, **options)
            except TypeError as error:
                _explain(error, function, args, options)
                raise

        return acall  # type: ignore[return-value]

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except TypeError as error:
            _explain(error, function, args, options)
            raise

    return call  # type: ignore[return-value]


def _explain(
    error: TypeError, function: Callable[..., Any], args: tuple[Any, ...], given: dict[str, Any]
) -> None:
    """Raise a TypeError that explains the call; return if it was raised inside the function."""
    trace = error.__traceback__
    if trace is None or trace.tb_next is not None:
        return
    from inspect import Parameter, signature

    parameters = signature(function).parameters.values()
    named = [
        each.name
        for each in parameters
        if each.kind in {Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD}
    ]
    name = function.__qualname__
    if function.__name__ == "__init__" and args:
        # The class that was called, and not the one that defines it.
        name = type(args[0]).__name__
    if named and named[0] == "self":
        del named[0]
    wrong = next((each for each in given if each not in named), None)
    if wrong is not None:
        raise TypeError(missing_option(name, wrong, named)) from None
    text = str(error).removeprefix(f"{function.__qualname__}()")
    if "positional" in text and "takes" in text:
        by_name = [f"{each.name}=" for each in parameters if each.kind is Parameter.KEYWORD_ONLY]
        text += f"; write {', '.join(by_name)} by name" if by_name else ""
    raise TypeError(f"{name}(){text}") from None
