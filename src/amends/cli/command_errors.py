"""
Turns the exception that ended a command into a fault and an exit code.

- The exceptions of a group (a task group) are turned into faults one by one and joined (`amends.foreign.groups`).
- A FaultError keeps the text its author wrote. An error that recovery raised about an upstream, and every other
  exception, gets our own text for its code: foreign text never leaves the process.
- An exception class that the application registered (`amends.register`, `errors=`) has its code.
- A bug (M7) and every other exception without a known meaning is INTERNAL_ERROR; the message names --debug.
- A file that is missing or not accessible is named if its path is one of the arguments: then the caller wrote it.
- An explicit exit keeps its exit code. Its code is INTERNAL_ERROR: a number alone does not say what went wrong.
- Interrupts exit with 130 (SIGINT), 143 (SIGTERM) and 129 (SIGHUP).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from amends.core.crosswalk import default_wait, source_row, transfer
from amends.core.enums import Executed, Recovery
from amends.core.exits import exit_code
from amends.core.fault import Fault
from amends.core.vocabulary import APP, EVERYDAY, row_for
from amends.dialects.problem import EFFECT_UNKNOWN
from amends.errors.base import FaultError, is_about_a_call

if TYPE_CHECKING:
    from amends.core.operation import Operation
    from amends.foreign.registry import Known

__all__ = ["Outcome", "as_cli_fault", "from_exit_code", "interrupted", "joined_outcome", "outcome_of"]

INTERRUPTED, TERMINATED, HUNG_UP = 130, 143, 129
WRONG_ARGUMENTS = 2
"""argparse's own exit code, for a guarded function that parses its arguments itself."""
UNEXPECTED = "The command failed with an unexpected error; run it with --debug to see the traceback"
_FILE_PROBLEMS: dict[type[OSError], str] = {
    FileNotFoundError: "no such file or directory",
    PermissionError: "permission denied",
    FileExistsError: "it exists already",
    IsADirectoryError: "it is a directory",
    NotADirectoryError: "it is not a directory",
}
RETRIES = 3
"""The value of `max_retries` in the CLI agent spec's own example."""


class Outcome(NamedTuple):
    """How a command ended: its fault (None for success) and its exit code."""

    fault: Fault | None
    exit: int


def outcome_of(
    exc: BaseException,
    profile: str,
    arguments: Sequence[str] = (),
    errors: Mapping[type[BaseException], Known] | None = None,
    declared: Operation | None = None,
) -> Outcome:
    """
    Return the outcome of a command that ended with an exception.

    Args:
        exc: what ended it.
        profile: the exit table.
        arguments: those it was called with.
        errors: the codes of exception classes, of the binding.
        declared: what its author declared: that it changes nothing, or may run twice.

    """
    if isinstance(exc, SystemExit):
        if exc.code == WRONG_ARGUMENTS and _raised_by_argparse(exc):
            return Outcome(_cli_fault("VALIDATION_ERROR", ""), WRONG_ARGUMENTS)
        return from_exit_code(exc.code)
    if isinstance(exc, KeyboardInterrupt):
        return interrupted(INTERRUPTED)
    fault = as_cli_fault(_fault(exc, arguments, errors, declared))
    return Outcome(fault, exit_code(fault, profile))


def joined_outcome(outcomes: Sequence[Outcome], profile: str) -> Outcome:
    """Return the outcome of a command that ended with a group of exceptions, from those of its parts."""
    from amends.foreign.groups import joined

    stopped = next((each for each in outcomes if each.exit in {INTERRUPTED, TERMINATED, HUNG_UP}), None)
    faults = [each.fault for each in outcomes if each.fault is not None]
    if stopped is not None or not faults:
        return stopped or outcomes[0]
    fault = as_cli_fault(joined(faults))
    return Outcome(fault, exit_code(fault, profile))


def interrupted(number: int) -> Outcome:
    """Return the outcome of a command that a signal interrupted; whether it had an effect is unknown."""
    return Outcome(
        as_cli_fault(Fault(code="CANCELLED", message=row_for(EVERYDAY, "CANCELLED").message)), number
    )


def from_exit_code(code: object) -> Outcome:
    """
    Return the outcome of an explicit exit.

    0 and None are success. A text is the author's message for an INTERNAL_ERROR. A number stays the exit code; it is an
    INTERNAL_ERROR too, because the author's own numbers are not those of the profile.
    """
    if code is None or code == 0:
        return Outcome(None, 0)
    if not isinstance(code, int):
        message = code if isinstance(code, str) else ""
        return Outcome(_cli_fault("INTERNAL_ERROR", message), 1)
    number = (
        code & 0xFF or 1
    )  # the operating system keeps one byte; a multiple of 256 must not become success
    if number in {INTERRUPTED, TERMINATED, HUNG_UP}:
        return interrupted(number)
    return Outcome(_cli_fault("INTERNAL_ERROR", "", {"exit": number}), number)


def _raised_by_argparse(exc: BaseException) -> bool:
    trace = exc.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals.get("__name__") == "argparse"


def _cli_fault(code: str, message: str, details: dict[str, object] | None = None) -> Fault:
    text = message or row_for("cli", code).message
    return as_cli_fault(Fault(code=code, message=text, vocabulary="cli", details=details))


