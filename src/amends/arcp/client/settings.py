"""The settings of a client: limits on waiting, on memory, and on resuming a lost session."""

from __future__ import annotations

import msgspec

from amends.arcp.wire import FEATURES, STEPS
from amends.core.backoff import Backoff
from amends.core.named_options import NamedOptions
from amends.core.policy import Policy

__all__ = ["Settings"]

RESUMING = Policy(attempts=None, max_wait=120.0, backoff=Backoff(first=0.1, cap=5.0))


class Settings(msgspec.Struct, frozen=True, kw_only=True, metaclass=NamedOptions):
    """
    Limits of a client, in seconds and bytes. `connect` also takes its members as arguments.

        patient = Settings(request_timeout=120, busy_timeout=300)
        async with connect("wss://host/arcp", token="...", settings=patient) as client:
            ...
    """

    own: bool = False
    """The runtime is part of our own system: a server that calls it passes its failures on as they were raised."""
    name: str = "amends"
    """The client's name in `session.hello`."""
    features: tuple[str, ...] = (*FEATURES, STEPS)
    """The features to offer; those that the runtime offers too are used."""
    connect_timeout: float = 10.0
    """From connecting to the welcome."""
    busy_timeout: float = 30.0
    """How long `connect` tries again while the runtime has too many connections (WebSocket close code 1013)."""
    request_timeout: float = 30.0
    """From a request to its answer, including a resumption in between."""
    auto_resume: bool = True
    """Resume a lost session automatically. If False, `client.resume()` does it, within the window."""
    resuming: Policy = RESUMING
    """How often and how long to try to resume; the runtime's window is a limit too."""
    buffer: int = 1024
    """Events kept per job for its iterators."""
    buffer_bytes: int = 16 * 1024 * 1024
    """The same in bytes of frames."""
    slow_reader_timeout: float = 10.0
    """How long a slow iterator may block the connection before it misses events."""
    max_result: int = 64 * 1024 * 1024
    """The largest result that comes in chunks, in bytes."""
