"""
The meaning of the exit codes of well-known tools: one JSON file per tool, with its source.

A profile has only the exit codes that the tool's documentation defines. All others stay unknown, and so do all failures
of a tool that always exits 1. Messages are not parsed.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec

from amends.core.enums import Executed, Recovery

__all__ = ["NAMES", "Profile", "Row", "profile"]

NAMES = ("aws", "curl", "gh", "git", "kubectl")


class Row(msgspec.Struct, frozen=True):
    """The meaning of one exit code."""

    code: str
    """The nearest code of the cli vocabulary."""
    executed: Executed
    meaning: str
    """A summary of what the tool's documentation says."""
    recovery: Recovery | None = None
    """The recovery class, if it differs from that of `code`."""


class Profile(msgspec.Struct, frozen=True):
    """The exit codes of one tool."""

    tool: str
    source: str
    note: str
    exits: dict[int, Row]


@cache
def profile(name: str) -> Profile:
    """
    Return the profile of a tool.

    Raises:
        LookupError: if there is no profile of this name; the message lists the names.

    """
    if name not in NAMES:
        raise LookupError(f"no profile {name!r}; the profiles are {', '.join(NAMES)}")
    return msgspec.json.decode(files(__name__).joinpath(f"{name}.json").read_bytes(), type=Profile)
