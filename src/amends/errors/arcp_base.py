"""The base class of ARCP's errors, with the constructor that ARCP defines (S5)."""

from __future__ import annotations

from typing import Any

from amends.core.enums import Recovery
from amends.core.vocabularies.arcp import VOCABULARY
from amends.errors.base import FaultError

__all__ = ["ARCPError", "ARCPErrorOfCode", "is_retryable_by_default"]


def is_retryable_by_default(code: str) -> bool:
    """
    Whether a code is retryable if the payload does not say (R5).

    >>> is_retryable_by_default("TIMEOUT"), is_retryable_by_default("CANCELLED")
    (True, False)
    """
    return VOCABULARY.row(code).recovery is Recovery.TRANSIENT


class ARCPError(FaultError):
    """
    Base class of all ARCP errors. Raised in an agent, it becomes a `job.error` with its code.

    >>> ARCPError("INVALID_REQUEST", "url is required").retryable
    False
    """

    vocabulary = "arcp"

    def __init__(
        self,
        code: str,
        message: str | None = None,
        *,
        details: dict[str, Any] | None = None,
        retryable: bool | None = None,
        **more: Any,
    ) -> None:
        """Create an error; `retryable` overrides the code's default and is sent with the error."""
        if retryable is not None and "recovery" not in more:
            more["recovery"] = _recovery(code, retryable=retryable)
        super().__init__(message, code=code, details=details, **more)

    @property
    def retryable(self) -> bool:
        """Whether the same submission may succeed."""
        return self.fault.retryable


class ARCPErrorOfCode(ARCPError):
    """Base class of ARCP errors with a code of their own: the first argument is the message."""

    def __init__(
        self,
        message: str | None = None,
        *,
        details: dict[str, Any] | None = None,
        retryable: bool | None = None,
        **more: Any,
    ) -> None:
        """Create an error with a message and details."""
        more.setdefault("code", self.code)
        super().__init__(message=message, details=details, retryable=retryable, **more)


def _recovery(code: str, *, retryable: bool) -> Recovery:
    """Return the recovery that a reader derives from a code and `retryable` (M1)."""
    default = VOCABULARY.row(code).recovery
    if retryable:
        return Recovery.TRANSIENT
    return Recovery.TERMINAL if default is Recovery.TRANSIENT else default