def _fault(
    exc: BaseException,
    arguments: Sequence[str],
    errors: Mapping[type[BaseException], Known] | None,
    declared: Operation | None,
) -> Fault:
    if isinstance(exc, FaultError) and not is_about_a_call(exc) and not exc.relayed:
        return exc.fault
    from amends.foreign import from_exception
    from amends.foreign.bugs import is_bug
    from amends.foreign.in_doubt import in_doubt, lost_call
    from amends.foreign.local import is_local
    from amends.foreign.own_service import as_own_service, is_from_own_service
    from amends.foreign.registry import registered_fault
    from amends.foreign.upstream import is_conformant, refusal_of_stranger

    registered = registered_fault(type(exc), errors)
    if registered is not None:
        return registered
    if declared is None and (lost := lost_call(exc)) is not None:
        return in_doubt(lost, "cli")
    if (refused := refusal_of_stranger(exc)) is not None:
        return refused
    if isinstance(exc, FaultError):
        fault = exc.fault
        if is_from_own_service(exc):
            fault = as_own_service(fault)
        elif not is_conformant(fault):
            # It holds the text of another party's service.
            fault = _without_foreign_text(fault)
        if fault.retryable and not exc.relayed and is_about_a_call(exc):
            fault = _of_a_part(fault, declared)
        return _with_evidence(fault, exc.__cause__, arguments)
    fault = Fault(code="INTERNAL_ERROR") if is_bug(exc) else _without_foreign_text(from_exception(exc))
    if fault.code == "INTERNAL_ERROR":
        return replace(fault, message=UNEXPECTED)
    if fault.retryable or is_local(exc):
        fault = _of_a_part(fault, declared)
    return _with_evidence(fault, exc, arguments)


def _of_a_part(fault: Fault, declared: Operation | None) -> Fault:
    """Return the failure of a part of a command: the command may have done something before (M3), unless it only reads."""
    reads = declared is not None and declared.read_only
    return replace(fault, executed=Executed.NO if reads else Executed.MAYBE)


def _with_evidence(fault: Fault, exc: BaseException | None, arguments: Sequence[str]) -> Fault:
    """Return the fault with what only the command-line vocabulary distinguishes, and what only the caller may see."""
    from amends.foreign.network import is_network_failure

    unavailable = fault.code == "SERVICE_UNAVAILABLE" and fault.status is None
    if unavailable and exc is not None and is_network_failure(exc):
        message = row_for("cli", "NETWORK_ERROR").message
        return replace(fault, code="NETWORK_ERROR", vocabulary="cli", message=message)
    return _with_path(fault, exc, arguments)


def _with_path(fault: Fault, exc: BaseException | None, arguments: Sequence[str]) -> Fault:
    """Name the file in the message if its path is one of the arguments, or the value of one (`--file=path`)."""
    problem = next((text for cls, text in _FILE_PROBLEMS.items() if isinstance(exc, cls)), None)
    if problem is None or not isinstance(exc, OSError) or not isinstance(exc.filename, str | bytes):
        return fault
    path = os.fsdecode(exc.filename)
    given = {value for argument in arguments for value in (argument, argument.partition("=")[2]) if value}
    # pathlib removes "./" and a slash at the end.
    found = next((value for value in given if path in (value, os.path.normpath(value))), None)
    return fault if found is None else replace(fault, message=f"{found}: {problem}")


def _without_foreign_text(fault: Fault) -> Fault:
    """Return the same failure with our own text; numbers and the recovery class stay."""
    errors = tuple(_without_foreign_text(part) for part in fault.errors)
    if fault.origin is None:
        return fault if errors == fault.errors else replace(fault, errors=errors)
    row = row_for(EVERYDAY, row_for(fault.vocabulary, fault.code, fault.status).everyday)
    return Fault(
        code=row.code,
        message=row.message,
        recovery=fault.recovery,
        retry_after=fault.retry_after,
        max_retries=fault.max_retries,
        status=fault.status,
        attempt=fault.attempt,
        executed=fault.executed,
        errors=errors,
    )


def as_cli_fault(fault: Fault) -> Fault:
    """
    Return the fault in the command-line vocabulary.

    A retryable fault gets the members the CLI agent spec wants beside `retryable`: a wait, `strategy` and `max_retries`; its
    parts, too. The wait is that of the table if the author named none. It is no invitation to repeat a command that may
    have had its effect: `executed` is written beside it (M3).
    """
    if fault.errors:
        fault = replace(fault, errors=tuple(map(as_cli_fault, fault.errors)))
    if fault.vocabulary not in {"cli", APP}:
        fault = transfer(fault, "cli")
    if fault.recovery not in {Recovery.TRANSIENT, Recovery.UNCERTAIN}:
        return fault
    row = source_row(fault)
    at_once = row.everyday == "TIMEOUT"  # S2: may be repeated immediately
    wait = None if at_once or fault.code == EFFECT_UNKNOWN else default_wait(fault)
    retries = RETRIES if fault.recovery is Recovery.TRANSIENT else 1
    return replace(
        fault,
        retry_after=wait if fault.retry_after is None else fault.retry_after,
        strategy=fault.strategy or ("immediate" if at_once else "exponential_backoff"),
        max_retries=retries if fault.max_retries is None else fault.max_retries,
    )
