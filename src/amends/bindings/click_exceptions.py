"""
Maps the exceptions of Click and Typer to outcomes, by class name: the two libraries use the same names.

A usage error is a mistake in the arguments only if it was raised before the command's function ran. The traceback shows
that: it contains a frame of the framework's `Context.invoke` above every function that the framework calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

from amends.bindings.click_errors import (
    class_names,
    field_of,
    find_mistakes,
    message_of,
    mistake_of,
    of_framework,
)
from amends.cli import command_errors
from amends.cli.arguments import argument_error
from amends.cli.command_errors import Outcome
from amends.core.exits import exit_code
from amends.core.fault import Fault
from amends.foreign.registry import registered_class

__all__ = ["command_ran", "is_exit", "is_registered", "outcome_of"]

_EXITS = frozenset({"Exit", "Abort", "UsageError"})


def is_registered(exc: BaseException, errors: Mapping[type[BaseException], object] | None) -> bool:
    """Return whether the application registered a class of this exception that is no base class of a framework's class."""
    found = registered_class(type(exc), errors)
    return found is not None and (
        of_framework(found)
        or not any(of_framework(cls) and issubclass(cls, found) for cls in type(exc).__mro__)
    )


def is_exit(exc: BaseException) -> bool:
    """Return whether an exception leaves the command on purpose or reports wrong usage; a retry would not help."""
    return bool(class_names(exc) & _EXITS)


def outcome_of(exc: BaseException, profile: str, argv: list[str]) -> Outcome | None:
    """Return the outcome of an exception of Click or Typer; None for any other exception."""
    names = class_names(exc)
    if "Exit" in names:
        return command_errors.from_exit_code(getattr(exc, "exit_code", 1))
    if "Abort" in names:
        return _aborted(exc, profile)
    if "ClickException" not in names:
        return None
    if "UsageError" in names:
        fault = _fault_of_command(exc) if command_ran(exc.__traceback__) else _fault_of_arguments(exc, argv)
    else:
        code = "VALIDATION_ERROR" if "FileError" in names else "INTERNAL_ERROR"
        fault = Fault(code=code, message=message_of(exc), vocabulary="cli")
    fault = command_errors.as_cli_fault(fault)
    return Outcome(fault, exit_code(fault, profile))


def command_ran(trace: TracebackType | None) -> bool:
    """Return whether the exception was raised in a function that the framework called, and not while parsing."""
    while trace is not None:
        code, module = trace.tb_frame.f_code, trace.tb_frame.f_globals.get("__name__", "")
        if code.co_qualname == "Context.invoke" and module.split(".")[0] in {"click", "typer"}:
            return True
        trace = trace.tb_next
    return False


def _aborted(exc: BaseException, profile: str) -> Outcome:
    """Return the outcome of a prompt that was interrupted or answered with no, or that had no input to read (EOFError)."""
    if not isinstance(exc.__context__, EOFError):
        return command_errors.interrupted(command_errors.INTERRUPTED)
    fault = Fault(
        code="USAGE_ERROR",
        message="The command prompted for input, and stdin has none",
        vocabulary="cli",
        suggestions=("Give the answer as an option; see --help",),
    )
    return Outcome(fault, exit_code(fault, profile))


def _fault_of_command(exc: BaseException) -> Fault:
    """
    Return the fault of a usage error that the command's function raised.

    If another command that the function invoked raised it, that is a bug in the function: INTERNAL_ERROR.
    """
    context = getattr(exc, "ctx", None)
    if context is not None and context.find_root() is not _root_context(exc):
        from amends.core.vocabulary import row_for

        return Fault(
            code="INTERNAL_ERROR", message=row_for("cli", "INTERNAL_ERROR").message, vocabulary="cli"
        )
    return Fault(code="VALIDATION_ERROR", message=message_of(exc), vocabulary="cli", field=field_of(exc))


def _root_context(exc: BaseException) -> object:
    """Return the root context of the whole command line, from the outermost `Context.invoke` frame."""
    trace = exc.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_qualname == "Context.invoke":
            return trace.tb_frame.f_locals["self"].find_root()
        trace = trace.tb_next
    return None


def _fault_of_arguments(exc: BaseException, argv: list[str]) -> Fault:
    """Return the fault of a mistake in the arguments, together with all other mistakes that can be found."""
    context = getattr(exc, "ctx", None)
    found = find_mistakes(context, argv) if context is not None else []
    return argument_error(found or [mistake_of(exc)]).fault
