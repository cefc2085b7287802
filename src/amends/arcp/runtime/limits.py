"""Every bound of a runtime in one table: what a client, an agent or a dead node can make it hold is on this page."""

from __future__ import annotations

import msgspec

__all__ = ["Limits"]

_MIB = 1024 * 1024


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of one runtime. Times are seconds, sizes bytes."""

    # -- before anybody is known
    hello_timeout: float = 10.0
    """A connection that has not said a valid hello by then is closed."""
    strangers: int = 256
    """Connections waiting for their hello at once; a further one is closed unheard."""

    # -- sessions
    sessions_per_principal: int = 1_000
    """Attached and resumable sessions of one principal on this node. The oldest that is not attached goes first."""
    resume_window: float = 600.0
    """How long a session without a connection can be resumed."""
    events_kept: int = 10_000
    """Events of one session that can be replayed when nothing is acknowledged; older ones are forgotten."""
    heartbeat: float = 30.0
    """Two of these without a word end a connection; the session stays resumable."""
    buffered: int = 256
    """Messages waiting for one connection before agents that write to it are slowed, and its requests wait."""
    buffered_bytes: int = 4 * _MIB
    """The same in bytes."""
    send_timeout: float = 30.0
    """One message that its reader has not taken by then ends the connection; the session stays resumable."""

    # -- jobs
    jobs_per_principal: int = 1_000
    """Accepted jobs of one principal that have not ended, on all nodes that share the store: see `quota`."""
    running: int = 1_000
    """Jobs this node runs at once; others wait in the queue."""
    max_runtime: float | None = None
    """The longest run of any job, whatever it asks for."""
    cancel_grace: float = 30.0
    """How long an agent may clean up after it was told to stop. Then the job has ended, whatever the agent does."""
    events_per_job: int = 100_000
    """Events of one job; it fails beyond them."""
    event_bytes: int = _MIB
    """One event."""
    result_bytes: int = _MIB
    """A result returned whole; larger ones are streamed."""
    chunk_bytes: int = 256 * 1024
    """One chunk of a streamed result; larger writes are cut."""
    streamed_bytes: int = 1024 * _MIB
    """All chunks of one result together."""

    # -- what is kept when a job has ended
    finished_for: float = 3_600.0
    """How long it can be looked at."""
    finished: int = 10_000
    """How many of those without a key; the oldest go first."""
    key_window: float = 86_400.0
    """How long a key stands for its job after that has ended."""
    keyed: int = 100_000
    """How many ended jobs with a key; the oldest go first."""

    # -- many nodes
    node_lease: float = 30.0
    """A node that has not said so for that long is dead, and its jobs are taken over."""
    drain: float = 30.0
    """How long running jobs may go on when the runtime stops."""
