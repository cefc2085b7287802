"""
Who holds a task: one small record per task, changed by compare-and-set only.

JetStream redelivers what is not acknowledged, but it keeps that state loosely: a server that is killed forgets whom it has just
given a message to, and gives it to another at once. So a delivery is taken as a hint only. Whoever gets one must claim
the task here, in a stream whose writes are acknowledged, and the record's sequence number is the claim's epoch. The time of
a claim is the server's time stamp of its record.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Literal

from amends.stores.nats.api_errors import ApiError
from amends.stores.nats.stored_messages import Stored, latest
from amends.stores.nats.streams import STATE, Streams
from amends.stores.nats.subjects import token

__all__ = ["Claim", "Claims", "State", "parsed"]

State = Literal["held", "free", "dying", "done"]

# A finished task's record guards against a server that, killed, forgets that the task was removed, and against a removal
# that was lost on the way: the task is then given again after its lease, so the record outlives that.
_DONE_KEPT = 3600


@dataclass(frozen=True, slots=True)
class Claim:
    """The record of one task: held until, free from, or done."""

    state: State
    attempts: int
    revision: int = 0
    """The sequence number of this record, 0 when there is none yet."""
    time: float = 0.0
    seconds: float = 0.0
    """From `time`: how long it is held, or not to be taken."""
    reason: str = ""
    nonce: str = ""

    def wait(self, now: float) -> float:
        """Seconds until it may be taken, by the server's clock."""
        return max(0.0, self.time + self.seconds - now) if self.state in {"held", "free"} else 0.0


class Claims:
    """The records of one queue's tasks."""

    def __init__(self, streams: Streams, queue: str, lease: float) -> None:
        self._streams = streams
        self._done_kept = f"{_DONE_KEPT + 2 * math.ceil(lease)}s"
        self.below = f".lease.{token(queue)}"

    async def read(self, task: int) -> Claim | None:
        """The task's record, or None before it was first taken."""
        stored = await latest(self._streams, STATE, STATE, f"{self.below}.{task}")
        return None if stored is None else parsed(stored)

    async def change(
        self,
        task: int,
        before: int,
        state: State,
        attempts: int,
        *,
        seconds: float = 0.0,
        reason: str = "",
    ) -> int | None:
        """Write the record if it is still at revision `before`; its new revision, or None if it is not."""
        nonce = self._streams.link.new_id()
        body: dict[str, object] = {"state": state, "attempts": attempts, "nonce": nonce}
        if seconds:
            body["seconds"] = seconds
        if reason:
            body["reason"] = reason
        # No message id: the condition already lets it through only once, and the nonce tells whose it was.
        headers = {"Nats-Expected-Last-Subject-Sequence": str(before)}
        if state == "done":
            headers["Nats-TTL"] = self._done_kept
        tries: list[int] = []
        try:
            return await self._streams.publish(
                STATE, STATE, f"{self.below}.{task}", json.dumps(body).encode(), headers, tries
            )
        except ApiError as error:
            if not error.conflict:
                raise
        if len(tries) > 1:
            found = await self.read(task)
            if found is not None and found.nonce == nonce:
                return found.revision  # an earlier sending of this very change
        return None


def parsed(stored: Stored) -> Claim:
    """A record as it lies in the stream."""
    body = json.loads(stored.data)
    return Claim(
        body["state"],
        body["attempts"],
        stored.seq,
        stored.time,
        body.get("seconds", 0.0),
        body.get("reason", ""),
        body["nonce"],
    )
