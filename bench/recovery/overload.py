"""h: one server with a queue that is slow for a while, and that also works on requests whose client has given up."""

from collections import deque

from bench.recovery.services import OK, UNAVAILABLE, Answer, Service
from bench.recovery.wire import Request, Response


class Overload(Service):
    """
    First in, first out; `rate` calls a second, `slow_rate` from `slow_from` to `slow_until`.

    The order never changes, so the finishing time of a request is known when it arrives, and the queue is a list of
    future departures. If the queue is full, the answer is 503, with `hint` as Retry-After if it is not 0.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        rate: float = 120.0,
        slow_rate: float = 30.0,
        slow_from: float = 20.0,
        slow_until: float = 30.0,
        queue: int = 500,
        hint: int = 0,
        **options: float,
    ) -> None:
        super().__init__(seed, **options)
        self.rate = rate
        self.slow_rate = slow_rate
        self.slow_from = slow_from
        self.slow_until = slow_until
        self.queue = queue
        self.full = Response(503, {"Retry-After": str(hint)}) if hint else UNAVAILABLE
        self.departures: deque[float] = deque()
        self.busy_until = 0.0
        self.promised_until = 0.0

    def finish(self, start: float) -> float:
        """Return when the work of one call that begins at `start` is done, across changes of speed."""
        work = 1.0
        for until, rate in ((self.slow_from, self.rate), (self.slow_until, self.slow_rate)):
            if start < until:
                if start + work / rate <= until:
                    return start + work / rate
                work -= (until - start) * rate
                start = until
        return start + work / self.rate

    def waiting(self, now: float) -> int:
        """Return the number of requests that are queued or worked on at `now`."""
        while self.departures and self.departures[0] <= now:
            self.departures.popleft()
        return len(self.departures)

    def answer(self, now: float, request: Request) -> Answer:
        if self.waiting(now) >= self.queue:
            self.doomed += 1
            return now + self.latency, self.full
        self.busy_until = self.finish(max(now, self.busy_until))
        self.departures.append(self.busy_until)
        return self.busy_until + self.latency, OK

    def opportunity(self, now: float, operation: int) -> float | None:
        """For the oracle: return the time at which the server can begin with the request."""
        start = max(now, self.promised_until)
        self.promised_until = self.finish(start)
        return start
