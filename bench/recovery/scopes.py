"""
`Upstream.scope` and `Upstream.reset` on the whole engine, each seed with parameters of its own.

    python -m bench.recovery.scopes [--first 501] [--seeds 5]

Tenants: one tenant is refused with a long hint from some moment on; every tenant has a scope of its own. The operations of
the others have to end as if nothing had happened, to the microsecond. Reset: the service asks for an hour without calls, is
repaired before that, and the operator calls `reset`. Every operation from then on has to end as if nothing had happened.
"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import dataclass
from random import Random

import amends
from bench.recovery.contenders.library import AMENDS, clocks, perform_with
from bench.recovery.draws import draw
from bench.recovery.load import poisson
from bench.recovery.run import Call, Contender, Perform, Process, Record, run
from bench.recovery.services import OK, Answer, Service
from bench.recovery.wire import Request, Response

EXACT = 1e-6
"""Seconds that an end may differ because of rounding."""


class Tenants(Service):
    """Tenant 0 of `count` gets 429 with a hint from `start` on."""

    def __init__(self, seed: int, *, count: int, start: float, hint: int, latency: float) -> None:
        super().__init__(seed, latency=latency)
        self.count, self.start, self.hint = count, start, hint
        self.refused = 0

    def tenant(self, operation: int) -> int:
        return int(draw(self.seed, operation, 0) * self.count)

    def answer(self, now: float, request: Request) -> Answer:
        if now >= self.start and self.tenant(request.operation) == 0:
            self.refused += 1
            return now + self.latency, Response(429, {"Retry-After": str(self.hint)})
        return now + self.latency, OK


class Repaired(Service):
    """Refuses all calls from `start` on and asks for an hour without calls; is repaired at `end`."""

    def __init__(self, seed: int, *, start: float, end: float, latency: float) -> None:
        super().__init__(seed, latency=latency)
        self.start, self.end = start, end

    def answer(self, now: float, request: Request) -> Answer:
        if self.start <= now < self.end:
            return now + self.latency, Response(429, {"Retry-After": "3600"})
        return now + self.latency, OK


def _scoped(process: Process) -> Perform:
    upstream = amends.Upstream("service")

    async def perform(call: Call) -> Response:
        tenant = process.service.tenant(call.operation)  # type: ignore[attr-defined]
        return await perform_with(upstream.scope(f"tenant-{tenant}"))(call)

    return perform


def _reset(process: Process) -> Perform:
    upstream = amends.Upstream("service")

    async def operator() -> None:
        await asyncio.sleep(process.service.end - process.now())  # type: ignore[attr-defined]
        upstream.reset()

    process.operator = process.loop.create_task(operator())  # type: ignore[attr-defined]
    return perform_with(upstream)


SCOPED = Contender("amends, scopes", "upstream.scope(tenant)", _scoped, clocks=clocks)
RESET = Contender("amends, reset", "upstream.reset() at the repair", _reset, clocks=clocks)


@dataclass(frozen=True, slots=True)
class Found:
    """Operations that had to be untouched, how many were, how many succeeded, and refused calls in the run."""

    operations: int
    untouched: int
    succeeded: int
    refused: int


def _found(record: Record, operations: list[int], refused: int) -> Found:
    latency = record.service.latency
    untouched = [
        index
        for index in operations
        if record.succeeded[index] and abs(record.ends[index] - record.arrivals[index][0] - latency) < EXACT
    ]
    succeeded = [index for index in operations if record.succeeded[index]]
    return Found(len(operations), len(untouched), len(succeeded), refused)


def tenants(seed: int, contender: Contender) -> Found:
    """Return what became of the operations of the other tenants after the first refusal."""
    random = Random(f"scopes:{seed}")
    service = Tenants(
        seed,
        count=random.randrange(3, 30),
        start=random.uniform(5, 20),
        hint=random.choice((2, 30, 600, 3600)),
        latency=round(random.uniform(0.01, 1.0), 3),
    )
    rate = random.uniform(5, 50)
    record = run(service, poisson(seed, rate=rate, seconds=90), contender, seed)
    others = [
        index
        for index, (at, _) in enumerate(record.arrivals)
        if at > service.start and service.tenant(index) > 0
    ]
    return _found(record, others, service.refused)


def reset(seed: int, contender: Contender) -> Found:
    """Return what became of the operations after the repair."""
    random = Random(f"reset:{seed}")
    start = random.uniform(5, 20)
    service = Repaired(
        seed, start=start, end=start + random.uniform(5, 60), latency=round(random.uniform(0.01, 1.0), 3)
    )
    record = run(service, poisson(seed, rate=random.uniform(2, 40), seconds=120), contender, seed)
    later = [index for index, (at, _) in enumerate(record.arrivals) if at > service.end]
    return _found(record, later, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=501)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    amends.recovery.set_hooks()  # no logs
    for name, measure, contenders in (
        ("tenants", tenants, (SCOPED, AMENDS)),
        ("reset", reset, (RESET, AMENDS)),
    ):
        for contender in contenders:
            for seed in range(options.first, options.first + options.seeds):
                print(name, contender.name, seed, measure(seed, contender), flush=True)


if __name__ == "__main__":
    main()
