"""What a client is told once: bounds on waiting, on memory, and on going back to a lost session."""

from __future__ import annotations

import msgspec

from amends.arcp.wire import FEATURES
from amends.core.backoff import Backoff
from amends.core.policy import Policy

__all__ = ["Settings"]

RESUMING = Policy(attempts=None, max_wait=120.0, backoff=Backoff(first=0.1, cap=5.0))


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of a client. Seconds and bytes."""

    name: str = "amends"
    """What we call ourselves in `session.hello`."""
    features: tuple[str, ...] = FEATURES
    """What we offer; what is used is what the runtime offers too."""
    connect_timeout: float = 10.0
    """From dialling to the welcome."""
    request_timeout: float = 30.0
    """From a request to its answer, a resumption in between included."""
    auto_resume: bool = True
    """Go back to a lost session by itself. Without it, `client.resume()` does, within the window."""
    resuming: Policy = RESUMING
    """How often and how long to try; the runtime's window bounds it too."""
    buffer: int = 1024
    """Events kept per job for whoever iterates, now or later."""
    buffer_bytes: int = 16 * 1024 * 1024
    """The same in bytes of frames."""
    patience: float = 10.0
    """How long a slow iterator may hold up the connection before it is told that it missed events."""
    max_result: int = 64 * 1024 * 1024
    """Bytes of a result that comes in chunks."""
