"""A message that a worker has taken, in memory and on SQLite: what `take` returns, and the lease made from it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TakenLease", "TakenMessage"]


@dataclass(frozen=True, slots=True)
class TakenMessage:
    """What `take` returns: the message's number and epoch, and what the worker needs."""

    number: int
    key: str | None
    value: bytes
    attempt: int
    epoch: int


class TakenLease:
    """The values of a lease; see `contract.Lease`."""

    def __init__(self, taken: TakenMessage, until: float) -> None:
        self.number = taken.number
        self._until = until
        self.id = str(taken.number)
        self.key = taken.key
        self.value = taken.value
        self.attempt = taken.attempt
        self.epoch = taken.epoch
