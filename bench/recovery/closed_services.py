"""The services of the closed regimes: fixed workers and batches. Each can say when a call will succeed, for the oracle."""

from __future__ import annotations

import math
from collections import Counter
from heapq import heapify, heappop, heappush

from bench.recovery.draws import draw
from bench.recovery.services import OK, Answer, Service
from bench.recovery.wire import Request, Response

LONGER = 4.0
"""Answers of models differ in length: the longest takes so many times the shortest."""


class Trouble(Service):
    """Refuses everything from `start` on for `length`: with `status` and `hint`, or without an answer (`status` 0)."""

    def __init__(
        self,
        seed: int = 0,
        *,
        start: float = 0.0,
        length: float = 0.3,
        status: int = 503,
        hint: str | None = None,
        period: float = math.inf,
        **options: float,
    ) -> None:
        super().__init__(seed, **options)
        self.start, self.length, self.status, self.period = start, length, status, period
        self.refusal = Response(status, {} if hint is None else {"Retry-After": hint})

    def over(self, now: float) -> float:
        """Return when the trouble at `now` ends; `now` if there is none."""
        since = now - self.start
        if since >= 0 and self.period < math.inf:
            begun = self.start + since // self.period * self.period
            return max(now, begun + self.length)
        return self.start + self.length if 0 <= since < self.length else now

    def answer(self, now: float, request: Request) -> Answer:
        if self.over(now) <= now:
            return now + self.latency, OK
        self.doomed += 1
        self.doomed_first += request.number == 1
        return None if not self.status else (now + self.latency, self.refusal)

    def opportunity(self, now: float, operation: int) -> float | None:
        return self.over(now)


class Varying(Service):
    """Answers after `latency` to LONGER times that, and refuses with `status` and `hint`."""

    def __init__(
        self,
        seed: int = 0,
        *,
        varying: bool = True,
        status: int = 429,
        hint: float | None = None,
        latency: float = 1.0,
    ) -> None:
        super().__init__(seed, latency=latency)
        self.varying, self.status, self.hint = varying, status, hint

    def seconds(self, operation: int) -> float:
        return self.latency * LONGER ** draw(self.seed, operation, 0) if self.varying else self.latency

    def refuse(self, now: float, request: Request, hint: float | None) -> Answer:
        self.doomed += 1
        self.doomed_first += request.number == 1
        headers = {} if hint is None else {"Retry-After": f"{hint:g}"}
        return now + 0.05, Response(self.status, headers | self.headers(now))

    def headers(self, now: float) -> dict[str, str]:
        return {}


