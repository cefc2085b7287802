"""`Event`: one thing that happened to a failure, as it is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from amends.core.decision import Decision
from amends.core.fault import Fault

__all__ = [
    "ENDS",
    "OUTCOMES",
    "WHERE",
    "Event",
    "decode_events",
    "encode_event",
    "encode_events",
    "join_events",
]

WHERE: Mapping[str, str] = {
    "http server": "an HTTP application answered with a problem",
    "http client": "an HTTP client read a failed response or no response",
    "command line": "a command ended with a failure",
    "run": "`amends run`, or `amends.process`, ran a command that failed",
    "mcp server": "an MCP server answered with an error",
    "mcp client": "an MCP client read an error",
    "a2a server": "an A2A agent answered with an error",
    "a2a client": "an A2A client read an error",
    "arcp runtime": "an ARCP job ended with an error",
    "arcp client": "an ARCP client read an error",
    "tasks": "an agent task failed, or one of its attempts",
    "effects": "the ledger of effects met a failure or a doubt",
    "gateway": "the gateway read a failure of an upstream, or refused a call",
    "call": "`recover` called a function that failed",
    "recorder": "the recorder itself: events were lost",
}
"""The values of `Event.where`."""

OUTCOMES: Mapping[str, str] = {
    "retry": "another try follows",
    "queued": "the call waits for its turn at the service",
    "refresh": "the credentials are renewed",
    "setup": "what was missing is set up",
    "verify": "it is checked whether the call had its effect",
    "fix": "the request is changed",
    "fallback": "an alternative is used",
    "recovered": "a later try succeeded",
    "gave-up": "the failure was raised to the caller",
    "sent": "the failure was sent to the caller",
    "passed-on": "the gateway passed the answer on unchanged",
    "refused": "the call was refused and not sent on",
    "failed": "the job or task ended with this failure",
    "doubt": "it is unknown whether the effect happened",
    "lost": "events were dropped, because they could not be written",
}
"""The values of `Event.outcome`."""

ENDS = frozenset({"recovered", "gave-up", "fallback", "sent", "passed-on", "refused", "failed", "doubt"})
"""The outcomes that end the handling of a failure in one process."""


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    One thing that happened to a failure. Redacted and bounded in size.

    >>> event = Event(at=0.0, where="http server", outcome="sent", fault=Fault(code="TIMEOUT"), trace_id="4bf9")
    >>> event.fault.code, event.succeeded
    ('TIMEOUT', False)
    """

    at: float
    """When, in seconds since 1970."""
    where: str
    """The binding: a key of WHERE."""
    outcome: str
    """What became of it: a key of OUTCOMES."""
    fault: Fault
    """The failure, redacted. Its `trace_id` is the one that the failing service named, if it named one."""
    trace_id: str = ""
    """The trace that the call belongs to in this process."""
    name: str = ""
    """What was asked for: method and path, tool, agent, command or operation."""
    method: str = ""
    url: str = ""
    """The address that was called, without user, query and fragment."""
    upstream: str = ""
    """The service that failed, by the name of its Upstream or of the gateway's configuration."""
    vendor: str = ""
    decision: Decision | None = None
    """What was decided about this try."""
    attempt: int = 1
    """The tries made so far."""
    elapsed: float | None = None
    """Seconds since the first try began."""
    wait: float | None = None
    """Seconds that are waited before the next try, or were waited."""
    status: int | None = None
    """The HTTP status that was sent to the caller."""
    sent: str = ""
    """The code that was sent to the caller, if it is another one."""
    process: str = ""
    """The program and its process id."""
    count: int = 1
    """How many equal things this event counts: the lost events."""
    facts: dict[str, Any] = {}
    """Further facts of the binding, plain and redacted."""
    id: str = ""
    """The position in the store, set by the reader: `12.0` is the first event of entry 12."""

    @property
    def succeeded(self) -> bool:
        """Whether the call had a result in the end."""
        return self.outcome in {"recovered", "fallback"}

    def has_trace(self, trace: str) -> bool:
        """Return whether the event belongs to a trace, whose id may be cut at its end."""
        return self.trace_id.startswith(trace) or (self.fault.trace_id or "").startswith(trace)


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(list[Event])


def encode_events(events: list[Event]) -> bytes:
    """Return events as one entry of the store."""
    return _encoder.encode(events)


def encode_event(event: Event) -> bytes:
    """Return one event of an entry, for `join_events`."""
    return _encoder.encode(event)


def join_events(encoded: list[bytes]) -> bytes:
    """Return encoded events as one entry of the store."""
    return b"[" + b",".join(encoded) + b"]"


def decode_events(entry: bytes, seq: int) -> list[Event]:
    """Return the events of an entry with their ids; none if the entry is not one of a recorder."""
    try:
        events = _decoder.decode(entry)
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
        return []
    return [msgspec.structs.replace(event, id=f"{seq}.{index}") for index, event in enumerate(events)]
