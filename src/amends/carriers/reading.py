"""What reading a response gives: whether it failed, what structured error it holds, and where that was."""

from __future__ import annotations

from typing import Any

import msgspec

from amends.core.fault import Fault

__all__ = ["FAILED", "NOT_FAILED", "Reading"]


class Reading(msgspec.Struct, frozen=True, gc=False):
    """What a response says about a failure, and where it says so."""

    failed: bool
    """The response reports a failure at all."""
    fault: Fault | None = None
    """The structured error; None when there is none."""
    path: str | None = None
    """Where it was found (mappings M6)."""
    error: Any = None
    """The object as received; None when only a status, a header or an exit code spoke."""
    fatal: bool = False
    """False for remarks on a response that did not fail."""


FAILED = Reading(failed=True, fatal=True)
"""It failed and says nothing that can be read."""
NOT_FAILED = Reading(failed=False)
"""It did not fail and carries no error."""
