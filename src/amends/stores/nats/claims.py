"""
Claims: one small record per message of a queue, changed only by compare-and-set, that decides which worker holds it.

JetStream redelivers messages that are not acknowledged, but it keeps that state loosely: a server that is killed forgets to
which worker it has just delivered a message, and delivers it to another at once. A delivery is therefore only a hint. The
worker that receives it must claim the message here, in a stream whose writes are acknowledged. The record's sequence number
is the epoch of the claim. A lease is a deadline on the clock since boot of its holder's machine; no server's clock ends it. Only the
delay of a message that was given back counts from the server's time stamp of the record.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import msgspec

from amends.proof import Claim as Proved
from amends.proof import Proof, rests_on
from amends.stores.clock import Clock
from amends.stores.deadlines import Deadline, Deadlines
from amends.stores.nats.api_errors import ApiError
from amends.stores.nats.stored_messages import StoredMessage, foreign_message, latest
from amends.stores.nats.stream_settings import STATE
from amends.stores.nats.streams import Streams
from amends.stores.nats.subjects import token

__all__ = ["Claim", "Claims", "State", "parse_claim"]

State = Literal["held", "free", "dying", "done"]

# The record of a finished message covers two cases: a killed server that forgets the removal, and a removal that was lost on
# its way. The message is then delivered again after its lease, so the record must be kept for longer than that.
_DONE_KEPT = 3600


class _Body(msgspec.Struct, omit_defaults=True):
    state: State
    attempts: int
    nonce: str
    seconds: float = 0.0
    reason: str = ""
    lease: Deadline | None = None


_decode = msgspec.json.Decoder(_Body).decode
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Claim:
    """The record of one message: held until, free from, or done."""

    state: State
    attempts: int
    revision: int = 0
    """The sequence number of this record; 0 if there is none yet."""
    time: float = 0.0
    seconds: float = 0.0
    """Counted from `time`: how long the message is delayed."""
    reason: str = ""
    nonce: str = ""
    lease: Deadline | None = None
    """Until when it is held."""

    def delay(self, now: float) -> float:
        """Seconds until a message that was given back can be taken, by the server's clock."""
        return max(0.0, self.time + self.seconds - now) if self.state == "free" else 0.0


class Claims:
    """The claims of one queue."""

    def __init__(self, streams: Streams, queue: str, lease: float, clock: Clock) -> None:
        self._streams, self._queue = streams, queue
        self._deadlines = Deadlines(clock)
        self._done_kept = f"{_DONE_KEPT + 2 * math.ceil(lease)}s"
        self.suffix = f".lease.{token(queue)}"

    async def read(self, number: int) -> Claim | None:
        """The claim of a message; None if it was never taken."""
        stored = await latest(self._streams, STATE, STATE, f"{self.suffix}.{number}")
        return None if stored is None else parse_claim(stored)

    @rests_on(Proved.LEASE_ENDED, Proof.BOOT_CLOCK)
    def lease_left(self, claim: Claim) -> float:
        """Return the seconds until the holder of a message has lost it; 0 if it has, or there is none."""
        if claim.state != "held" or claim.lease is None:
            return 0.0
        return self._deadlines.left(claim.lease, f"{self._queue} {claim.revision}")

    @rests_on(Proved.OURS, Proof.COMPARED)
    async def change(
        self,
        number: int,
        before: int,
        state: State,
        attempts: int,
        *,
        seconds: float = 0.0,
        reason: str = "",
    ) -> int | None:
        """Write the claim if it is still at revision `before`, and return its new revision; None if it is not."""
        nonce = self._streams.connection.new_id()
        lease = self._deadlines.start(seconds) if state == "held" else None
        body = _Body(state, attempts, nonce, seconds, reason, lease)
        # No message id: the condition lets it through only once, and the nonce identifies the writer.
        headers = {"Nats-Expected-Last-Subject-Sequence": str(before)}
        if state == "done":
            headers["Nats-TTL"] = self._done_kept
        tries: list[int] = []
        try:
            return await self._streams.publish(
                STATE, STATE, f"{self.suffix}.{number}", _encode(body), headers, tries
            )
        except ApiError as error:
            if not error.conflict:
                raise
        if len(tries) > 1:
            claim = await self.read(number)
            if claim is not None and claim.nonce == nonce:
                return claim.revision  # an earlier attempt to send this change succeeded
        return None


def parse_claim(stored: StoredMessage) -> Claim:
    """
    Parse a claim from its message in the stream.

    Raises:
        DamagedStoreError: the message is not a claim.
    """
    try:
        body = _decode(stored.data)
    except msgspec.MsgspecError:
        raise foreign_message("the claims", stored.subject, stored) from None
    return Claim(
        body.state, body.attempts, stored.seq, stored.time, body.seconds, body.reason, body.nonce, body.lease
    )
