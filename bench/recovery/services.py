"""
The services a to g. They count what clients cannot see.

A service returns (when, response) at once, where `when` is the virtual time at which the answer reaches the client, or
None if the request or the answer is lost. The client waits, or gives up waiting.
"""

import math
from collections import Counter

from bench.recovery.draws import draw
from bench.recovery.wire import Request, Response

OK = Response(200)
UNAVAILABLE = Response(503)
INVALID = Response(422)
UNAUTHENTICATED = Response(401)

Answer = tuple[float, Response] | None


class Service:
    """Counts every call, and answers 200 after `latency`; subclasses answer differently."""

    method = "GET"
    keyed = False  # whether the service honours idempotency keys
    searchable = False  # whether a client can ask which operations had their effect
    refresh_seconds = 0.0
    timeout = 2.0  # seconds that clients wait for an answer
    deadline: float | None = None  # seconds that one operation may take, for every contender

    def __init__(self, seed: int = 0, *, latency: float = 0.05) -> None:
        self.seed = seed
        self.latency = latency
        self.calls = 0  # calls that reached the server
        self.doomed = 0  # of these, calls that could not succeed
        self.doomed_first = 0  # of these, first calls of their operations
        self.wasted = 0  # of these, repeats of an operation that already had a final answer
        self.commits: Counter[int] = Counter()  # how often each operation had its effect
        self.token = 0  # the generation of the valid credential
        self.refreshes = 0

    def receive(self, now: float, request: Request) -> Answer:
        """Handle one call at `now`."""
        self.calls += 1
        return self.answer(now, request)

    def answer(self, now: float, request: Request) -> Answer:
        return now + self.latency, OK

    def chance(self, request: Request) -> float:
        return draw(self.seed, request.operation, request.number)

    def opportunity(self, now: float, operation: int) -> float | None:
        """For the oracle: return the earliest time at which a call can succeed; None if it never can."""
        return now

    def priority(self, operation: int) -> int:
        """Return how urgent an operation is; higher numbers are more urgent."""
        return 0

    def size(self, operation: int) -> float:
        """Return the size of a request, which a client knows."""
        return 0

    def refresh(self, now: float) -> int:
        """Return a valid credential."""
        self.refreshes += 1
        return self.token

    @property
    def duplicates(self) -> int:
        """The number of commits beyond the first of each operation."""
        return sum(count - 1 for count in self.commits.values())


class Window(Service):
    """a: `limit` calls per `window` seconds, then 429 with an integer Retry-After to the window's end."""

    def __init__(self, seed: int = 0, *, limit: int = 20, window: float = 10.0, **options: float) -> None:
        super().__init__(seed, **options)
        self.limit = limit
        self.window = window
        self.used: Counter[int] = Counter()
        self.promised: Counter[int] = Counter()

    def answer(self, now: float, request: Request) -> Answer:
        index = int(now // self.window)
        if self.used[index] < self.limit:
            self.used[index] += 1
            return now + self.latency, OK
        self.doomed += 1
        wait = max(1, math.ceil((index + 1) * self.window - now))
        return now + self.latency, Response(429, {"Retry-After": str(wait)})

    def opportunity(self, now: float, operation: int) -> float | None:
        index = int(now // self.window)
        while self.promised[index] >= self.limit:
            index += 1
        self.promised[index] += 1
        return max(now, index * self.window)


class Outage(Service):
    """b: a bare 503 for everything from `start` until `start + length`."""

    def __init__(
        self,
        seed: int = 0,
        *,
        start: float = 10.0,
        length: float = 30.0,
        long_share: float = 0.0,
        long_latency: float = 1.5,
        **options: float,
    ) -> None:
        super().__init__(seed, **options)
        self.start = start
        self.end = start + length
        self.long_share = long_share  # in a variation, some calls take longer
        self.long_latency = long_latency

    def answer(self, now: float, request: Request) -> Answer:
        if self.start <= now < self.end:
            self.doomed += 1
            return now + self.latency, UNAVAILABLE
        return now + (self.long_latency if self.chance(request) < self.long_share else self.latency), OK

    def opportunity(self, now: float, operation: int) -> float | None:
        return self.end if self.start <= now < self.end else now


class Brownout(Service):
    """c: each call fails on its own with probability `share`, bare 503."""

    def __init__(self, seed: int = 0, *, share: float = 0.3, **options: float) -> None:
        super().__init__(seed, **options)
        self.share = share

    def answer(self, now: float, request: Request) -> Answer:
        return now + self.latency, UNAVAILABLE if self.chance(request) < self.share else OK


class Invalid(Service):
    """d: a share of the operations is always invalid (422); the others fail with a probability (503)."""

    def __init__(self, seed: int = 0, *, invalid: float = 0.2, share: float = 0.05, **options: float) -> None:
        super().__init__(seed, **options)
        self.invalid = invalid
        self.share = share

    def is_invalid(self, operation: int) -> bool:
        return draw(self.seed, operation, 0) < self.invalid

    def answer(self, now: float, request: Request) -> Answer:
        if self.is_invalid(request.operation):
            self.doomed += 1
            self.wasted += request.number > 1
            return now + self.latency, INVALID
        return now + self.latency, UNAVAILABLE if self.chance(request) < self.share else OK

    def opportunity(self, now: float, operation: int) -> float | None:
        return None if self.is_invalid(operation) else now


class Expiry(Service):
    """e: the credential expires at `death`; 401 until the client fetches a new one, which takes `refresh_seconds`."""

    refresh_seconds = 0.2

    def __init__(self, seed: int = 0, *, death: float = 20.0, **options: float) -> None:
        super().__init__(seed, **options)
        self.death = death

    def answer(self, now: float, request: Request) -> Answer:
        self.token = int(now >= self.death)
        if request.token < self.token:
            self.doomed += 1
            return now + self.latency, UNAUTHENTICATED
        return now + self.latency, OK

    def refresh(self, now: float) -> int:
        self.token = int(now >= self.death)
        return super().refresh(now)


class Lossy(Service):
    """f: writes whose answer is lost after the commit, or whose request is lost before it, or that get a clean 503."""

    method = "POST"

    def __init__(
        self,
        seed: int = 0,
        *,
        loss: float = 0.1,
        honours_keys: bool = True,
        searchable: bool = False,
        **options: float,
    ) -> None:
        super().__init__(seed, **options)
        self.loss = loss
        self.keyed = honours_keys
        self.searchable = searchable
        self.keys: set[str] = set()

    def answer(self, now: float, request: Request) -> Answer:
        chance = self.chance(request)
        if chance < self.loss:  # the request is lost: there is no effect
            return None
        if chance < 2 * self.loss:
            return now + self.latency, UNAVAILABLE
        if not self.keyed or request.key is None or request.key not in self.keys:
            self.commits[request.operation] += 1
            if request.key is not None:
                self.keys.add(request.key)
        return None if chance < 3 * self.loss else (now + self.latency, OK)


class Hostile(Service):
    """g: always 429 with a Retry-After of one hour."""

    def __init__(self, seed: int = 0, *, hint: int = 3600, **options: float) -> None:
        super().__init__(seed, **options)
        self.hint = hint

    def answer(self, now: float, request: Request) -> Answer:
        self.doomed += 1
        return now + self.latency, Response(429, {"Retry-After": str(self.hint)})

    def opportunity(self, now: float, operation: int) -> float | None:
        return None
