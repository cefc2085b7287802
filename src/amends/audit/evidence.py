"""What was done to a command line and what came back: everything a score stands on."""

from __future__ import annotations

from typing import Any

import msgspec

from amends.core.wire import TOO_DEEP, Unreadable
from amends.core.wire import read as read_json
from amends.dialects.envelope import error_of

__all__ = ["PERMANENT", "RETRYABLE", "Evidence", "Observation", "Request"]

RETRYABLE = ("429", "503", "drop")
"""Failures after which the same call may succeed."""
PERMANENT = ("unknown-command", "unknown-flag", "near-miss", "401", "404", "422")
"""Failures that stay as long as the call does."""


class Request(msgspec.Struct, frozen=True):
    """One request the fixture saw."""

    method: str
    path: str
    at: float
    """Seconds since the probe began."""


class Observation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run of the command."""

    probe: str
    argv: list[str]
    exit: int | None
    stdout: str
    stderr: str
    signal: str | None = None
    timed_out: bool = False
    """It was ended by the audit."""
    seconds: float = 0.0
    requests: list[Request] = []
    fixture: bool = False
    """The loopback server was there to be asked."""

    @property
    def triggered(self) -> bool:
        """Whether what the probe is about happened at all."""
        return not self.fixture or bool(self.requests)

    @property
    def document(self) -> Any:
        """The one JSON document stdout is; None when it is anything else."""
        text = self.stdout.strip()
        try:
            value = read_json(text) if text[:1] in {"{", "["} else None
        except Unreadable:
            return None
        return None if value is TOO_DEEP else value

    @property
    def error(self) -> dict[str, Any] | None:
        """The error object of the envelope on stdout, or on stderr where stdout is empty."""
        for text in (self.stdout, self.stderr if not self.stdout.strip() else ""):
            try:
                found = error_of(read_json(text.strip())) if text.strip()[:1] == "{" else None
            except Unreadable:
                continue
            if found is not None:
                return found
        return None

    @property
    def meta(self) -> dict[str, Any]:
        """The envelope's meta; empty when there is none."""
        found = self.document.get("meta") if isinstance(self.document, dict) else None
        return found if isinstance(found, dict) else {}


class Evidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything seen of one command line; scoring it needs nothing else, so it can be done again later."""

    command: list[str]
    observations: list[Observation]
    network: str
    """How the network was kept away, or that it was not."""
    retry_after: float
    """Seconds the fixture's 429 asked for."""
    json_way: list[str] = []
    """The words that make it speak JSON; empty when none were found."""

    def seen(self, *probes: str) -> list[Observation]:
        """The observations of these probes, those that did not happen left out."""
        return [one for one in self.observations if one.probe in probes and one.triggered]
