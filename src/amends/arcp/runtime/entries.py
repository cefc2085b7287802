"""
What a runtime writes into a store: the entries of its logs, the rows of its tables, and their names.

A job's log is the truth about the job. Every entry says in which run, under which epoch and by which node it was
written, so that the newest entry alone tells how the job stands. Everything else that is kept is derived from it, or
points into it.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from typing import Any, Literal

import msgspec

from amends.arcp.runtime.agents import Offer

__all__ = [
    "ACTIVE",
    "CANCELS",
    "CONTROL",
    "CREDENTIALS",
    "FRAME_TYPES",
    "JOBS",
    "KEYS",
    "NODES",
    "SESSIONS",
    "Control",
    "JobEntry",
    "JobSpec",
    "KeyRow",
    "Kind",
    "NodeRow",
    "SessionEntry",
    "SessionRow",
    "Summary",
    "digest",
    "encode",
    "job_log",
    "key_name",
    "queue_of",
    "session_log",
]

ACTIVE, JOBS, KEYS = "arcp.active", "arcp.jobs", "arcp.keys"
SESSIONS, NODES, CREDENTIALS, CANCELS = "arcp.sessions", "arcp.nodes", "arcp.credentials", "arcp.cancels"
CONTROL = "arcp.nodes/control"

Kind = Literal["accepted", "annulled", "queued", "requeued", "started", "child", "event", "result", "error"]

FRAME_TYPES: dict[str, str] = {"event": "job.event", "result": "job.result", "error": "job.error"}
"""The entries a client sees, and as which message; the others are the runtime's own."""

_TERMINAL = frozenset({"result", "error"})

encode = msgspec.json.Encoder().encode


def job_log(job_id: str) -> str:
    """The log of a job."""
    return f"arcp.job/{job_id}"


def session_log(session_id: str) -> str:
    """The log of what a session was sent."""
    return f"arcp.session/{session_id}"


def queue_of(agent: str) -> str:
    """The queue of an agent (`name@version`)."""
    return f"arcp.run.{agent}"


@lru_cache(maxsize=1024)
def digest(principal: str) -> str:
    """A principal in a key of a table: of fixed length, and without its characters."""
    return sha256(principal.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def key_name(principal: str, key: str) -> str:
    """An idempotency key in its table: one principal's keys are not another's, and none can be read back."""
    return sha256(f"{principal}\0{key}".encode("utf-8", "surrogatepass")).hexdigest()


class JobSpec(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What was asked for. The first entry of a job's log holds it, and it never changes."""

    job_id: str
    principal: str
    session: str
    agent: str
    """`name@version`, resolved once and for all."""
    created: float
    trace: str
    input: Any = None
    grants: dict[str, tuple[str, ...]] = {}
    expires_at: float | None = None
    key: str | None = None
    """The row in the table of keys, not the key itself."""
    fingerprint: str = ""
    max_runtime: float | None = None
    parent: str | None = None
    delegate: str | None = None
    repeatable: bool = False


class JobEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An entry of a job's log."""

    kind: str
    run: int
    epoch: int
    node: str
    """Who works on it; empty while it waits in the queue."""
    at: float
    payload: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def ended(self) -> bool:
        """Whether the run is over."""
        return self.kind in _TERMINAL

    @property
    def again(self) -> bool:
        """Whether a run that was begun waits to be begun once more."""
        return self.kind == "requeued"


class Summary(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A job as a listing shows it: under its node while it is active, under its principal when it has ended."""

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


class KeyRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Which job a key stands for, and for which request."""

    job_id: str
    fingerprint: str


class SessionRow(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Who may resume a session. Tokens are kept as digests only."""

    principal: str
    token: bytes
    previous: bytes | None = None
    """The token before, until the client has shown that it received the new one."""
    features: tuple[str, ...] = ()
    epoch: int = 1
    node: str = ""


class SessionEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """
    An entry of a session's log: events in the order they were numbered, each pointing into its job's log.

    `feeds` is there in snapshots only: all jobs the session listens to, so that what came before can be trimmed.
    """

    first: int
    """The number of the first event here; of the next one, where there is none."""
    events: tuple[tuple[str, int, bool], ...] = ()
    """Job, number in its log, and whether it is the job's last."""
    attached: tuple[tuple[str, int, int], ...] = ()
    """Job, number in its log to go on from, and how (see `feeds`)."""
    detached: tuple[str, ...] = ()
    feeds: tuple[tuple[str, int, int], ...] | None = None


class NodeRow(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A node that is alive, and what it can run."""

    name: str
    started: float
    agents: tuple[Offer, ...] = ()
    running: int = 0
    room: int = 0
    """How many it runs at most."""
    sessions: int = 0
    draining: bool = False
    ended: dict[str, int] = {}
    """Jobs that ended here since it started: by code of their error, those that succeeded under ""."""
    busy: dict[str, int] = {}
    """Jobs of the principals who have the most here; see `quota`."""


class Control(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A word to whichever node has the job."""

    cancel: str
    reason: str | None = None
