"""What recovery raises or returns when it gives up, as the option `raises` says."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from amends.core.fault import Fault
from amends.errors.base import FaultError
from amends.recovery.history import History
from amends.recovery.notes import notes_for
from amends.recovery.stepper import Stepper

__all__ = ["final_error", "with_fault"]


def final_error(stepper: Stepper, cause: BaseException | None, notes: list[str]) -> FaultError:
    """
    Return the typed error of an operation that failed, with its decision and its history.

    `fault.attempt` is the number of calls made, so that a recovery around this one counts them. If the last exception
    was a FaultError, the new one has its class and its attributes, or the more specific class of its code: `except
    OutOfStock` keeps working.
    """
    fault = stepper.fault or Fault(code="INTERNAL_ERROR")
    if stepper.tries > 1:
        fault = replace(fault, attempt=stepper.tries)
    error = FaultError.from_fault(fault)
    if isinstance(cause, FaultError):
        kind = type(cause)
        if not isinstance(error, kind):
            error = kind.__new__(kind)
            error._set_fault(fault)  # noqa: SLF001 - an error of this package
        error.__dict__ = {**cause.__dict__, **error.__dict__}
        error.__dict__.pop("__notes__", None)
    error.decision, error.history = stepper.decision, History(stepper.history)
    for note in (*notes_for(stepper), *notes):
        error.add_note(note)
    return error


def with_fault(original: BaseException, error: FaultError) -> BaseException:
    """
    Return the call's own exception with the attributes and the notes of the final error.

    An exception that does not allow further attributes is returned as it is.
    """
    attributes: Any = original
    try:
        attributes.fault, attributes.decision = error.fault, error.decision
        attributes.history = error.history
        for note in getattr(error, "__notes__", ()):
            original.add_note(note)
    except (AttributeError, TypeError):
        pass
    return original
