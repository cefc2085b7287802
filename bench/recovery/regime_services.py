"""The services and loads of the regimes outside a to h."""

from __future__ import annotations

import math
from typing import Any

from bench.recovery import services as known
from bench.recovery.draws import draw
from bench.recovery.wire import Request

Answer = tuple[float | None, int, float | None]  # when (None: never), status, seconds of Retry-After


class Simple:
    """Answers 200 after `latency`."""

    def __init__(self, seed: int, *, latency: float = 0.05) -> None:
        self.seed, self.latency = seed, latency

    def call(self, now: float, operation: int, number: int, client: int) -> Answer:
        status, hint = self.judge(now, operation, number, client)
        return now + (self.latency if status == 200 else min(self.latency, 0.05)), status, hint

    def judge(self, now: float, operation: int, number: int, client: int) -> tuple[int, float | None]:
        return 200, None


class OneHint(Simple):
    """Healthy, but one call after `at` gets 429 with Retry-After; `true`: everything is refused for that long."""

    def __init__(
        self, seed: int, *, hint: float = 5.0, at: float = 60.0, true: bool = False, **options: float
    ) -> None:
        super().__init__(seed, **options)
        self.hint, self.at, self.true, self.done = hint, at, true, False

    def judge(self, now: float, operation: int, number: int, client: int) -> tuple[int, float | None]:
        if self.true:
            return (
                (429, math.ceil(self.at + self.hint - now))
                if self.at <= now < self.at + self.hint
                else (200, None)
            )
        if now >= self.at and not self.done:
            self.done = True
            return 429, self.hint
        return 200, None


class Failing(Simple):
    """Calls fail on their own: `share` with a bare 503, `refused` with 429 and `hint`."""

    def __init__(
        self, seed: int, *, share: float = 0.0, refused: float = 0.0, hint: float = 120.0, **options: float
    ) -> None:
        super().__init__(seed, **options)
        self.share, self.refused, self.hint = share, refused, hint

    def judge(self, now: float, operation: int, number: int, client: int) -> tuple[int, float | None]:
        chance = draw(self.seed, operation, number)
        if chance < self.share:
            return 503, None
        return (429, self.hint) if chance < self.share + self.refused else (200, None)


class Stalls(Simple):
    """A share of the calls never answers."""

    def __init__(self, seed: int, *, share: float = 0.2, **options: float) -> None:
        super().__init__(seed, **options)
        self.share = share

    def call(self, now: float, operation: int, number: int, client: int) -> Answer:
        if draw(self.seed, operation, number) < self.share:
            return None, 0, None
        return now + self.latency, 200, None


class HalfDead(Simple):
    """Half of the replicas answer 503 at once, from `start` on; the balancer chooses one at random."""

    def __init__(self, seed: int, *, start: float = 20.0, share: float = 0.5, **options: float) -> None:
        super().__init__(seed, **options)
        self.start, self.share = start, share

    def judge(self, now: float, operation: int, number: int, client: int) -> tuple[int, float | None]:
        return (
            (503, None)
            if now >= self.start and draw(self.seed, operation, number) < self.share
            else (200, None)
        )


class Flapping(Simple):
    """Up for `period`, down (bare 503) for `period`."""

    def __init__(self, seed: int, *, period: float = 2.0, **options: float) -> None:
        super().__init__(seed, **options)
        self.period = period

    def judge(self, now: float, operation: int, number: int, client: int) -> tuple[int, float | None]:
        return (503, None) if now // self.period % 2 else (200, None)


class Lying(Simple):
    """A 503 outage whose answers name 1 s, or 20 s, whatever is left of it."""

    def __init__(
        self, seed: int, *, start: float = 20.0, length: float = 30.0, hint: float = 1.0, **options: float
    ) -> None:
        super().__init__(seed, **options)
        self.start, self.end, self.hint = start, start + length, hint

    def judge(self, now: float, operation: int, number: int, client: int) -> tuple[int, float | None]:
        return (503, self.hint) if self.start <= now < self.end else (200, None)


class Bucket(Simple):
    """A token bucket of `rate` per second and `depth`; 429 with Retry-After `hint` (None: without)."""

    def __init__(
        self, seed: int, *, rate: float = 5.0, depth: float = 5.0, hint: float | None = 1.0, **options: float
    ) -> None:
        super().__init__(seed, **options)
        self.rate, self.depth, self.hint, self.level, self.at = rate, depth, hint, depth, 0.0

    def judge(self, now: float, operation: int, number: int, client: int) -> tuple[int, float | None]:
        self.level = min(self.depth, self.level + (now - self.at) * self.rate)
        self.at = now
        if self.level >= 1.0:
            self.level -= 1.0
            return 200, None
        return 429, self.hint


class Tenants(Simple):
    """One tenant of `count` gets 429 with Retry-After 3600 from `start` on. The operation's number is its tenant."""

    def __init__(
        self, seed: int, *, count: int = 10, start: float = 20.0, hint: float = 3600.0, **options: float
    ) -> None:
        super().__init__(seed, **options)
        self.count, self.start, self.hint = count, start, hint

    def tenant(self, operation: int) -> int:
        return int(draw(self.seed, operation, 0) * self.count)

    def judge(self, now: float, operation: int, number: int, client: int) -> tuple[int, float | None]:
        return (429, self.hint) if now >= self.start and self.tenant(operation) == 0 else (200, None)


class Known:
    """A service of a to h."""

    def __init__(self, seed: int, *, service: type[known.Service], **options: Any) -> None:
        self.service = service(seed, **options)

    def call(self, now: float, operation: int, number: int, client: int) -> Answer:
        answer = self.service.receive(now, Request(operation, number, "key"))
        if answer is None:
            return None, 0, None
        hint = answer[1].headers.get("Retry-After")
        return answer[0], answer[1].status, None if hint is None else float(hint)
