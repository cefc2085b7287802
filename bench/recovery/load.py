"""The arrival times of operations, and the client process of each."""

import random
from collections.abc import Iterator

Arrival = tuple[float, int]  # virtual time, index of the client process


def burst(seed: int, *, count: int, within: float) -> list[Arrival]:
    """Return `count` arrivals at random times of the first `within` seconds, all in one process."""
    generator = random.Random(f"burst:{seed}")
    return sorted((generator.uniform(0, within), 0) for _ in range(count))


def poisson(seed: int, *, rate: float, seconds: float, clients: int = 1) -> list[Arrival]:
    """Return independent arrivals at `rate` per second in each of `clients` processes."""
    return sorted(arrival for index in range(clients) for arrival in _stream(seed, index, rate, seconds))


def _stream(seed: int, client: int, rate: float, seconds: float) -> Iterator[Arrival]:
    generator = random.Random(f"poisson:{seed}:{client}")
    at = generator.expovariate(rate)
    while at < seconds:
        yield at, client
        at += generator.expovariate(rate)
