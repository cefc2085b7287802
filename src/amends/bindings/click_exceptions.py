"""
What Click and Typer raise, read by names: they are two libraries with the same words.

Only what is raised before the command's function ran is a mistake in its arguments; that is read off the traceback,
where the framework's `Context.invoke` stands above every function it calls. A group's own function is set-up.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from amends.cli import command_errors
from amends.cli.arguments import Mistake, bad_value, missing
from amends.cli.command_errors import Verdict
from amends.core.exits import exit_code
from amends.core.fault import Fault

__all__ = ["is_clicks_own", "verdict"]

_WAYS_OUT = frozenset({"Exit", "Abort", "UsageError"})


def _names(exc: BaseException) -> frozenset[str]:
    return frozenset(
        cls.__name__ for cls in type(exc).__mro__ if cls.__module__.split(".")[0] in {"click", "typer"}
    )


def is_clicks_own(exc: BaseException) -> bool:
    """Whether an exception is a way to leave, or an answer about arguments, and no failure worth repeating."""
    return bool(_names(exc) & _WAYS_OUT)


def verdict(exc: BaseException, profile: str, argv: list[str]) -> Verdict | None:
    """What one of their exceptions means; None for all others."""
    names = _names(exc)
    if "Exit" in names:
        return command_errors.left(getattr(exc, "exit_code", 1), profile)
    if "Abort" in names:
        return _aborted(exc, profile)
    if "ClickException" not in names:
        return None
    if "UsageError" in names:
        fault = _inside(exc) if ran(exc.__traceback__) else _before(exc, argv)
    else:
        code = "VALIDATION_ERROR" if "FileError" in names else "INTERNAL_ERROR"
        fault = Fault(code=code, message=_words(exc), vocabulary="cli")
    fault = command_errors.told(fault)
    return Verdict(fault, exit_code(fault, profile))


def ran(trace: TracebackType | None) -> bool:
    """Whether the exception came out of a function that the framework called, and not out of its parsing."""
    while trace is not None:
        code, home = trace.tb_frame.f_code, trace.tb_frame.f_globals.get("__name__", "")
        if code.co_qualname == "Context.invoke" and home.split(".")[0] in {"click", "typer"}:
            return True
        trace = trace.tb_next
    return False


def _words(exc: Any) -> str:
    return str(exc.format_message())


def _aborted(exc: BaseException, profile: str) -> Verdict:
    """A question was answered with an interrupt or a no — or, in a pipe, there was nobody to answer it."""
    if not isinstance(exc.__context__, EOFError):
        return command_errors.interrupted(command_errors.INTERRUPTED)
    fault = Fault(
        code="USAGE_ERROR",
        message="The command asked a question and nobody was there to answer",
        vocabulary="cli",
        suggestions=("Give the answer as an option; see --help",),
    )
    return Verdict(fault, exit_code(fault, profile))


def _inside(exc: Any) -> Fault:
    """A usage error the function raised: its author's word — or that of another command it called, which is a bug."""
    context = getattr(exc, "ctx", None)
    if context is not None and context.find_root() is not _outermost(exc):
        from amends.core.vocabulary import row_for

        return Fault(
            code="INTERNAL_ERROR", message=row_for("cli", "INTERNAL_ERROR").message, vocabulary="cli"
        )
    return Fault(code="VALIDATION_ERROR", message=_words(exc), vocabulary="cli", field=_field(exc))


def _outermost(exc: BaseException) -> Any:
    """The context the whole command line runs in."""
    trace = exc.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_qualname == "Context.invoke":
            return trace.tb_frame.f_locals["self"].find_root()
        trace = trace.tb_next
    return None


def _field(exc: Any) -> str | None:
    param = getattr(exc, "param", None)
    name = getattr(exc, "option_name", None)
    if name is None and param is not None:
        opts = list(getattr(param, "opts", ()))
        is_option = any(opt.startswith("-") for opt in opts)
        name = (
            max(opts, key=len)
            if is_option
            else str(getattr(param, "human_readable_name", None) or param.name).upper()
        )
    hint = getattr(exc, "param_hint", None)
    return name or (hint if isinstance(hint, str) else None)


def _before(exc: Any, argv: list[str]) -> Fault:
    """A mistake in the arguments, with all the others that can be found."""
    from amends.bindings.click_errors import mistakes
    from amends.cli.arguments import mistaken

    context = getattr(exc, "ctx", None)
    found = mistakes(context, argv) if context is not None else []
    return mistaken(found or [first(exc)]).fault


def first(exc: Any) -> Mistake:
    """The one mistake an exception names."""
    names, field, context = _names(exc), _field(exc), getattr(exc, "ctx", None)
    program = context.command_path if context is not None else "the command"
    if "NoArgsIsHelpError" in names:
        return missing("an argument", program)  # nobody says which one
    if "MissingParameter" in names:
        return missing(field or "an argument", program, _words(exc))
    if "BadParameter" in names:
        return bad_value(field, _words(exc), program)
    return Mistake("USAGE_ERROR", field, _words(exc), [f"See {program} --help"])
