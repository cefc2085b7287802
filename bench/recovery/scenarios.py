"""The eight scenarios, three variants of them, and their variations."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bench.recovery.load import Arrival, burst, poisson
from bench.recovery.overload import Overload
from bench.recovery.services import Brownout, Expiry, Hostile, Invalid, Lossy, Outage, Service, Window


@dataclass(frozen=True, slots=True)
class Scenario:
    """A service and its load."""

    name: str
    title: str
    service: Callable[..., Service]
    load: Callable[[int], list[Arrival]]
    shown: tuple[str, ...] = ("success", "calls/success", "p50", "p99", "to failure")
    options: dict[str, Any] = field(default_factory=dict)

    def build(self, seed: int) -> Service:
        return self.service(seed, **self.options)


def _load(maker: Callable[..., list[Arrival]], **shape: float) -> Callable[[int], list[Arrival]]:
    return partial(maker, **shape)


WRITES = ("success", "calls/success", "duplicates", "orphans", "p99")
FLEET = ("success", "calls/success", "p50", "p99", "recovery", "goodput after")

SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("a", "rate-limit window", Window, _load(burst, count=60, within=1.0)),
        Scenario("b", "30 s outage", Outage, _load(poisson, rate=2, seconds=60)),
        Scenario("c", "30 % brownout", Brownout, _load(poisson, rate=10, seconds=50)),
        Scenario(
            "d",
            "permanent errors",
            Invalid,
            _load(poisson, rate=10, seconds=50),
            ("success", "calls/success", "wasted", "p99"),
        ),
        Scenario(
            "e",
            "expired token",
            Expiry,
            _load(poisson, rate=2, seconds=60),
            ("success", "calls/success", "refreshes", "p99"),
        ),
        Scenario(
            "f",
            "lost responses",
            Lossy,
            _load(poisson, rate=5, seconds=100),
            WRITES,
        ),
        Scenario(
            "f+ignored",
            "lost responses, keys ignored",
            Lossy,
            _load(poisson, rate=5, seconds=100),
            WRITES,
            {"honours_keys": False},
        ),
        Scenario(
            "f+verify",
            "lost responses, keys ignored, effects can be looked up",
            Lossy,
            _load(poisson, rate=5, seconds=100),
            WRITES,
            {"honours_keys": False, "searchable": True},
        ),
        Scenario(
            "g", "hostile hint", Hostile, _load(burst, count=10, within=1.0), ("success", "calls", "blocked")
        ),
        Scenario(
            "h", "overloaded fleet", Overload, _load(poisson, rate=0.5, seconds=120, clients=200), FLEET
        ),
        Scenario(
            "h+hint",
            "overloaded fleet, Retry-After 5 when full",
            Overload,
            _load(poisson, rate=0.5, seconds=120, clients=200),
            FLEET,
            {"hint": 5},
        ),
    )
}


def _vary(
    base: str, label: str, load: Callable[[int], list[Arrival]] | None = None, **options: Any
) -> Scenario:
    origin = SCENARIOS[base]
    return Scenario(
        f"{base}: {label}",
        origin.title,
        origin.service,
        load or origin.load,
        origin.shown,
        {**origin.options, **options},
    )


def variations() -> list[Scenario]:
    """Return the variations. NOTES.md lists those that were used for tuning."""
    found = [_vary("a", f"window {window} s", window=float(window)) for window in (5, 20, 60)]
    found += [_vary("b", f"outage {length} s", length=float(length)) for length in (5, 15, 60, 120)]
    found += [_vary("b", f"{share} % of calls take 1.5 s", long_share=share / 100) for share in (20, 50)]
    found += [_vary("c", f"brownout {share} %", share=share / 100) for share in (10, 20, 45, 60)]
    # `loss` is one of three equal shares: lost answer, lost request, clean 503.
    found += [_vary("f", f"loss {loss} %", loss=loss / 100) for loss in (1, 5, 20, 30)]
    for clients in (20, 100, 500):
        every = _load(poisson, rate=0.5, seconds=120, clients=clients)
        found.append(_vary("h", f"{clients} clients, 0.5/s each", every))
        if clients != 100:
            shared = _load(poisson, rate=100 / clients, seconds=120, clients=clients)
            found.append(_vary("h", f"{clients} clients, 100/s in all", shared))
    found += [_vary("h", f"queue {queue}", queue=queue) for queue in (100, 250, 1000)]
    for name in "abcdefgh":
        found += [_vary(name, f"latency {latency:g} s", latency=latency) for latency in (0.005, 0.2, 1.0)]
    return found
