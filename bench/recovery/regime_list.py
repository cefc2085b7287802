"""The regimes outside a to h on which constants are chosen: a service, its load, and what is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bench.recovery import services as known
from bench.recovery.load import Arrival, burst, poisson
from bench.recovery.overload import Overload
from bench.recovery.regime_services import (
    Bucket,
    Failing,
    Flapping,
    HalfDead,
    Known,
    Lying,
    OneHint,
    Stalls,
    Tenants,
)


@dataclass(frozen=True, slots=True)
class Regime:
    """A service, its load, and what is measured."""

    name: str
    service: Callable[..., Any]
    load: Callable[[int], list[Arrival]]
    options: dict[str, Any] = field(default_factory=dict)
    timeout: float = 2.0
    capacity: float = 0.0
    """What the service can do per second; goodput is a share of it."""
    settled: float = 30.0
    spell_end: float = 0.0
    refused: bool = False
    """Whether the calls that got 429 are counted."""
    only: Callable[[Any, int, Arrival], bool] | None = None
    """Which operations are measured."""
    latency: float = 1.0
    """The time of a call; p50 and p99 are multiples of it."""

    def build(self, seed: int) -> Any:
        return self.service(seed, **self.options)

    def counted(self, service: Any, index: int, arrival: Arrival) -> bool:
        return self.only is None or self.only(service, index, arrival)


def fleet(
    clients: int = 200, spell: float = 60.0, queue: int = 500, latency: float = 0.05, *, tail: float = 240.0
) -> Regime:
    options: dict[str, Any] = {
        "service": Overload,
        "slow_until": 20.0 + spell,
        "queue": queue,
        "latency": latency,
    }
    name = f"fleet {clients} clients, {spell:g} s, queue {queue}, {latency:g} s"
    name += ", ten minutes after" if tail > 600 else ""
    seconds = 20 + spell + tail
    return Regime(
        name,
        Known,
        partial(poisson, rate=100 / clients, seconds=seconds, clients=clients),
        options,
        spell_end=20.0 + spell,
    )


def tenants(
    count: int,
    hint: float,
    rate: float,
    *,
    latency: float = 0.05,
    seconds: float = 120,
    multiples: bool = False,
) -> Regime:
    calls = "" if latency < 1 else f", {latency:g} s calls"
    return Regime(
        f"one tenant of {count} gets {hint:g} s, {rate:g}/s{calls}: the others",
        Tenants,
        partial(poisson, rate=rate, seconds=seconds),
        {"count": count, "hint": hint, "latency": latency},
        10.0 * max(latency, 0.2),
        only=lambda service, index, arrival: service.tenant(index) > 0 and arrival[0] > 20,
        latency=latency if multiples else 1.0,
    )


def hour(rate: float, start: float = 300.0) -> Regime:
    return Regime(
        f"a true hint of an hour, {rate:g}/s",
        OneHint,
        partial(poisson, rate=rate, seconds=start + 3590),
        {"hint": 3600.0, "at": start, "true": True},
        refused=True,
    )


def _sustained(factor: float, clients: int) -> Regime:
    return Regime(
        f"overload {factor:g}x, {clients} processes",
        Known,
        partial(poisson, rate=60 * factor / clients, seconds=240, clients=clients),
        {"service": Overload, "rate": 60.0, "slow_rate": 60.0},
        capacity=60.0,
        settled=60.0,
    )


def _all() -> list[Regime]:
    found = [
        Regime(
            "one hint, 5 s calls at 20/s",
            OneHint,
            partial(poisson, rate=20, seconds=180),
            {"latency": 5.0},
            60.0,
            only=after(75),
        ),
        Regime(
            "one hint, 30 s calls at 2/s",
            OneHint,
            partial(poisson, rate=2, seconds=300),
            {"latency": 30.0},
            120.0,
            only=after(125),
        ),
        Regime(
            "true hint of 60 s, 5 s calls at 5/s",
            OneHint,
            partial(poisson, rate=5, seconds=300),
            {"latency": 5.0, "hint": 60.0, "true": True},
            60.0,
        ),
        Regime(
            "epoch in ms as hint, 0.05 s calls at 10/s",
            OneHint,
            partial(poisson, rate=10, seconds=300),
            {"hint": 3600.0},
            only=after(60),
        ),
    ]
    found += [
        Regime(
            f"{share} % fail at {rate}/s",
            Failing,
            partial(poisson, rate=rate, seconds=300 if rate < 200 else 90),
            {"share": share / 100},
        )
        for share in (30, 50)
        for rate in (10, 50, 200, 500)
    ]
    found.append(
        Regime(
            "1 % get Retry-After 120 at 20/s",
            Failing,
            partial(poisson, rate=20, seconds=200),
            {"refused": 0.01},
        )
    )
    found += [fleet(spell=spell) for spell in (10, 30, 60, 120)]
    found += [fleet(clients) for clients in (20, 500, 1000)]
    found += [fleet(spell=30, queue=queue) for queue in (100, 250, 1000)]
    found += [fleet(spell=30, latency=latency) for latency in (0.005, 0.2, 1.0)]
    found += [fleet(1000, 120), fleet(1000, 30, latency=1.0)]
    found += [
        fleet(*shape, tail=120)
        for shape in ((1000, 10), (1000, 30), (700, 20, 1000, 0.3), (400, 20, 500, 0.8), (50, 60, 500, 1.0))
    ]
    found += [fleet(20, 30, 200, 1.0), fleet(200, 60, 500, 0.5)]
    found += [
        fleet(*shape, tail=660)
        for shape in (
            (200, 11),
            (20, 61),
            (50, 120),
            (1000, 121),
            (200, 31, 1000, 0.005),
            (500, 30, 100, 1.0),
        )
    ]
    found += [_sustained(factor, clients) for factor in (1.5, 2.0) for clients in (1, 20, 200)]
    for hint in (1.0, None):
        label = "Retry-After 1" if hint else "no header"
        found.append(
            Regime(
                f"token bucket 5/s, offered 10/s, {label}",
                Bucket,
                partial(poisson, rate=10, seconds=240),
                {"hint": hint},
                capacity=5.0,
            )
        )
        found.append(
            Regime(
                f"token bucket 50/s, offered 75/s, {label}",
                Bucket,
                partial(poisson, rate=75, seconds=180),
                {"rate": 50.0, "depth": 50.0, "hint": hint},
                capacity=50.0,
            )
        )
        found.append(
            Regime(
                f"token bucket 20/s, 20 processes 2/s, {label}",
                Bucket,
                partial(poisson, rate=2, seconds=240, clients=20),
                {"rate": 20.0, "depth": 20.0, "hint": hint},
                capacity=20.0,
            )
        )
    found += [
        Regime(
            f"tenants at {rate}/s, the other nine",
            Tenants,
            partial(poisson, rate=rate, seconds=200),
            only=lambda s, i, a: s.tenant(i) > 0,
        )
        for rate in (5, 20, 100)
    ]
    found += [
        tenants(count, hint, rate)
        for count in (4, 10)
        for hint in (2.0, 10.0, 30.0, 120.0, 3600.0)
        for rate in (5, 20, 100)
    ]
    found += [tenants(10, hint, 20, latency=2.0) for hint in (10.0, 3600.0)]
    found += [
        Regime(
            f"flapping every {period} s at {rate}/s",
            Flapping,
            partial(poisson, rate=rate, seconds=180),
            {"period": float(period)},
        )
        for period in (1, 2, 3, 5, 8)
        for rate in (1, 6, 30)
    ]
    found += [hour(rate) for rate in (0.02, 1, 20)]
    found += [
        Regime("long hint of an hour", known_hostile, partial(poisson, rate=1, seconds=3600)),
        Regime("lying hint of 1 s, 30 s outage, 5/s", Lying, partial(poisson, rate=5, seconds=120)),
        Regime(
            "lying hint of 20 s, 5 s outage, 5/s",
            Lying,
            partial(poisson, rate=5, seconds=120),
            {"length": 5.0, "hint": 20.0},
        ),
        Regime("flapping every 2 s, 5/s", Flapping, partial(poisson, rate=5, seconds=120)),
        Regime("flapping every 15 s, 5/s", Flapping, partial(poisson, rate=5, seconds=240), {"period": 15.0}),
        Regime(
            "low traffic, 1 call a minute, 30 % fail",
            Failing,
            partial(poisson, rate=1 / 60, seconds=36000),
            {"share": 0.3},
        ),
        Regime("half-dead replicas, 20/s", HalfDead, partial(poisson, rate=20, seconds=200)),
        Regime(
            "30 s calls, 20 % stall, 2/s",
            Stalls,
            partial(poisson, rate=2, seconds=600),
            {"latency": 30.0},
            60.0,
        ),
        Regime(
            "0.5 s calls, 20 % stall, 20/s",
            Stalls,
            partial(poisson, rate=20, seconds=200),
            {"latency": 0.5},
            2.0,
        ),
        Regime(
            "b from 20 processes",
            Known,
            partial(poisson, rate=0.1, seconds=60, clients=20),
            {"service": known.Outage},
        ),
        Regime("b", Known, partial(poisson, rate=2, seconds=60), {"service": known.Outage}),
        Regime(
            "b 120 s",
            Known,
            partial(poisson, rate=2, seconds=160),
            {"service": known.Outage, "length": 120.0},
        ),
        Regime("a", Known, partial(burst, count=60, within=1.0), {"service": known.Window}),
        Regime("c", Known, partial(poisson, rate=10, seconds=50), {"service": known.Brownout}),
        Regime(
            "c 60 %", Known, partial(poisson, rate=10, seconds=50), {"service": known.Brownout, "share": 0.6}
        ),
        Regime("f", Known, partial(poisson, rate=5, seconds=100), {"service": known.Lossy}),
        Regime("f 30 %", Known, partial(poisson, rate=5, seconds=100), {"service": known.Lossy, "loss": 0.3}),
        Regime("g", Known, partial(burst, count=10, within=1.0), {"service": known.Hostile}),
        Regime(
            "h+hint",
            Known,
            partial(poisson, rate=0.5, seconds=300, clients=200),
            {"service": Overload, "hint": 5},
            spell_end=30.0,
        ),
    ]
    return found


def known_hostile(seed: int) -> Known:
    return Known(seed, service=known.Hostile)


def after(at: float) -> Callable[[Any, int, Arrival], bool]:
    return lambda _service, _index, arrival: arrival[0] >= at


REGIMES = {regime.name: regime for regime in _all()}
