"""
The Fault that an AdCP caller gets for an exception raised in a server's code.

- A FaultError that the server's author raised: its fault, translated into the adcp vocabulary.
- A FaultError whose fault was received from another service: the result of `from_upstream`, which passes conformant
  errors on unchanged.
- Any other exception: RATE_LIMITED or SERVICE_UNAVAILABLE with a standard message. None of its text is sent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from amends.core.crosswalk import transfer
from amends.core.fault import Fault
from amends.core.vocabularies.adcp import VOCABULARY
from amends.errors.base import FaultError
from amends.foreign import from_upstream
from amends.foreign.safe_attr import attribute

__all__ = ["Failure", "classify", "classify_safely", "fault_for", "find_fault_error", "modules_of"]

_DEPTH = 16
"""Levels of nested exception groups that are searched."""


class Failure(NamedTuple):
    """A failure that a server has to answer."""

    fault: Fault
    """The fault to send, in the adcp vocabulary."""
    cause: BaseException
    """The exception, for the log."""
    expected: bool
    """Whether the server's author raised the exception for the caller, or the framework refused the request."""


def find_fault_error(exc: BaseException) -> FaultError | None:
    """
    Return the FaultError that was raised: the exception itself, or the only exception in a group.

    >>> from amends.errors import NotFoundError
    >>> find_fault_error(ExceptionGroup("tasks", [NotFoundError("No such order")])).code
    'NOT_FOUND'
    """
    for _ in range(_DEPTH):
        if isinstance(exc, FaultError):
            return exc
        if not isinstance(exc, BaseExceptionGroup) or len(exc.exceptions) != 1:
            return None
        exc = exc.exceptions[0]
    return None


def fault_for(exc: BaseException) -> Fault:
    """
    Return the fault to answer an exception with, in the adcp vocabulary.

    >>> fault_for(ValueError("password for db.internal is hunter2")).message
    'The service is unavailable for now'
    """
    error = find_fault_error(exc)
    if error is None:
        return from_upstream(exc)
    fault = error.fault
    if fault.origin is not None:
        return from_upstream(error)
    return fault if fault.vocabulary == VOCABULARY.name else transfer(fault, VOCABULARY.name)


def classify(exc: BaseException) -> Failure:
    """Return the failure of an exception; it is expected if it holds a FaultError."""
    return Failure(fault_for(exc), exc, expected=find_fault_error(exc) is not None)


def classify_safely(
    exc: BaseException, *, log: logging.Logger, classifier: Callable[[BaseException], Failure] = classify
) -> Failure:
    """
    Return `classifier(exc)`, or SERVICE_UNAVAILABLE if that raises, which is logged.

    Exceptions can have attributes or a `__str__` that raise, and a user's `translate` function can raise too.
    """
    try:
        return classifier(exc)
    except Exception:
        log.exception("an exception could not be classified; SERVICE_UNAVAILABLE is sent instead")
        row = VOCABULARY.rows["SERVICE_UNAVAILABLE"]
        return Failure(
            Fault(code=row.code, message=row.message, vocabulary=VOCABULARY.name), exc, expected=False
        )


def modules_of(exc: BaseException) -> list[str]:
    """Return the names of the modules that an exception passed through; the last one raised it."""
    modules, trace = [], attribute(exc, "__traceback__")
    while trace is not None:
        modules.append(str(trace.tb_frame.f_globals.get("__name__", "")))
        trace = trace.tb_next
    return modules