class Minute(Varying):
    """So many requests or tokens per minute. The minutes begin at 0. `named`: the end of the minute is in Retry-After."""

    def __init__(
        self,
        seed: int = 0,
        *,
        requests: float = math.inf,
        tokens: float = math.inf,
        named: bool = False,
        published: str = "",
        latency: float = 1.0,
    ) -> None:
        super().__init__(seed, latency=latency)
        self.requests, self.tokens, self.named, self.published = requests, tokens, named, published
        self.used: Counter[int] = Counter()
        self.spent: Counter[int] = Counter()
        self.promised: Counter[int] = Counter()
        self.promised_tokens: Counter[int] = Counter()

    def size(self, operation: int) -> int:
        """Return the tokens of one call: 500 to 4,000."""
        return int(500 * 8 ** draw(self.seed, operation, 1000))

    def answer(self, now: float, request: Request) -> Answer:
        index, size = int(now // 60), self.size(request.operation)
        if self.used[index] + 1 > self.requests or self.spent[index] + size > self.tokens:
            return self.refuse(
                now, request, max(1, math.ceil((index + 1) * 60 - now)) if self.named else None
            )
        self.used[index] += 1
        self.spent[index] += size
        return now + self.seconds(request.operation), Response(200, self.headers(now))

    def headers(self, now: float) -> dict[str, str]:
        if not self.published:
            return {}
        index = int(now // 60)
        left, prefix = (index + 1) * 60 - now, self.published
        found = {}
        for name, limit, used in (
            ("requests", self.requests, self.used[index]),
            ("tokens", self.tokens, self.spent[index]),
        ):
            if limit < math.inf:
                found |= {
                    f"{prefix}-limit-{name}": f"{limit:g}",
                    f"{prefix}-remaining-{name}": f"{max(0, limit - used):g}",
                    f"{prefix}-reset-{name}": f"{left:.3f}s",
                }
        return found

    def opportunity(self, now: float, operation: int) -> float | None:
        index, size = int(now // 60), self.size(operation)
        while self.promised[index] + 1 > self.requests or self.promised_tokens[index] + size > self.tokens:
            index += 1
        self.promised[index] += 1
        self.promised_tokens[index] += size
        return max(now, index * 60.0)


class Slots(Varying):
    """At most `limit` calls in flight."""

    def __init__(self, seed: int = 0, *, limit: int = 10, **options: float) -> None:
        super().__init__(seed, **options)
        self.limit = limit
        self.running: list[float] = []
        self.free = [0.0] * limit

    def answer(self, now: float, request: Request) -> Answer:
        while self.running and self.running[0] <= now:
            heappop(self.running)
        if len(self.running) >= self.limit:
            return self.refuse(now, request, self.hint)
        at = now + self.seconds(request.operation)
        heappush(self.running, at)
        return at, OK

    def opportunity(self, now: float, operation: int) -> float | None:
        at = max(now, heappop(self.free))
        heappush(self.free, at + self.seconds(operation))
        return at


class Refilled(Varying):
    """A bucket that is refilled continuously: `rate` per second, at most `depth`; calls take 1, or `least` to `most`."""

    def __init__(
        self,
        seed: int = 0,
        *,
        rate: float = 5.0,
        depth: float = 5.0,
        least: float = 1.0,
        most: float = 1.0,
        **options: float,
    ) -> None:
        super().__init__(seed, **options)
        self.rate, self.depth, self.least, self.most = rate, depth, least, most
        self.level, self.at = depth, 0.0
        self.promised, self.promised_at = depth, 0.0

    def size(self, operation: int) -> float:
        return self.least * (self.most / self.least) ** draw(self.seed, operation, 1000)

    def answer(self, now: float, request: Request) -> Answer:
        self.level = min(self.depth, self.level + (now - self.at) * self.rate)
        self.at = now
        size = self.size(request.operation)
        if self.level < size:
            return self.refuse(now, request, self.hint)
        self.level -= size
        return now + self.seconds(request.operation), OK

    def opportunity(self, now: float, operation: int) -> float | None:
        size, at = self.size(operation), max(now, self.promised_at)
        level = min(self.depth, self.promised + (at - self.promised_at) * self.rate)
        at += max(0.0, size - level) / self.rate
        self.promised = min(self.depth, self.promised + (at - self.promised_at) * self.rate) - size
        self.promised_at = at
        return at + 1e-9


class Queue(Varying):
    """`servers` that work side by side, and a queue of `length` before them; a full queue refuses."""

    def __init__(
        self, seed: int = 0, *, servers: int = 4, length: int = 10, status: int = 503, **options: float
    ) -> None:
        super().__init__(seed, status=status, **options)
        self.length = servers + length
        self.inside: list[float] = []
        self.busy = [0.0] * servers
        self.promised = [0.0] * servers

    def answer(self, now: float, request: Request) -> Answer:
        while self.inside and self.inside[0] <= now:
            heappop(self.inside)
        if len(self.inside) >= self.length:
            return self.refuse(now, request, self.hint)
        heapify(self.busy)
        at = max(now, heappop(self.busy)) + self.seconds(request.operation)
        heappush(self.busy, at)
        heappush(self.inside, at)
        return at, OK

    def opportunity(self, now: float, operation: int) -> float | None:
        at = max(now, heappop(self.promised))
        heappush(self.promised, at + self.seconds(operation))
        return at


class Shedding(Varying):
    """Refuses the calls of low priority from `start` on for `length`. Of three operations one has a high priority."""

    def __init__(
        self, seed: int = 0, *, start: float = 10.0, length: float = 60.0, status: int = 503, **options: float
    ) -> None:
        super().__init__(seed, status=status, varying=False, **options)
        self.start, self.end = start, start + length

    def priority(self, operation: int) -> int:
        return int(draw(self.seed, operation, 0) < 1 / 3)

    def sheds(self, now: float, operation: int) -> bool:
        return self.start <= now < self.end and not self.priority(operation)

    def answer(self, now: float, request: Request) -> Answer:
        if self.sheds(now, request.operation):
            return self.refuse(now, request, self.hint)
        return now + self.latency, OK

    def opportunity(self, now: float, operation: int) -> float | None:
        return self.end if self.sheds(now, operation) else now
