"""
An exception in a server's own code, as its AdCP caller hears it.

- A FaultError says what its author wrote, in AdCP's words.
- What was read from somebody else's answer is told as `from_upstream` tells it: conformant errors pass untouched.
- Everything else is foreign: a rate limit or an unavailable service, in our own words. None of its text leaves.
"""

from __future__ import annotations

from amends.core.crosswalk import transfer
from amends.core.fault import Fault
from amends.core.vocabularies.adcp import VOCABULARY
from amends.errors.base import FaultError
from amends.foreign import from_upstream

__all__ = ["fault_for", "ours"]

_DEPTH = 16
"""Groups within groups."""


def ours(exc: BaseException) -> FaultError | None:
    """
    The FaultError that was raised on purpose: the exception itself, or all that a group of tasks failed with.

    >>> from amends.errors import NotFoundError
    >>> ours(ExceptionGroup("tasks", [NotFoundError("No such order")])).code
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
    The fault to answer with, in the adcp vocabulary. Never raises on what the exception holds.

    >>> fault_for(ValueError("password for db.internal is hunter2")).message
    "The service is unavailable for now"
    """
    error = ours(exc)
    if error is None:
        return from_upstream(exc)
    fault = error.fault
    if fault.origin is not None:
        return from_upstream(error)
    return fault if fault.vocabulary == VOCABULARY.name else transfer(fault, VOCABULARY.name)
