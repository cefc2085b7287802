"""
Any function as a command whose failures are S2's envelope with the right exit code.

    from amends.bindings.guard import guard

    @guard
    def main() -> dict:
        ...

    if __name__ == "__main__":
        main()

The function does its own parsing, or none: `--output`, `--debug` and `--retries` are taken out of `sys.argv` first. What
it returns is the envelope's `data`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, NoReturn, ParamSpec

from amends.cli.command_retry import Tries, operation
from amends.cli.options import take

__all__ = ["guard", "operation"]

P = ParamSpec("P")


def guard(
    function: Callable[P, Any], *, piped: str = "text", profile: str = "s2", success: str = "envelope"
) -> Callable[P, NoReturn]:
    """
    `function` as a whole program: calling it runs it, answers, and exits.

    Args:
        function: plain or async. Its result is the envelope's `data`; in text it prints what it likes.
        piped: the output when nobody asked for one and stdout is no terminal: text, or json.
        profile: the exit table: s2, or v2.
        success: "own" where the function writes its results to stdout itself, also as JSON.

    """

    @functools.wraps(function)
    def program(*args: P.args, **kwargs: P.kwargs) -> NoReturn:
        from amends.cli.session import conduct

        asked = take(sys.argv[1:], piped=piped)
        sys.argv[1:] = asked.rest

        def work(tries: Tries) -> Any:
            return tries.run(
                lambda: _finished(function(*args, **kwargs)), function, function.__name__, _never
            )

        sys.exit(conduct(work, asked, profile=profile, success=success))

    return program


def _finished(value: Any) -> Any:
    """What an async function returns in the end."""
    if hasattr(value, "__await__"):
        import asyncio

        return asyncio.run(value)
    return value


def _never(exc: BaseException) -> bool:
    return False
