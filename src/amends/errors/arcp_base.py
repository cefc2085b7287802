"""ARCPError, the base class of all ARCP errors, with the constructor that ARCP specifies."""

from __future__ import annotations

from typing import Any

from amends.core.enums import Recovery
from amends.core.validate import check_flag
from amends.core.vocabularies.arcp import VOCABULARY
from amends.errors.base import FaultError

__all__ = ["ARCPError", "ARCPErrorOfCode", "is_retryable_by_default"]


def is_retryable_by_default(code: str) -> bool:
    """
    Return whether a code is retryable if the payload has no `retryable` member (R5).

    >>> is_retryable_by_default("TIMEOUT"), is_retryable_by_default("CANCELLED")
    (True, False)
    """
    return VOCABULARY.row(code).recovery is Recovery.TRANSIENT


class ARCPError(FaultError):
    """
    Any ARCP error. If an agent raises it, the runtime sends `job.error` with its code.

    >>> ARCPError("INVALID_REQUEST", "url is required").retryable
    False
    """

    vocabulary = "arcp"

    def __init__(
        self,
        code: str,
        message: str | None = None,
        *,
        details: dict[str, object] | None = None,
        retryable: bool | None = None,
        **more: Any,
    ) -> None:
        """Create the error. `retryable` overrides the default of the code, and is sent with the error."""
        if retryable is not None:
            check_flag("retryable", retryable)
        if retryable is not None and "recovery" not in more:
            more["recovery"] = _recovery(code, retryable=retryable)
        super().__init__(message, code=code, details=details, **more)

    @property
    def retryable(self) -> bool:
        """Whether the same submission may succeed later."""
        return self.fault.retryable


class ARCPErrorOfCode(ARCPError):
    """The base of the classes with a fixed code: the first argument is the message."""

    def __init__(
        self,
        message: str | None = None,
        *,
        details: dict[str, Any] | None = None,
        retryable: bool | None = None,
        **more: Any,
    ) -> None:
        """Create the error with the code of its class."""
        more.setdefault("code", self.code)
        super().__init__(message=message, details=details, retryable=retryable, **more)


def _recovery(code: str, *, retryable: bool) -> Recovery:
    """Return the recovery class that a reader derives from a code and an explicit `retryable` (M1)."""
    default = VOCABULARY.row(code).recovery
    if retryable:
        return Recovery.TRANSIENT
    return Recovery.TERMINAL if default is Recovery.TRANSIENT else default
