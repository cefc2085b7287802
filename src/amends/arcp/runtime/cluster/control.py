"""Requests of other nodes to the node that runs a job: cancellations, read from one log by all nodes."""

from __future__ import annotations

import asyncio
import logging

import msgspec

from amends.arcp.runtime.entries import CONTROL, Control
from amends.arcp.runtime.jobs.cancel import cancellation
from amends.arcp.runtime.jobs.running import RunningJobs
from amends.stores import Log, StoreError, TrimmedError
from amends.stores.signal import Signal

__all__ = ["follow_control"]

_log = logging.getLogger("amends.arcp")
_read_control = msgspec.json.Decoder(Control).decode
_CONTROL_KEPT = 1_000
_CONTROL_PAUSE = 0.02


async def follow_control(jobs: RunningJobs, every: float) -> None:
    """Read cancellations that other nodes request: when the log signals a change, and every `every` seconds."""
    log = jobs.ledger.store.log(CONTROL)
    async with log.watch() as signal:
        await _follow(jobs, log, signal, every)


async def _follow(jobs: RunningJobs, log: Log, signal: Signal, every: float) -> None:
    position = 0
    while True:
        seen = signal.count
        try:
            if not position:
                position = (await log.bounds()).last + 1
            for stored in await log.read(position):
                position = stored.seq + 1
                request = _read_control(stored.value)
                job = jobs.get(request.cancel)
                if job is not None:
                    job.stop(cancellation(request.reason))
                if stored.seq % _CONTROL_KEPT == 0:
                    await log.trim(stored.seq - _CONTROL_KEPT)
        except TrimmedError as trimmed:
            position = trimmed.first
        except StoreError:
            _log.warning("requests of other nodes cannot be read: the store failed")
            await asyncio.sleep(1.0)
        await signal.wait(seen, every)
        # SQLite signals every commit of every job. This pause limits the reads; a cancellation can wait for it.
        await asyncio.sleep(_CONTROL_PAUSE)
