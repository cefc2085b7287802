"""The result of reading a response: whether it failed, its structured error, and where that was found."""

from __future__ import annotations

from typing import Any

import msgspec

from amends.core.fault import Fault

__all__ = ["FAILED", "NOT_FAILED", "Reading"]


class Reading(msgspec.Struct, frozen=True, gc=False):
    """Whether a response failed, its structured error, and where that was found."""

    failed: bool
    """Whether the response reports a failure."""
    fault: Fault | None = None
    """The structured error; None if there is none."""
    path: str | None = None
    """Where it was found (mappings M6)."""
    error: Any = None
    """The error object as received; None if the fault comes from a status, a header or an exit code alone."""
    fatal: bool = False
    """False for an error about a part of a response that did not fail."""


FAILED = Reading(failed=True, fatal=True)
"""It failed, and no structured error was found."""
NOT_FAILED = Reading(failed=False)
"""It did not fail and carries no error."""
