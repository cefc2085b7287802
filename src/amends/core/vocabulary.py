"""
Whose word a code is, and everything that is known about it.

The same word means different things in different vocabularies (CONFLICT is transient in AdCP and correctable on
a command line), so facts are looked up by (vocabulary, code) and never by code alone. One row holds every fact of
a code; every other table in the project is derived from these rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module

import msgspec

from amends.core.enums import TERMINAL, Actor, Executed, Recovery

__all__ = ["APP", "EVERYDAY", "Row", "Vocabulary", "names", "register", "row_for", "vocabulary"]

EVERYDAY = "everyday"
"""The small set producers use when no protocol asks for its own words."""
APP = "app"
"""Codes that users define for themselves, one class each."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """Every fact of one code."""

    code: str
    recovery: Recovery
    everyday: str
    """The nearest word of the everyday set: the hub every translation goes through."""
    message: str
    """What happened, for people, when the producer says nothing better."""
    suggestion: str
    """What the caller can do about it, in general terms (A19: no thresholds, no identifiers)."""
    user_message: str
    """What to tell the person at the end of the chain; `{name}` stands for the thing in question."""
    executed: Executed = Executed.MAYBE
    actor: Actor = Actor.CALLER
    status: int | None = None
    """HTTP status; None: that of the everyday word."""
    exit: int | None = None
    """Exit code in the default profile; None: that of the everyday word."""
    jsonrpc: int | None = None
    """JSON-RPC error code, for rejections before dispatch."""
    wait: float | None = None
    """Seconds to wait before the first retry when the sender names none; None: the policy's backoff."""
    category: str | None = None
    """The group of S3 that decides its retry policy."""
    qualifier: str | None = None
    """What has to be done before a retry can help: setup, reauth, wait."""
    alias: str | None = None
    """The current word for a deprecated one."""
    adcp_code: str | None = None
    """AdCP's word for a code of somebody's own: X_{VENDOR}_{CODE} (A15)."""

    def actor_under(self, recovery: Recovery) -> Actor:
        """
        Who has to act when the sender's own recovery class differs from the row's.

        What a program can change is the caller's; what it cannot is nobody's who only calls.
        """
        if recovery is self.recovery:
            return self.actor
        if recovery is TERMINAL:
            return Actor.OPERATOR if self.actor is Actor.CALLER else self.actor
        return Actor.CALLER


class Vocabulary(msgspec.Struct, frozen=True, kw_only=True):
    """One publication's codes, and what to make of a code that is not among them."""

    name: str
    title: str
    rows: Mapping[str, Row]
    unknown: Row
    by_status: Mapping[int, Row] = {}
    """For vocabularies whose first word is a number."""

    def row(self, code: str, status: int | None = None) -> Row:
        """Everything known about `code`; for an unknown one the row of its status, or the vocabulary's default."""
        found = self.rows.get(code)
        if found is None:
            found = self.status_row(status) if status is not None and self.by_status else self.unknown
        return found

    def status_row(self, status: int) -> Row:
        """The row a bare HTTP status stands for: other 4xx count as 400, everything else unknown as 500."""
        return self.by_status.get(status) or self.by_status[400 if 400 <= status < 500 else 500]


def table(rows: Iterable[Row]) -> dict[str, Row]:
    """Index rows by their code."""
    return {row.code: row for row in rows}


# Loaded when first asked for: a program that never meets AdCP does not pay for its 120 codes.
_MODULES = {
    name: f"amends.core.vocabularies.{name}"
    for name in (EVERYDAY, "http", "cli", "task", "adcp", "arcp", APP)
}
_LOADED: dict[str, Vocabulary] = {}


def names() -> tuple[str, ...]:
    """The vocabularies that can be asked for, built in and registered."""
    return tuple(dict.fromkeys((*_MODULES, *_LOADED)))


def vocabulary(name: str) -> Vocabulary:
    """
    The vocabulary called `name`.

    Raises:
        LookupError: when there is none; the message lists what there is.

    """
    found = _LOADED.get(name)
    if found is None:
        if name not in _MODULES:
            raise LookupError(f"no vocabulary {name!r}; there are {', '.join(names())}")
        found = import_module(_MODULES[name]).VOCABULARY
        _LOADED[name] = found
    return found


def register(new: Vocabulary) -> None:
    """Add a vocabulary of your own (a provider's, an organisation's). Built-in ones cannot be replaced."""
    if new.name in _MODULES:
        raise ValueError(f"{new.name!r} is built in; choose another name for your vocabulary")
    _LOADED[new.name] = new


def row_for(name: str, code: str, status: int | None = None) -> Row:
    """The row of (vocabulary, code); of an unregistered vocabulary, what the everyday set makes of it."""
    home = _LOADED.get(name)
    if home is None:
        home = vocabulary(name if name in _MODULES else EVERYDAY)
    return home.row(code, status)
