"""
The entries, rows and names that a runtime writes to a store.

A job's log is authoritative for the job. Every entry contains the run, the epoch and the node that wrote it, so the
newest entry alone determines the job's state. Tables and session logs are derived from job logs or refer to them.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256

import msgspec

from amends.arcp.runtime.agents import Offer

__all__ = [
    "ACTIVE",
    "CANCELS",
    "CONTINUED",
    "CONTROL",
    "CREDENTIALS",
    "FAMILIES",
    "FRAME_TYPES",
    "JOBS",
    "KEYS",
    "NODES",
    "SESSIONS",
    "SIGNALS",
    "STREAMED",
    "Control",
    "JobEntry",
    "JobSpec",
    "NodeRow",
    "SessionEntry",
    "SessionRow",
    "Summary",
    "digest",
    "encode",
    "job_log",
    "queue_of",
    "session_log",
]

ACTIVE, JOBS, KEYS = "arcp.active", "arcp.jobs", "arcp.keys"
SESSIONS, NODES, CREDENTIALS, CANCELS = "arcp.sessions", "arcp.nodes", "arcp.credentials", "arcp.cancels"
CONTROL = "arcp.nodes/control"
FAMILIES = "arcp.families"
SIGNALS = "arcp.signals"

FRAME_TYPES: dict[str, str] = {"event": "job.event", "result": "job.result", "error": "job.error"}
"""Message types of the entries that are sent to clients; entries of other kinds are internal."""

CONTINUED = "continued"
"""The label of the entry that begins a run which continues the steps of the one before, because a question was answered."""

STREAMED = "streamed"
"""The label of the terminal entry of a run whose result was sent in chunks."""

_TERMINAL = frozenset({"result", "error"})

encode = msgspec.json.Encoder().encode


def job_log(job_id: str) -> str:
    """Return the name of a job's log."""
    return f"arcp.job/{job_id}"


def session_log(session_id: str) -> str:
    """Return the name of the log of a session's events."""
    return f"arcp.session/{session_id}"


def queue_of(agent: str) -> str:
    """Return the name of the queue of an agent (`name@version`)."""
    return f"arcp.run.{agent}"


@lru_cache(maxsize=1024)
def digest(principal: str) -> str:
    """Return a digest of a principal for use in table keys: of fixed length and a safe alphabet."""
    return sha256(principal.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class JobSpec(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a submission requested. The first entry of a job's log holds it, and it never changes."""

    job_id: str
    principal: str
    session: str
    agent: str
    """The agent as `name@version`; the version is resolved at submission."""
    created: float
    trace: str
    input: object = None
    grants: dict[str, tuple[str, ...]] = {}
    expires_at: float | None = None
    key: str | None = None
    """The key of the row in the `KEYS` table, not the idempotency key itself."""
    fingerprint: str = ""
    max_runtime: float | None = None
    parent: str | None = None
    root: str | None = None
    """The submitted job from which this one was delegated, directly or indirectly."""
    depth: int = 0
    """How many delegations are between the root and this job."""
    delegate: str | None = None
    repeatable: bool = False
    left: str | None = None
    """What the submitter had left (`amends.recovery.incoming`)."""


class JobEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An entry of a job's log."""

    kind: str
    """accepted, annulled, queued, requeued, started, child, event, result, error, or that of a step (`jobs.steps.KINDS`)."""
    run: int
    epoch: int
    node: str
    """The node that runs the job; empty while the job waits in its queue."""
    at: float
    payload: msgspec.Raw = msgspec.Raw(b"null")
    label: str = ""
    """The kind of an event (`log`, `metric`, …), `STREAMED` for the end of a streamed result, or `CONTINUED`."""

    @property
    def ended(self) -> bool:
        """Whether this entry ends a run."""
        return self.kind in _TERMINAL

    @property
    def requeued(self) -> bool:
        """Whether a run that had started is waiting in the queue to be started again."""
        return self.kind == "requeued"


class Summary(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A job in a listing; stored under its node while it is active and under its principal after its end."""

    job_id: str
    principal: str
    session: str
    agent: str
    status: str
    created: float
    trace: str
    grants: dict[str, tuple[str, ...]] = {}
    expires_at: float | None = None
    parent: str | None = None
    key: str | None = None
    run: int = 1
    ended: float = 0.0
    last: int = 0


class SessionRow(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The owner of a session and the digests of its resume tokens."""

    principal: str
    token: bytes
    previous: bytes | None = None
    """The previous token's digest, until the client has sent a message after receiving the new token."""
    features: tuple[str, ...] = ()
    epoch: int = 1
    node: str = ""


class SessionEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """
    An entry of a session's log: events in the order of their numbers, each a reference into a job's log.

    Only snapshots have `feeds`: all jobs that the session is subscribed to, so that older entries can be trimmed.
    """

    first: int
    """The number of the first event in this entry, or of the next event if it has none."""
    events: tuple[tuple[str, int, bool], ...] = ()
    """Job id, entry number in the job's log, and whether that entry is the job's last."""
    attached: tuple[tuple[str, int, int], ...] = ()
    """Job id, entry number in its log to continue from, and mode (see the module `feeds`)."""
    detached: tuple[str, ...] = ()
    feeds: tuple[tuple[str, int, int], ...] | None = None


class NodeRow(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A live node, its agents and its counters."""

    name: str
    started: float
    agents: tuple[Offer, ...] = ()
    running: int = 0
    room: int = 0
    """How many jobs it runs at most."""
    sessions: int = 0
    draining: bool = False
    ended: dict[str, int] = {}
    """Jobs that ended on this node since its start, by error code; successful jobs under ""."""
    busy: dict[str, int] = {}
    """Running jobs per principal, for principals with many jobs here; see `quota`."""


class Control(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A request to the node that runs a job, written to the `CONTROL` log."""

    cancel: str = ""
    reason: str | None = None
    signal: str = ""
    """The job to which a signal was sent."""
