"""
Blocking libraries on virtual time: one thread per running operation, and one baton that only one thread holds.

A thread runs until it sleeps, sends or returns; it then hands over what it wants and stops. The loop does that
on virtual time and hands the baton back. Threads never run at the same time as each other or as the loop, so the
order of events is the loop's, and a run repeats exactly.
"""

import threading
from collections.abc import Awaitable, Callable
from typing import Any

_current = threading.local()


class _Strand:
    """One blocking function, run piece by piece."""

    def __init__(self) -> None:
        self.go = threading.Lock()
        self.go.acquire()
        self.stopped = threading.Lock()
        self.stopped.acquire()
        self.wish: Callable[[], Awaitable[Any]] | None = None
        self.result: tuple[bool, Any] = (True, None)
        self.job: Callable[[], Any] | None = None
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        _current.strand = self
        while True:
            self.go.acquire()
            if self.job is None:
                return
            try:
                self.result = (True, self.job())
            except Exception as error:
                self.result = (False, error)
            self.wish = None
            self.stopped.release()

    def resume(self) -> Callable[[], Awaitable[Any]] | None:
        """Run the thread until it wants something (returned) or is done (None)."""
        self.go.release()
        self.stopped.acquire()
        return self.wish

    def ask(self, wish: Callable[[], Awaitable[Any]]) -> Any:
        """From inside the thread: have the loop await `wish()` and give back what came of it."""
        self.wish = wish
        self.stopped.release()
        self.go.acquire()
        good, value = self.result
        if not good:
            raise value
        return value


class Strands:
    """Threads kept for reuse: starting one costs more than most operations do."""

    def __init__(self) -> None:
        self.idle: list[_Strand] = []

    async def run(self, job: Callable[[], Any]) -> Any:
        """Run blocking `job` in virtual time."""
        strand = self.idle.pop() if self.idle else _Strand()
        strand.job = job
        while (wish := strand.resume()) is not None:
            try:
                strand.result = (True, await wish())
            except Exception as error:
                strand.result = (False, error)
        self.idle.append(strand)
        good, value = strand.result
        if not good:
            raise value
        return value

    def close(self) -> None:
        for strand in self.idle:
            strand.job = None
            strand.go.release()
        self.idle.clear()


def block_on(wish: Callable[[], Awaitable[Any]]) -> Any:
    """Await something on the loop, from blocking code that runs in a strand."""
    return _current.strand.ask(wish)
