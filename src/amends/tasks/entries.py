"""
What a task's log says: one record per thing that happened, in order. The log is the truth; everything else is derived.

An entry of the log is a JSON array of these records, so that what belongs together is written together. `at` is wall-clock
time. COMMANDS may come from anybody who may write to the store; all others only from the worker that holds the task.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from amends.core.decision import Decision
from amends.core.fault import Fault
from amends.stores.errors import DamagedStoreError
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
    "Retried",
    "Started",
    "Submitted",
    "Taken",
    "Undoing",
    "Verified",
    "decode",
    "encode",
    "stored",
]


class _Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="what", tag=str.lower):
    at: float


class Submitted(_Record, frozen=True, kw_only=True):
    """Somebody wants it done."""

    id: str
    type: str
    steps: tuple[Step, ...]
    single: bool = True
    """One step whose result is the task's, rather than a plan whose results are told by name."""
    agent: str | None = None
    retry_policy: dict[str, Any] | None = None
    until: float | None = None
    """The deadline."""
    key: str | None = None


class Taken(_Record, frozen=True, kw_only=True):
    """A worker has it: for longer than a moment, or after another one that did not finish."""

    worker: str
    takeover: bool = False


class Started(_Record, frozen=True, kw_only=True):
    """A step begins that must not happen twice: written before it does."""

    step: str
    attempt: int
    undo: bool = False


class Failed(_Record, frozen=True, kw_only=True):
    """A try of a step failed, and this is what follows."""

    step: str
    began: float
    fault: Fault
    decision: Decision
    remedy: str | None = None
    """What removed the cause, where something did."""
    undo: bool = False


class Finished(_Record, frozen=True, kw_only=True):
    """A step is done, and is never run again."""

    step: str
    began: float
    result: Any = None
    degraded: str | None = None
    """The code of the failure a fallback stood in for."""
    undo: bool = False


class Effect(_Record, frozen=True, kw_only=True):
    """An effect that was committed together with this record."""

    step: str
    name: str
    result: Any = None
    undo: bool = False


class Delegated(_Record, frozen=True, kw_only=True):
    """A step had another agent do something, and this came of it."""

    step: str
    """Its own name: the step's, ">", what was asked for, "#", and which time."""
    agent: str
    type: str
    payload: Any
    began: float
    result: Any = None


class Parked(_Record, frozen=True, kw_only=True):
    """The agent has no hands free; not a try."""

    step: str
    until: float


class Asked(_Record, frozen=True, kw_only=True):
    """A step cannot go on without an answer."""

    step: str
    question: str
    schema: dict[str, Any] | None = None


class Answered(_Record, frozen=True, kw_only=True):
    """Somebody answered what a step asked."""

    step: str
    answer: Any = None


class Doubted(_Record, frozen=True, kw_only=True):
    """A step was interrupted, and nobody knows whether it happened."""

    step: str


class Verified(_Record, frozen=True, kw_only=True):
    """Somebody, or the capability itself, looked whether a step in doubt had happened."""

    step: str
    happened: bool
    result: Any = None


class Released(_Record, frozen=True, kw_only=True):
    """Nobody holds it until then: a wait costs nothing. `lease` and `take` say which message brings it back."""

    until: float | None = None
    lease: str | None = None
    take: int = 0


class Cancelled(_Record, frozen=True, kw_only=True):
    """Somebody does not want it any more."""


class Retried(_Record, frozen=True, kw_only=True):
    """Somebody wants what failed tried again."""


class Undoing(_Record, frozen=True, kw_only=True):
    """It cannot be finished: what was done is being undone."""

    fault: Fault | None = None


class Ended(_Record, frozen=True, kw_only=True):
    """Nothing follows, unless somebody wants it tried again."""

    status: str
    fault: Fault | None = None


Record = (
    Submitted
    | Taken
    | Started
    | Failed
    | Finished
    | Effect
    | Delegated
    | Parked
    | Asked
    | Answered
    | Doubted
    | Verified
    | Released
    | Cancelled
    | Retried
    | Undoing
    | Ended
)
COMMANDS = (Answered, Verified, Cancelled, Retried)

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(list[Record])


def encode(records: Sequence[Record]) -> bytes:
    """Records as one entry of a log: all of them are there, or none."""
    return _encoder.encode(records)


def decode(entry: bytes) -> list[Record]:
    """
    The records of one entry.

    Raises:
        DamagedStoreError: it is none of ours.
    """
    try:
        return _decoder.decode(entry)
    except msgspec.MsgspecError as error:
        raise DamagedStoreError(
            "an entry of a task's log is none this version of amends writes: upgrade amends, or run `amends store check`"
        ) from error


def stored(value: Any) -> Any:
    """A value as it will be read back: what a later step is given must not depend on whether there was a crash."""
    return msgspec.json.decode(_encoder.encode(value))
