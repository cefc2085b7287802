"""Every limit of a runtime in one table."""

from __future__ import annotations

import msgspec

from amends.core.named_options import NamedOptions

__all__ = ["Limits"]

_MIB = 1024 * 1024


class Limits(msgspec.Struct, frozen=True, kw_only=True, metaclass=NamedOptions):
    """
    The limits of one runtime. Times are in seconds, sizes in bytes.

    >>> Limits(running=50, resume_window=3600).heartbeat
    30.0
    """

    # -- handshakes
    hello_timeout: float = 5.0
    """A connection that has not sent its hello within this time is closed."""
    authentication_timeout: float = 30.0
    """How long the check of a hello may take, with everything that `authenticate` does."""
    handshakes: int = 1_024
    """Connections without a session; beyond it, a new one replaces the oldest that has not sent its hello."""
    handshakes_per_address: int = 512
    """The same for one address."""

    # -- sessions
    sessions_per_principal: int = 1_000
    """Attached and resumable sessions of one principal on this node; beyond it the oldest detached one is deleted."""
    resume_window: float = 600.0
    """How long a session without a connection can be resumed."""
    events_kept: int = 10_000
    """Events of one session that are kept for replay if the client acknowledges none; older ones are deleted."""
    unacknowledged: int = 1_000
    """Events that a client which acknowledges may have open; beyond it a job reports the status `back_pressure`."""
    heartbeat: float = 30.0
    """After two of these intervals without a message the connection is closed; the session can be resumed."""
    buffered: int = 256
    """Messages queued for one connection; at this number its requests and the agents that write to it wait."""
    buffered_bytes: int = 4 * _MIB
    """The same limit in bytes."""
    send_timeout: float = 30.0
    """If the client has not accepted a message within this time, the connection is closed; the session is resumable."""

    # -- jobs
    jobs_per_principal: int = 1_000
    """Unfinished jobs of one principal, also delegated ones, on all nodes that share the store; see `quota`."""
    running: int = 1_000
    """Jobs that this node runs at the same time; further ones wait in their queue, delegated ones are refused."""
    delegation_depth: int = 16
    """How many delegations may follow each other: a submitted job has depth 0, its delegated jobs 1, and so on."""
    jobs_per_root: int = 1_000
    """Jobs that one submitted job may delegate in all, directly and indirectly, over its whole life."""
    max_runtime: float | None = None
    """The longest run of any job, whatever its submission requests."""
    cancel_grace: float = 30.0
    """How long an agent may clean up after it was cancelled. Then the job ends, even if the agent still runs."""
    events_per_job: int = 100_000
    """Events of one job; a job that exceeds it fails."""
    event_bytes: int = _MIB
    """The size of one event."""
    result_bytes: int = _MIB
    """The size of a result that is returned; larger results have to be streamed."""
    chunk_bytes: int = 256 * 1024
    """The size of one chunk of a streamed result; larger writes are split."""
    streamed_bytes: int = 1024 * _MIB
    """The size of all chunks of one result."""
    step_bytes: int = 512 * 1024
    """The size of the result of one step; NATS has a limit of 1 MB for a message."""
    signals_per_job: int = 1_000
    """Signals of one job that are stored; further ones are refused."""
    signals_for: float = 30 * 86_400.0
    """How long a signal is stored."""

    # -- ended jobs
    finished_for: float = 3_600.0
    """How long an ended job is kept and can be listed."""
    finished: int = 10_000
    """How many ended jobs without an idempotency key are kept; the oldest are deleted first."""
    key_window: float = 86_400.0
    """How long an idempotency key is kept after its job has ended."""
    keyed: int = 100_000
    """How many ended jobs with an idempotency key are kept; the oldest are deleted first."""

    # -- several nodes
    node_lease: float = 30.0
    """A node that has not renewed its row within this time is considered dead, and its jobs are taken over."""
    drain: float = 30.0
    """How long running jobs may continue when the runtime stops."""
