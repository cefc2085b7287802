"""
Blocking libraries on virtual time: one thread per running operation, of which only one runs at a time.

A thread runs until it sleeps, sends or returns; it then gives the loop a request and stops. The loop awaits the request
on virtual time and resumes the thread. Threads never run at the same time as each other or as the loop, so the loop
determines the order of events, and a run repeats exactly.
"""

import threading
from collections.abc import Awaitable, Callable
from typing import Any

_current = threading.local()


class _BlockingThread:
    """A thread that runs one blocking function at a time, from one request to the next."""

    def __init__(self) -> None:
        self.go = threading.Lock()
        self.go.acquire()
        self.stopped = threading.Lock()
        self.stopped.acquire()
        self.request: Callable[[], Awaitable[Any]] | None = None
        self.result: tuple[bool, Any] = (True, None)
        self.job: Callable[[], Any] | None = None
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        _current.thread = self
        while True:
            self.go.acquire()
            if self.job is None:
                return
            try:
                self.result = (True, self.job())
            except Exception as error:
                self.result = (False, error)
            self.request = None
            self.stopped.release()

    def resume(self) -> Callable[[], Awaitable[Any]] | None:
        """Run the thread until it makes a request, and return that; None when the function has ended."""
        self.go.release()
        self.stopped.acquire()
        return self.request

    def await_on_loop(self, request: Callable[[], Awaitable[Any]]) -> Any:
        """Called inside the thread: have the loop await `request()`, and return or raise its outcome."""
        self.request = request
        self.stopped.release()
        self.go.acquire()
        good, value = self.result
        if not good:
            raise value
        return value


class BlockingThreads:
    """Threads that are kept for reuse: starting one costs more than most operations."""

    def __init__(self) -> None:
        self.idle: list[_BlockingThread] = []

    async def run(self, job: Callable[[], Any]) -> Any:
        """Run the blocking function `job` in virtual time."""
        thread = self.idle.pop() if self.idle else _BlockingThread()
        thread.job = job
        while (request := thread.resume()) is not None:
            try:
                thread.result = (True, await request())
            except Exception as error:
                thread.result = (False, error)
        self.idle.append(thread)
        good, value = thread.result
        if not good:
            raise value
        return value

    def close(self) -> None:
        for thread in self.idle:
            thread.job = None
            thread.go.release()
        self.idle.clear()


def block_on(request: Callable[[], Awaitable[Any]]) -> Any:
    """Await `request()` on the loop, from blocking code that runs in one of these threads."""
    return _current.thread.await_on_loop(request)
