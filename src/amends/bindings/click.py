"""
Click and Typer: mistakes in arguments all at once, everything else as S2's envelope.

    from amends.bindings.click import main

    main(app)       # a click.Command or Group, or a typer.Typer

Neither library is imported here: Typer brings its own copy of Click from 0.26 on, so what they raise is known by its
names. Shell completion is left to the framework.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from amends.cli.command_retry import Tries, operation
from amends.cli.options import USAGE, take

if TYPE_CHECKING:
    from amends.cli.command_errors import Verdict

__all__ = ["main", "operation"]


def main(
    app: Any,
    argv: Sequence[str] | None = None,
    *,
    name: str | None = None,
    piped: str = "text",
    profile: str = "s2",
    success: str = "envelope",
) -> NoReturn:
    """
    Parse, run the command, answer, and exit.

    Args:
        app: a Click command or group, or a Typer application.
        argv: the arguments; those of the process without one.
        name: the program's name in messages; that of the process without one.
        piped: the output when nobody asked for one and stdout is no terminal: text, or json.
        profile: the exit table: s2, or v2.
        success: "own" where commands write their results to stdout themselves, also as JSON.

    """
    command = _command(app)
    program = name or _program(command)
    if f"_{program.replace('-', '_').replace('.', '_').upper()}_COMPLETE" in os.environ:
        command.main(prog_name=program)
    from amends.cli.session import conduct

    words = sys.argv[1:] if argv is None else argv
    asked = take(words, lambda flag: declared(command, words, flag), piped)
    if getattr(command, "epilog", USAGE) is None:
        command.epilog = USAGE

    def work(tries: Tries) -> Any:
        if tries.allowed > 1:
            _armed(command, tries, program)
        with command.make_context(program, list(asked.rest)) as context:
            return command.invoke(context)

    def reading(exc: BaseException, profile: str) -> Verdict | None:
        from amends.bindings.click_exceptions import verdict

        return verdict(exc, profile, asked.rest)

    sys.exit(conduct(work, asked, reading=reading, profile=profile, success=success))


def _command(app: Any) -> Any:
    if hasattr(app, "make_context"):
        return app
    if hasattr(app, "registered_commands"):
        from typer.main import get_command

        return get_command(app)
    raise TypeError(f"main takes a Click command or a Typer application, not {type(app).__name__}")


def _program(command: Any) -> str:
    """What the user typed: a script's name, or `python -m package`."""
    path = sys.argv[0] if sys.argv else ""
    package = getattr(sys.modules.get("__main__"), "__package__", None)
    if not package or (os.name == "nt" and not os.path.exists(path)):  # noqa: PTH110 - pathlib would cost its import
        return os.path.basename(path) or command.name or "command"  # noqa: PTH119
    module = os.path.splitext(os.path.basename(path))[0]  # noqa: PTH119, PTH122
    return f"python -m {package if module == '__main__' else f'{package}.{module}'.lstrip('.')}"


def declared(command: Any, words: Sequence[str], flag: str) -> Collection[str] | None:
    """The values the application's own flag accepts on the way these words lead; None where it has no such flag."""
    for each in _path(command, words):
        for param in getattr(each, "params", ()):
            if flag in (*getattr(param, "opts", ()), *getattr(param, "secondary_opts", ())):
                return choices(param)
    return None


def choices(param: Any) -> list[str]:
    """The values a parameter chooses from; none where it takes anything. Typer keeps them elsewhere since 0.28."""
    kind = getattr(param, "type", None) or getattr(param, "type_descriptor", None)
    return [str(getattr(choice, "value", choice)) for choice in getattr(kind, "choices", None) or ()]


def _path(command: Any, words: Sequence[str]) -> Iterator[Any]:
    """The commands that the words lead through; groups that load theirs later are not asked to."""
    yield command
    for word in words:
        below = (getattr(command, "commands", None) or {}).get(word)
        if below is not None:
            yield below
            command = below


def _armed(command: Any, tries: Tries, program: str) -> None:
    """Have the command that is reached in the end run under `tries`; groups and parsing happen once."""
    if hasattr(command, "resolve_command"):
        resolve: Callable[..., Any] = command.resolve_command

        def resolved(context: Any, args: list[str]) -> Any:
            name, found, rest = resolve(context, args)
            if found is not None:
                _armed(found, tries, f"{program} {name}")
            return name, found, rest

        command.resolve_command = resolved
        return
    invoke: Callable[..., Any] = command.invoke

    def invoked(context: Any) -> Any:
        from amends.bindings.click_exceptions import is_clicks_own

        return tries.run(lambda: invoke(context), command.callback, program, is_clicks_own)

    command.invoke = invoked
