"""
What the exit codes of well-known tools mean, as data with its sources: one JSON file per tool.

Only numbers a tool's own documentation defines are there; everything else stays "nobody knows", which is what a tool
that exits 1 for all failures says. Messages are never looked at.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec

from amends.core.enums import Executed, Recovery

__all__ = ["NAMES", "Profile", "Row", "profile"]

NAMES = ("aws", "curl", "gh", "git", "kubectl")


class Row(msgspec.Struct, frozen=True):
    """What one exit code of a tool says."""

    code: str
    """The nearest code of the cli vocabulary."""
    executed: Executed
    says: str
    """The tool's own documentation, in a few words."""
    recovery: Recovery | None = None
    """Where it differs from the code's own."""


class Profile(msgspec.Struct, frozen=True):
    """One tool's exit codes."""

    tool: str
    source: str
    note: str
    exits: dict[int, Row]


@cache
def profile(name: str) -> Profile:
    """
    The profile of a tool.

    Raises:
        LookupError: when there is none; the message lists what there is.

    """
    if name not in NAMES:
        raise LookupError(f"no profile {name!r}; there are {', '.join(NAMES)}")
    return msgspec.json.decode(files(__name__).joinpath(f"{name}.json").read_bytes(), type=Profile)
