"""
The meaning of exit codes of common tools, with sources: one JSON file per tool.

A profile contains only numbers that the tool's documentation defines. Others stay unknown, as for a tool that exits
with 1 after every failure. Messages are not used.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec

from amends.core.enums import Executed, Recovery

__all__ = ["NAMES", "Profile", "Row", "profile"]

NAMES = ("aws", "curl", "gh", "git", "kubectl")


class Row(msgspec.Struct, frozen=True):
    """The meaning of one exit code of a tool."""

    code: str
    """The nearest code of the cli vocabulary."""
    executed: Executed
    meaning: str
    """A short summary of the tool's documentation."""
    recovery: Recovery | None = None
    """The recovery class, if it differs from that of the code."""


class Profile(msgspec.Struct, frozen=True):
    """One tool's exit codes."""

    tool: str
    source: str
    note: str
    exits: dict[int, Row]


@cache
def profile(name: str) -> Profile:
    """
    Return the profile of a tool.

    Raises:
        LookupError: if there is none; the message lists the names.

    """
    if name not in NAMES:
        raise LookupError(f"no profile {name!r}; there are {', '.join(NAMES)}")
    return msgspec.json.decode(files(__name__).joinpath(f"{name}.json").read_bytes(), type=Profile)
