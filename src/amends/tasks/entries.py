"""
The records of a task's log, in the order in which things happened. A task's state and its row are derived from its log.

An entry of the log is a JSON array of records, which are written together. `at` is wall-clock time. Any process that can write to
the store may append the records in COMMANDS; only the worker that holds the task appends the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from amends.core.decision import Decision
from amends.core.fault import Fault
from amends.effects.steps import StepKind, StepRecord
from amends.tasks.plan import Step

__all__ = [
    "COMMANDS",
    "Answered",
    "Asked",
    "Cancelled",
    "Delegated",
    "Doubted",
    "Effect",
    "Ended",
    "Failed",
    "Finished",
    "Parked",
    "Record",
    "Released",
    "Repaired",
    "Retried",
    "Started",
    "Stepped",
    "Submitted",
    "Taken",
    "Undoing",
    "Verified",
    "decode",
    "encode",
]


class _Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="what", tag=str.lower):
    at: float


class Submitted(_Record, frozen=True, kw_only=True):
    """The task was submitted."""

    id: str
    type: str
    steps: tuple[Step, ...]
    single: bool = True
    """Whether the task is one step whose result is the task's, or a plan whose results have the steps' names."""
    agent: str | None = None
    retry_policy: dict[str, object] | None = None
    until: float | None = None
    """The deadline."""
    key: str | None = None
    promises: dict[str, str] | None = None
    """What the submitting process knew about repeating each step; see `Started.promises`."""
    trace: str | None = None
    """The W3C `traceparent` of the submission."""
    tries: int | None = None
    """The calls that the submitter had left, for all layers together."""


class Taken(_Record, frozen=True, kw_only=True):
    """A worker runs the task: for longer than a tick, or after another worker that did not finish."""

    worker: str
    message: str | None = None
    """The key of the message that the worker holds the task by; None: the task's id."""
    takeover: bool = False
    alone: bool = False
    """Whether the worker runs nothing else meanwhile, because workers were lost while running this task."""
    promises: dict[str, str] | None = None
    """What this worker's code declares about repeating each step."""


class Started(_Record, frozen=True, kw_only=True):
    """Written before a step or a delegation starts that must not happen twice, and before each attempt to undo a step."""

    step: str
    attempt: int
    undo: bool = False
    promises: str = ""
    """What the code declared about repeating the call: `Capability.promises`."""
    version: str | None = None
    """The version of the agent's code."""
    agent: str | None = None
    type: str | None = None
    payload: object = None
    """For a delegation, which is not part of the plan: what was called, and with what."""


class Failed(_Record, frozen=True, kw_only=True):
    """An attempt of a step failed, and `decision` was made."""

    step: str
    began: float
    fault: Fault
    decision: Decision
    remedy: str | None = None
    """The remedy that removed the cause, if one did."""
    undo: bool = False


class Finished(_Record, frozen=True, kw_only=True):
    """A step is done. It is not run again."""

    step: str
    began: float
    result: object = None
    degraded: str | None = None
    """The code of the failure, if a fallback returned the result."""
    undo: bool = False
    version: str | None = None
    """The version of the agent's code."""


class Effect(_Record, frozen=True, kw_only=True):
    """An effect was committed in the same transaction as this record."""

    step: str
    name: str
    result: object = None
    undo: bool = False


class Stepped(_Record, frozen=True, kw_only=True):
    """The begin or the end of a durable step inside a step of the task; see `amends.effects.steps`."""

    step: str
    identity: str
    kind: StepKind
    record: StepRecord
    undo: bool = False


class Delegated(_Record, frozen=True, kw_only=True):
    """A step delegated to another agent, which succeeded."""

    step: str
    """The delegation's own name: `step>agent/type#count`."""
    agent: str
    type: str
    payload: object
    began: float
    result: object = None


class Parked(_Record, frozen=True, kw_only=True):
    """The agent was at its concurrency limit. This does not count as an attempt."""

    step: str
    until: float


class Asked(_Record, frozen=True, kw_only=True):
    """A step asked a question."""

    step: str
    question: str
    schema: dict[str, object] | None = None
    agent: str | None = None
    type: str | None = None
    payload: object = None
    """For a delegation, which is not part of the plan: what was called, and with what."""


class Answered(_Record, frozen=True, kw_only=True):
    """A step's question was answered."""

    step: str
    answer: object = None


class Doubted(_Record, frozen=True, kw_only=True):
    """A step was interrupted, and it is unknown whether it happened."""

    step: str
    inner: str | None = None
    """The durable step inside it of which that is unknown; None: the step itself."""


class Verified(_Record, frozen=True, kw_only=True):
    """A user, or the capability's `verify`, found out whether an interrupted step happened."""

    step: str
    happened: bool
    result: object = None


class Released(_Record, frozen=True, kw_only=True):
    """No worker holds the task until then. `lease` and `take` identify the message that will be delivered again."""

    until: float | None = None
    waits: bool = False
    """Whether the task waits for an answer or a verification, and `until` is its deadline."""
    lease: str | None = None
    take: int = 0


class Cancelled(_Record, frozen=True, kw_only=True):
    """Cancellation was requested; of a task that is being undone: the end of the undo that is under way."""


class Retried(_Record, frozen=True, kw_only=True):
    """A retry of the failed or cancelled task was requested."""


class Repaired(_Record, frozen=True, kw_only=True):
    """The entries after `valid`, up to this one, do not fit the task and are skipped. What they may have started is in doubt."""

    valid: int


class Undoing(_Record, frozen=True, kw_only=True):
    """The task cannot be completed; its finished steps will be undone."""

    fault: Fault | None = None


class Ended(_Record, frozen=True, kw_only=True):
    """The task is over, unless it is retried."""

    status: str
    fault: Fault | None = None


Record = (
    Submitted
    | Taken
    | Started
    | Failed
    | Finished
    | Effect
    | Stepped
    | Delegated
    | Parked
    | Asked
    | Answered
    | Doubted
    | Verified
    | Released
    | Cancelled
    | Retried
    | Repaired
    | Undoing
    | Ended
)
COMMANDS = (Answered, Verified, Cancelled, Retried)

decode: Callable[[bytes], list[Record]] = msgspec.json.Decoder(list[Record]).decode
"""Decodes the records of one entry. Raises MsgspecError if this version does not know them."""
encode: Callable[[Sequence[Record]], bytes] = msgspec.json.Encoder().encode
"""Encodes records as one entry of a log, which is written completely or not at all."""
