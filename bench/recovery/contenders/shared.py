"""amends with an Upstream in each process whose state is shared: a board in memory, and a board that is away."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import amends
from bench.recovery.contenders.library import clocks, perform_with
from bench.recovery.run import Contender, Perform, Process


class Board:
    """What the processes share, without delays. `amends.recovery.Shared` describes the methods."""

    def __init__(self) -> None:
        self.records: dict[str, Mapping[str, Any]] = {}
        self.leases: dict[str, float] = {}

    def read(self, name: str) -> Mapping[str, Any] | None:
        return self.records.get(name)

    def write(self, name: str, record: Mapping[str, Any] | None) -> None:
        if record is None:
            self.records.pop(name, None)
        else:
            self.records[name] = record

    def lease(self, name: str, seconds: float) -> bool:
        if self.leases.get(name, 0.0) > time.time():
            return False
        self.leases[name] = time.time() + seconds
        return True


class Away:
    """A store that cannot be reached."""

    def _fail(self, *_: Any) -> Any:
        raise ConnectionError("the store is away")

    read = write = lease = _fail


def _shared(process: Process) -> Perform:
    board = process.service.__dict__.setdefault("board", Board())
    return perform_with(amends.Upstream("service", shared=board, refresh=process.refresh))


def _away(process: Process) -> Perform:
    return perform_with(amends.Upstream("service", shared=Away(), refresh=process.refresh))


SHARED = Contender("amends, shared", "Upstream(…, shared=a board)", _shared, clocks=clocks)
AWAY = Contender("amends", "Upstream(…, shared=a board that raises)", _away, clocks=clocks)
"""It has the name of the contender without a store, so that it gets the same random numbers."""
