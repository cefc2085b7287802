"""
The meaning of the exit codes of well-known tools: one JSON file per tool, with its source.

A file has only numbers that the tool's own documentation defines. Other failures of the tool are unknown. `sysexits` is
the table of sysexits.h, for programs that have no profile. Messages are never looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import PurePath

import msgspec

from amends.core.enums import Executed, Recovery

__all__ = ["NAMES", "SYSEXITS", "Profile", "Row", "profile", "profile_of"]

SYSEXITS = "sysexits"
NAMES = ("aws", "curl", "gh", "git", "kubectl", "rsync", "wget", SYSEXITS)


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
    several: tuple[str, ...] = ()
    """Options with which one run may make several requests, so that an earlier one may have had its effect."""
    urls: bool = False
    """The arguments are URLs, and more than one makes several requests."""

    def may_do_more(self, arguments: Sequence[str]) -> bool:
        """
        Return whether a run with these arguments may make several requests; then no exit code proves that nothing was done.

        >>> profile("curl").may_do_more(["-sSL", "https://example.com"])
        True
        """
        if self.urls and sum("://" in argument for argument in arguments) > 1:
            return True
        return any(_has_option(argument, option) for argument in arguments for option in self.several)


def _has_option(argument: str, option: str) -> bool:
    """Return whether an argument has an option: a long one with or without a value, a short one also among others."""
    if option.startswith("--"):
        return argument.partition("=")[0] == option
    return argument.startswith("-") and not argument.startswith("--") and option[1] in argument


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


def profile_of(program: str) -> str | None:
    """
    Return the name of the profile of a program, by its file name; None if it has none.

    >>> profile_of("/usr/bin/curl")
    'curl'
    """
    name = PurePath(program).name.removesuffix(".exe")
    return name if name in NAMES and name != SYSEXITS else None
