"""The evidence of an audit: the probes that were run, and what each produced."""

from __future__ import annotations

import msgspec

from amends.core.wire import TOO_DEEP, Unreadable
from amends.core.wire import read as read_json
from amends.dialects.envelope import error_of

__all__ = ["PERMANENT", "RETRYABLE", "Evidence", "Observation", "Request"]

RETRYABLE = ("429", "503", "drop")
"""Probes whose failure a retry of the same call may resolve."""
PERMANENT = ("unknown-command", "unknown-flag", "near-miss", "401", "404", "422")
"""Probes whose failure a retry of the same call cannot resolve."""


class Request(msgspec.Struct, frozen=True):
    """One request that the fixture received."""

    method: str
    path: str
    at: float
    """Seconds since the start of the probe."""


class Observation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    One run of the command.

    `observe` makes one per probe. Read it to see what the command wrote.

    >>> run = Observation(probe="unknown-flag", argv=["tool", "--x"], exit=2, stdout='{"code": "USAGE"}', stderr="")
    >>> run.document, run.output_bytes
    ({'code': 'USAGE'}, 17)
    """

    probe: str
    argv: list[str]
    exit: int | None
    stdout: str
    stderr: str
    signal: str | None = None
    timed_out: bool = False
    """The audit terminated it."""
    seconds: float = 0.0
    requests: list[Request] = []
    fixture: bool = False
    """The loopback server was running."""
    written: int | None = None
    """Bytes of both streams, if more was written than was kept here."""

    @property
    def triggered(self) -> bool:
        """Whether the failure of the probe occurred: if it needs the fixture, whether a request reached it."""
        return not self.fixture or bool(self.requests)

    @property
    def output_bytes(self) -> int:
        """The bytes of both streams: what a model that runs the command reads."""
        if self.written is not None:
            return self.written
        return len(self.stdout.encode("utf-8", "replace")) + len(self.stderr.encode("utf-8", "replace"))

    @property
    def document(self) -> object:
        """The JSON document on stdout; None if stdout is not exactly one document."""
        text = self.stdout.strip()
        try:
            value = read_json(text) if text[:1] in {"{", "["} else None
        except Unreadable:
            return None
        return None if value is TOO_DEEP else value

    @property
    def error(self) -> dict[str, object] | None:
        """The error object of the envelope on stdout, or on stderr if stdout is empty."""
        for text in (self.stdout, self.stderr if not self.stdout.strip() else ""):
            try:
                found = error_of(read_json(text.strip())) if text.strip()[:1] == "{" else None
            except Unreadable:
                continue
            if found is not None:
                return found
        return None

    @property
    def meta(self) -> dict[str, object]:
        """The envelope's meta; empty if there is none."""
        found = self.document.get("meta") if isinstance(self.document, dict) else None
        return found if isinstance(found, dict) else {}


class Evidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    All observations of one command line. `score` needs nothing else, so stored evidence can be scored again.

    `observe` makes it. Store it as JSON to score it later, without running the command again.

    >>> seen = Evidence(command=["tool"], observations=[], network="not enforced", retry_after=2.0)
    >>> msgspec.json.decode(msgspec.json.encode(seen), type=Evidence) == seen
    True
    """

    command: list[str]
    observations: list[Observation]
    network: str
    """How the network was cut off, or that it was not."""
    retry_after: float
    """Seconds in the Retry-After header of the fixture's 429."""
    json_flags: list[str] = []
    """The arguments that select JSON output; empty if none were found."""

    def triggered(self, *probes: str) -> list[Observation]:
        """Return the observations of these probes whose failure occurred."""
        return [one for one in self.observations if one.probe in probes and one.triggered]
