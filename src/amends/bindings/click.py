"""
Binding for Click and Typer: reports all mistakes in the arguments at once, and failures as the CLI agent spec's envelope.

    from amends.bindings.click import main

    main(app)       # a click.Command or Group, or a typer.Typer

Neither library is imported here. Typer contains its own copy of Click from 0.26 on, so exceptions of both are recognised
by their class names. Shell completion stays with the framework. A command's function may be `async def`.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from amends.bindings.click_parameters import declared_values
from amends.cli.awaitables import run_awaitable
from amends.cli.command_retry import CommandRetry, operation
from amends.cli.options import USAGE, parse_common_options
from amends.core.wrong_calls import explains_wrong_calls

if TYPE_CHECKING:
    import click

    from amends.cli.command_errors import Outcome

__all__ = ["main", "operation"]

_RUNS_ASYNC = "__amends_runs_async__"


@explains_wrong_calls
def main(
    app: object,
    argv: Sequence[str] | None = None,
    *,
    name: str | None = None,
    piped: str = "text",
    profile: str = "v1",
    success: str = "envelope",
    errors: Mapping[type[BaseException], str] | None = None,
    docs: str | None = None,
) -> NoReturn:
    """
    Parse the arguments, run the command, write its result or failure, and exit.

        if __name__ == "__main__":
            main(app)

    Args:
        app: a Click command or group, or a Typer application.
        argv: the arguments; default: those of the process.
        name: the program's name in messages; default: that of the process.
        piped: the output if none was chosen and stdout is not a terminal: text or json.
        profile: the exit table: v1 or v2.
        success: "own" if commands write their results to stdout themselves, with JSON output too.
        errors: the codes of exception classes of yours, `{SeatTaken: "CONFLICT"}`. Their text is not written.
        docs: the URL below which each code has a page (`{docs}/cli/not-found`, as an HTTP binding serves them at
            `/errors`): the base of `type` and `doc_uri`.

    """
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name is str, not {type(name).__name__}")
    command = _command(app)
    program = name or _program(command)
    if f"_{program.replace('-', '_').replace('.', '_').upper()}_COMPLETE" in os.environ:
        command.main(prog_name=program)
    from amends.cli.invocation import run_command

    arguments = sys.argv[1:] if argv is None else argv
    options = parse_common_options(arguments, lambda flag: declared_values(command, arguments, flag), piped)
    if getattr(command, "epilog", USAGE) is None:
        command.epilog = USAGE

    def work(retry: CommandRetry) -> object:
        _prepare(command, retry, program)
        with command.make_context(program, list(options.rest)) as context:
            return run_awaitable(command.invoke(context))

    def click_outcome(exc: BaseException, profile: str) -> Outcome | None:
        from amends.bindings.click_exceptions import is_registered, outcome_of

        return None if is_registered(exc, errors) else outcome_of(exc, profile, options.rest)

    sys.exit(
        run_command(
            work,
            options,
            framework_outcome=click_outcome,
            profile=profile,
            success=success,
            errors=errors,
            docs=docs,
        )
    )


def _command(app: Any) -> Any:
    if hasattr(app, "make_context"):
        return app
    if hasattr(app, "registered_commands"):
        from typer.main import get_command

        return get_command(app)
    raise TypeError(f"main takes a Click command or a Typer application, not {type(app).__name__}")


def _program(command: click.Command) -> str:
    """Return the program as the user typed it: a script's name, or `python -m package`."""
    path = sys.argv[0] if sys.argv else ""
    package = getattr(sys.modules.get("__main__"), "__package__", None)
    if not package or (os.name == "nt" and not os.path.exists(path)):  # noqa: PTH110 - pathlib would cost its import
        return os.path.basename(path) or command.name or "command"  # noqa: PTH119
    module = os.path.splitext(os.path.basename(path))[0]  # noqa: PTH119, PTH122
    return f"python -m {package if module == '__main__' else f'{package}.{module}'.lstrip('.')}"


def _prepare(command: Any, retry: CommandRetry, program: str) -> None:
    """Make the selected commands run `async def` functions, and the innermost one under `retry`; groups run once."""
    _run_async_function(command)
    if hasattr(command, "resolve_command"):
        resolve: Callable[..., Any] = command.resolve_command

        def resolve_and_prepare(context: object, args: list[str]) -> tuple[object, ...]:
            name, found, rest = resolve(context, args)
            if found is not None:
                _prepare(found, retry, f"{program} {name}")
            return name, found, rest

        command.resolve_command = resolve_and_prepare
    else:
        invoke: Callable[..., object] = command.invoke

        def leaves_on_purpose(exc: BaseException) -> bool:
            from amends.bindings.click_exceptions import is_exit, is_registered

            return is_exit(exc) and not is_registered(exc, retry.errors)

        def invoke_with_retry(context: object) -> object:
            return retry.run(lambda: invoke(context), command.callback, program, leaves_on_purpose)

        command.invoke = invoke_with_retry


def _run_async_function(command: click.Command) -> None:
    """Replace a command's function by one that runs the coroutine it returns, where the framework calls it."""
    function = getattr(command, "callback", None)
    if function is None or hasattr(function, _RUNS_ASYNC):
        return

    @functools.wraps(function)
    def run(*args: object, **kwargs: object) -> object:
        return run_awaitable(function(*args, **kwargs))

    setattr(run, _RUNS_ASYNC, True)
    command.callback = run
