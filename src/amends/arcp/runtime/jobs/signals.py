"""
Signals: values that the owner of a job sends to it while it runs, waits in a queue, or is taken over.

A signal is a row of a table, under the job's id and its own, so that one that is sent twice counts once. The agent that receives it
stores it as the end of a step; the row is left, and expires.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import msgspec

from amends.arcp.runtime.entries import CONTROL, SIGNALS, Control, JobSpec, encode
from amends.arcp.runtime.jobs.job import Job
from amends.arcp.runtime.jobs.running import RunningJobs
from amends.core.json_value import json_value
from amends.effects.steps import LONGEST_SIGNAL, ReceivedSignal
from amends.errors.arcp import InvalidRequestError
from amends.stores import ConflictError, Store

__all__ = ["Signals", "receive"]

_LOOK_EVERY = 2.0
"""Seconds between two looks at the table, if a notification of another node was lost."""
_read = msgspec.json.Decoder(ReceivedSignal).decode


@dataclass(eq=False)
class Signals:
    """Sends signals to jobs on behalf of one node."""

    _jobs: RunningJobs

    async def send(self, spec: JobSpec, id: str, name: str, value: object, author: str) -> bool:
        """
        Store a signal and notify its job. Returns False if one with this id was sent before.

        Raises:
            InvalidRequestError: it has no name or no id, is too large, the job has ended, or has too many of them.

        """
        limits, ledger = self._jobs.limits, self._jobs.ledger
        for field, text in (("signal", name), ("id", id)):
            if not 0 < len(text) <= LONGEST_SIGNAL:
                raise InvalidRequestError(
                    f"A signal needs a {field} of at most {LONGEST_SIGNAL} characters",
                    details={"field": field},
                )
        signal = ReceivedSignal(id=id, name=name, value=json_value(value), author=author, at=time.time())
        encoded = encode(signal)
        if len(encoded) > limits.event_bytes:
            raise InvalidRequestError(
                "The signal is too large", details={"limit": "event_bytes", "value": limits.event_bytes}
            )
        tail = await ledger.tail(spec.job_id)
        if tail is None or tail[1].ended:
            raise InvalidRequestError("The job has already ended", details={"field": "job_id"})
        sent = await _read_all(ledger.store, spec.job_id)
        if id not in sent and len(sent) >= limits.signals_per_job:
            raise InvalidRequestError(
                "The job has too many signals",
                details={"limit": "signals_per_job", "value": limits.signals_per_job},
            )
        try:
            await ledger.store.table(SIGNALS).create(
                f"{spec.job_id}/{id}", encoded, expires_in=limits.signals_for
            )
        except ConflictError:
            return False
        job = self._jobs.get(spec.job_id)
        if job is not None:
            job.signalled.notify()
        elif not self._jobs.exclusive:
            await ledger.store.log(CONTROL).append(encode(Control(signal=spec.job_id)))
        return True


async def receive(job: Job, name: str, before: set[str], left: float) -> ReceivedSignal | None:
    """
    Return the oldest signal with a name that was not received before; None if there is none in the time left.

    The signals of one job are few, so that all are read.
    """
    store, loop = job.host.ledger.store, job.loop
    until = loop.time() + left
    while True:
        seen = job.signalled.count
        sent = await _read_all(store, job.spec.job_id)
        waiting = [signal for id, signal in sent.items() if signal.name == name and id not in before]
        if waiting:
            return min(waiting, key=lambda signal: (signal.at, signal.id))
        left = until - loop.time()
        if left <= 0:
            return None
        await job.signalled.wait(seen, min(left, _LOOK_EVERY))


async def _read_all(store: Store, job_id: str) -> dict[str, ReceivedSignal]:
    found = {}
    async for row in store.table(SIGNALS).scan(f"{job_id}/"):
        signal = _read(row.value)
        found[signal.id] = signal
    return found
