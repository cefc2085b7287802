"""
Turns any function into a command whose failures are envelopes of the CLI agent spec with the right exit code.

    from amends.bindings.guard import guard

    @guard
    def main() -> dict:
        ...

    if __name__ == "__main__":
        main()

The function parses its own arguments, if it has any: `--output`, `--debug` and `--retries` are removed from `sys.argv`
first. The function's return value is the envelope's `data`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import NoReturn, ParamSpec

from amends.cli.awaitables import run_awaitable
from amends.cli.command_retry import CommandRetry, operation
from amends.cli.options import parse_common_options
from amends.core.wrong_calls import explains_wrong_calls

__all__ = ["guard", "operation"]

P = ParamSpec("P")


@explains_wrong_calls
def guard(
    function: Callable[P, object],
    *,
    piped: str = "text",
    profile: str = "v1",
    success: str = "envelope",
    docs: str | None = None,
) -> Callable[P, NoReturn]:
    """
    Return a program that runs `function`, writes its result or failure, and exits.

        def main() -> dict[str, int]:
            return {"orders": 17}

        if __name__ == "__main__":
            guard(main)()

    Args:
        function: a plain or async function. Its result is the envelope's `data`; with text output the function prints
            its results itself.
        piped: the output if none was chosen and stdout is not a terminal: text or json.
        profile: the exit table: v1 or v2.
        success: "own" if the function writes its results to stdout itself, with JSON output too.
        docs: the URL below which each code has a page, for `type` and `doc_uri`.

    """
    if not callable(function):
        raise TypeError(f"guard takes a function, not {type(function).__name__}: write guard(main)()")

    @functools.wraps(function)
    def program(*args: P.args, **kwargs: P.kwargs) -> NoReturn:
        from amends.cli.invocation import run_command

        options = parse_common_options(sys.argv[1:], piped=piped)
        sys.argv[1:] = options.rest

        def work(retry: CommandRetry) -> object:
            return retry.run(
                lambda: run_awaitable(function(*args, **kwargs)), function, function.__name__, _never
            )

        sys.exit(run_command(work, options, profile=profile, success=success, docs=docs))

    return program


def _never(exc: BaseException) -> bool:
    return False
