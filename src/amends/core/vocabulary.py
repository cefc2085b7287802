"""
Vocabularies: sets of codes, and the facts about each code.

The same code has different meanings in different vocabularies (CONFLICT is transient in AdCP and correctable on a
command line), so facts are looked up by (vocabulary, code) and never by code alone. One row holds every fact about a
code; all other tables in the project are derived from these rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module

import msgspec

from amends.core.enums import Actor, Executed, Recovery

__all__ = [
    "APP",
    "EVERYDAY",
    "Row",
    "Vocabulary",
    "is_registered",
    "names",
    "register",
    "row_for",
    "vocabulary",
]

EVERYDAY = "everyday"
"""The small set for producers that are not bound to a protocol."""
APP = "app"
"""Codes that users define, one exception class each."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """Every fact about one code."""

    code: str
    recovery: Recovery
    everyday: str
    """The nearest code of the everyday set. Translations go through it."""
    message: str
    """What happened, for people. Used if the producer gives no message."""
    suggestion: str
    """What the caller can do about it, in general terms (A19: no thresholds, no identifiers)."""
    user_message: str
    """The message for the end user; `{name}` is replaced by the name of the missing or failing thing."""
    executed: Executed = Executed.MAYBE
    actor: Actor = Actor.CALLER
    status: int | None = None
    """HTTP status; None: that of the everyday code."""
    exit: int | None = None
    """Exit code in the default profile; None: that of the everyday code."""
    jsonrpc: int | None = None
    """JSON-RPC error code, for rejections before dispatch."""
    wait: float | None = None
    """Seconds to wait before the first retry if the sender names none; None: the policy's backoff."""
    category: str | None = None
    """The category of a task error (S3), which decides its retry policy."""
    qualifier: str | None = None
    """What has to be done before a retry can help: setup, reauth, wait."""
    alias: str | None = None
    """The current code, if this one is deprecated."""
    adcp_code: str | None = None
    """The AdCP code of a user's own code: X_{VENDOR}_{CODE} (A15)."""

    def actor_under(self, recovery: Recovery) -> Actor:
        """
        Return who has to act, for a recovery class that may differ from the row's.

        The caller acts on failures that a program can solve. It cannot act on terminal ones, so the operator does.
        """
        if recovery is self.recovery:
            return self.actor
        if recovery is Recovery.TERMINAL:
            return Actor.OPERATOR if self.actor is Actor.CALLER else self.actor
        return Actor.CALLER

    def suggestion_under(self, recovery: Recovery) -> str:
        """
        Return what the caller can do, for a recovery class that may differ from the row's.

        "Try again later" is no advice for a failure that no repeat helps. What is asked for in a terminal row, such as more
        rights, is what has to change where the failure is correctable; one careful repeat fits "transient" too.
        """
        fits = recovery is self.recovery or (self.recovery, recovery) in _COMPATIBLE
        return self.suggestion if fits else _STEPS[recovery]

    def user_message_under(self, recovery: Recovery) -> str:
        """Return the message for the end user; it does not ask for another try where no repeat helps."""
        invites = self.recovery in {Recovery.TRANSIENT, Recovery.UNCERTAIN}
        return _INSTEAD.get(recovery, self.user_message) if invites else self.user_message


_COMPATIBLE = frozenset({(Recovery.TERMINAL, Recovery.CORRECTABLE), (Recovery.UNCERTAIN, Recovery.TRANSIENT)})
_STEPS = {
    Recovery.TRANSIENT: "Try again later, waiting longer each time",
    Recovery.CORRECTABLE: "Change the request before it is sent again",
    Recovery.TERMINAL: "Do not repeat it; report it to the operator of the service",
    Recovery.UNCERTAIN: "Find out whether it took effect, then try once more where a repeat is safe",
}
"""What a caller can do in general, by the recovery class."""
_INSTEAD = {
    Recovery.CORRECTABLE: "That didn't work as it was asked for. Please change it first.",
    Recovery.TERMINAL: "That didn't work, and another try won't help. Please report it.",
}
"""The messages for the end user where those of the row ask for another try."""


class Vocabulary(msgspec.Struct, frozen=True, kw_only=True):
    """The codes of one specification, and the row for unknown codes."""

    name: str
    title: str
    rows: Mapping[str, Row]
    unknown: Row
    by_status: Mapping[int, Row] = {}
    """Rows by HTTP status, for a vocabulary that has them."""

    def row(self, code: str, status: int | None = None) -> Row:
        """Return the row of `code`; for an unknown code the row of its status, or the default."""
        found = self.rows.get(code)
        if found is None:
            found = self.status_row(status) if status is not None and self.by_status else self.unknown
        return found

    def status_row(self, status: int) -> Row:
        """Return the row of an HTTP status. Other 4xx count as 400, every other unknown status as 500."""
        return self.by_status.get(status) or self.by_status[400 if 400 <= status < 500 else 500]


def table(rows: Iterable[Row]) -> dict[str, Row]:
    """Index rows by their code."""
    return {row.code: row for row in rows}


# Imported on first use, so that a program without AdCP does not load its 120 codes.
_MODULES = {
    name: f"amends.core.vocabularies.{name}"
    for name in (EVERYDAY, "http", "cli", "task", "adcp", "arcp", APP)
}
_LOADED: dict[str, Vocabulary] = {}


def names() -> tuple[str, ...]:
    """Return the names of all vocabularies, built-in and registered."""
    return tuple(dict.fromkeys((*_MODULES, *_LOADED)))


def vocabulary(name: str) -> Vocabulary:
    """
    Return the vocabulary called `name`.

    Raises:
        LookupError: if there is none; the message lists the names.

    """
    found = _LOADED.get(name)
    if found is None:
        if name not in _MODULES:
            raise LookupError(f"no vocabulary {name!r}; there are {', '.join(names())}")
        found = import_module(_MODULES[name]).VOCABULARY
        _LOADED[name] = found
    return found


def register(new: Vocabulary) -> None:
    """Add your own vocabulary (a provider's, an organisation's). Built-in ones cannot be replaced."""
    if new.name in _MODULES:
        raise ValueError(f"{new.name!r} is built in; choose another name for your vocabulary")
    _LOADED[new.name] = new


def is_registered(code: str) -> bool:
    """
    Return whether the application has defined a class with this code, which the everyday set does not have.

    >>> is_registered("RATE_LIMITED")
    False
    """
    return code not in vocabulary(EVERYDAY).rows and code in vocabulary(APP).rows


def row_for(name: str, code: str, status: int | None = None) -> Row:
    """Return the row of (vocabulary, code); for an unregistered vocabulary, the row of the everyday set."""
    home = _LOADED.get(name)
    if home is None:
        home = vocabulary(name if name in _MODULES else EVERYDAY)
    return home.row(code, status)
