"""The root of ARCP's errors, with S5's own constructor."""

from __future__ import annotations

from typing import Any

from amends.core.enums import Recovery
from amends.core.vocabularies.arcp import VOCABULARY
from amends.errors.base import FaultError

__all__ = ["ARCPError", "ARCPErrorOfCode", "is_retryable_by_default"]


def is_retryable_by_default(code: str) -> bool:
    """
    Whether a code is retryable where the payload does not say (R5).

    >>> is_retryable_by_default("TIMEOUT"), is_retryable_by_default("CANCELLED")
    (True, False)
    """
    return VOCABULARY.row(code).recovery is Recovery.TRANSIENT


class ARCPError(FaultError):
    """
    Any ARCP error. Raised in an agent it becomes `job.error` with its code.

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
        """`retryable` overrides the code's default, and travels with the error."""
        if retryable is not None and "recovery" not in more:
            more["recovery"] = _recovery(code, retryable=retryable)
        super().__init__(message, code=code, details=details, **more)

    @property
    def retryable(self) -> bool:
        """Whether the same submission may succeed."""
        return self.fault.retryable


class ARCPErrorOfCode(ARCPError):
    """An ARCP error whose class says its code: the message comes first."""

    def __init__(
        self,
        message: str | None = None,
        *,
        details: dict[str, Any] | None = None,
        retryable: bool | None = None,
        **more: Any,
    ) -> None:
        """Raise with a message and, where it helps, details."""
        more.setdefault("code", self.code)
        super().__init__(message=message, details=details, retryable=retryable, **more)


def _recovery(code: str, *, retryable: bool) -> Recovery:
    """What `retryable` makes of a code, as a reader will see it (M1)."""
    default = VOCABULARY.row(code).recovery
    if retryable:
        return Recovery.TRANSIENT
    return Recovery.TERMINAL if default is Recovery.TRANSIENT else default
