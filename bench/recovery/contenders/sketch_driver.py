"""
The sketch's state machine, driven on asyncio with the default policy. The library was tuned with it.

It remains as a reference that is easy to vary. If its row and the library's differ, one of them has a bug.
"""

import asyncio
import random
from collections import deque

from bench.recovery.contenders.sketch import NEVER, Tuning, Upstream
from bench.recovery.run import Call, Contender, Perform, Process
from bench.recovery.wire import LostError, RefusedError, Response

ATTEMPTS = 5
WAIT = 300.0  # seconds of waiting in all, parked or backing off
FIRST, CAP = 1.0, 60.0
HINT_CAP = 3600.0
HINT_JITTER = 0.25  # seconds at most, above the hint


class GivenUpError(Exception):
    """The policy's bounds are used up, or the server's hint is longer than they allow."""


class Driver:
    """The queue, the timer and the shared refresh of one Upstream: everything that waits."""

    def __init__(self, process: Process, tuning: Tuning | None) -> None:
        self.loop = process.loop
        self.process = process
        self.generator = random.Random(f"ours:{process.seed}:{process.index}")
        self.upstream = Upstream(tuning)
        self.queue: deque[asyncio.Future] = deque()
        self.timer: asyncio.TimerHandle | None = None
        self.refreshing: asyncio.Future | None = None

    async def enter(self, patience: float, *, first: bool) -> None:
        """
        Return when the call may be sent; raise GivenUpError if it may not within `patience` seconds.

        An operation that has made no call yet is sent at the end of its patience in any case: having waited must not be
        worse than not having waited. The exception is a wait that the server itself asked for.
        """
        now = self.loop.now
        if self.upstream.blocked_until() - now > patience:
            raise GivenUpError
        if not self.queue and self.upstream.admit(now) == 0.0:
            return
        turn = self.loop.create_future()
        self.queue.append(turn)
        self.let_out()
        giving_up = self.loop.call_later(patience, self.expire, turn, first)
        try:
            await turn
        finally:
            giving_up.cancel()

    def expire(self, turn: asyncio.Future, first: bool) -> None:
        if turn.done():
            return
        if first and not self.upstream.blocked_until():
            self.upstream.force()
            turn.set_result(None)
        else:
            turn.set_exception(GivenUpError())

    def let_out(self) -> None:
        """Let out the calls that may be sent now, and set a timer for the next one."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        while self.queue:
            if self.queue[0].done():
                self.queue.popleft()
                continue
            again = self.upstream.admit(self.loop.now)
            if again == 0.0:
                self.queue.popleft().set_result(None)
                continue
            if again != NEVER:
                self.timer = self.loop.call_at(again, self.let_out)
            return

    async def refresh(self, token: int) -> None:
        """Refresh once for all operations that were refused with the same credential."""
        if self.process.token != token:
            return
        if self.refreshing is None:
            self.refreshing = asyncio.ensure_future(self.process.refresh())
            self.refreshing.add_done_callback(lambda _: setattr(self, "refreshing", None))
        await asyncio.shield(self.refreshing)

    async def perform(self, call: Call) -> Response:
        loop, upstream = self.loop, self.upstream
        key = f"op-{call.operation}" if call.keyed else None
        repeatable = call.method == "GET" or key is not None
        patience, refreshed = WAIT, False
        for attempt in range(1, ATTEMPTS + 1):
            began = loop.now
            await self.enter(patience, first=attempt == 1)
            if self.refreshing is not None:
                await asyncio.shield(self.refreshing)
            patience -= loop.now - began
            sent, token, response = loop.now, self.process.token, None
            try:
                response = await call.send(key)
            except LostError:
                upstream.failure(loop.now, sent, silent=True, draw=self.generator.random())
                if not repeatable:
                    raise
            if response is not None:
                if response.status in {429, 503}:
                    hint = response.headers.get("Retry-After")
                    if hint is not None:
                        wait = min(float(hint), HINT_CAP)
                        upstream.hint(loop.now, sent, loop.now + wait + HINT_JITTER * self.generator.random())
                        self.let_out()
                        if wait > patience or attempt == ATTEMPTS:
                            raise RefusedError(response)
                        continue  # `enter` parks it until the hint is over, behind the calls that are queued already
                    upstream.failure(loop.now, sent, silent=False, draw=self.generator.random())
                else:
                    upstream.success(loop.now, sent, waiting=len(self.queue), draw=self.generator.random())
                    self.let_out()
                    if response.status == 401 and not refreshed:
                        refreshed = True
                        await self.refresh(token)
                        continue
                    return response
            self.let_out()
            if attempt == ATTEMPTS:
                break
            began = loop.now
            delay = min(CAP, FIRST * 2 ** (attempt - 1)) * self.generator.random()
            if delay > patience:
                break
            await asyncio.sleep(delay)
            while (again := upstream.repeat_at(loop.now)) > 0.0:
                if again - began > patience:
                    raise GivenUpError
                await asyncio.sleep(again - loop.now)
            patience -= loop.now - began
        if response is not None:
            raise RefusedError(response)
        raise GivenUpError


def ours(name: str = "sketch", tuning: Tuning | None = None) -> Contender:
    """Return the sketch as a contender, optionally with other constants."""

    def client(process: Process) -> Perform:
        return Driver(process, tuning).perform

    return Contender(name, "5 attempts, 300 s of waiting, one shared Upstream per process", client)


SKETCH = ours()
