"""
`record` and `Recorder`: take failures from the bindings and hand them to a thread that writes them.

Taking one costs an append to a queue: redaction, encoding and writing happen on the thread. The queue is bounded; when it
is full, or the store cannot be written, events are dropped and counted, and a warning is logged.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from time import time
from types import TracebackType
from typing import Self

from amends.core import recording
from amends.core.fault import Fault
from amends.core.wrong_calls import explains_wrong_calls
from amends.logs import logger
from amends.recorder.event import Event
from amends.recorder.thread import Marker, Note, WriterThread
from amends.stores.address import parse

__all__ = ["Recorder", "current_recorder", "record"]

_log = logger("amends.recorder")

_MOST = 10_000
"""Notes that wait to be written. A burst of more is dropped; a note is about 1 KB."""
_RECENT = 1_000
_EXIT = 2.0
"""Seconds that the end of the program waits for the last events to be written."""

_lock = threading.Lock()
_current: Recorder | None = None


@explains_wrong_calls
def record(url: str, *, days: float = 7.0, megabytes: float = 64.0) -> Recorder:
    """
    Record the failures of this process in the store at `url`, and return the recorder.

    A process has one recorder. A second call with the same URL returns it; one with another URL replaces it.

    Args:
        url: `sqlite:///failures.db`, or `nats://host:port/name` for processes on several machines.
        days: events are kept so long …
        megabytes: … and up to this size; the oldest are removed.

    Raises:
        ValueError: `url` is not a store URL, or a limit is not positive.

    >>> import amends, tempfile
    >>> with amends.record(f"sqlite:///{tempfile.mkdtemp()}/failures.db") as recorder:
    ...     recorder.recent()
    []

    """
    global _current
    with _lock:
        if _current is not None and _current.url == url and not _current.closed:
            return _current
        recorder = Recorder(url, days=days, megabytes=megabytes)
        before, _current = _current, recorder
    if before is not None:
        before.close()
    recorder.start()
    recording.set_sink(recorder.take)
    return recorder


def current_recorder() -> Recorder | None:
    """
    Return the recorder of this process, or None.

    >>> import tempfile
    >>> with record(f"sqlite:///{tempfile.mkdtemp()}/failures.db") as recorder:
    ...     current_recorder() is recorder
    True
    """
    return _current


class Recorder:
    """
    Writes the failures of this process into a store. `record` makes it; use it as a context manager to stop it.

    >>> import tempfile
    >>> from amends import recover
    >>> from amends.testing import FakeClock, Script
    >>> with FakeClock(), record(f"sqlite:///{tempfile.mkdtemp()}/failures.db") as recorder:
    ...     page = recover(Script(ConnectionError(), "page 1"), read_only=True)
    ...     written = recorder.flush()
    >>> sorted(event.outcome for event in recorder.recent())
    ['recovered', 'retry']
    """

    def __init__(self, url: str, *, days: float = 7.0, megabytes: float = 64.0) -> None:
        """
        Args:
            url: the store.
            days: how long events are kept.
            megabytes: the most that they may take up.

        """
        parse(url)
        if not (days > 0 and megabytes > 0):
            raise ValueError("days and megabytes are more than 0")
        self.url = url
        self.closed = False
        self._keep = days * 86400.0, int(megabytes * 1_000_000)
        self._notes: deque[Note | threading.Event] = deque()
        self._recent: deque[Event] = deque(maxlen=_RECENT)
        self._signalled = False
        self._dropped = 0
        self._start_lock = threading.Lock()
        self._thread: WriterThread | None = None

    def start(self) -> None:
        """Start the thread. Wait up to a second for its store: once the program ends, nothing can be opened any more."""
        with self._start_lock:
            if self._thread is None and not self.closed:
                _register_hooks()
                self._thread = WriterThread(self.url, self._keep, self._drain, self._recent.append)
                self._thread.start()

    def take(self, where: str, outcome: str, fault: Fault, facts: dict[str, object]) -> None:
        """Take a note of a failure. It is redacted and written later, on the recorder's thread."""
        if len(self._notes) >= _MOST:
            self._drop()
            return
        self._notes.append(Note(time(), where, outcome, fault, facts))
        if not self._signalled:
            self._signalled = True
            self._wake()

    def recent(self, limit: int = _RECENT) -> list[Event]:
        """Return the last events that this process wrote, the newest first. `Reader` has those of all processes."""
        return list(self._recent)[: -limit - 1 : -1] if limit > 0 else []

    def flush(self, timeout: float = 5.0) -> bool:
        """
        Wait until what was taken so far is written, at most `timeout` seconds. Return whether all of it was.

        False, too, if an event was lost since the last `flush`: the store cannot be written, or too many came at once.
        """
        if self._thread is None:
            return not self._notes
        marker = Marker()
        self._notes.append(marker)
        self._thread.wake(at_once=True)
        return marker.wait(timeout) and marker.written

    def close(self) -> None:
        """Stop recording, and write what was taken so far."""
        global _current  # noqa: PLW0603
        if self.closed:
            return
        self.closed = True
        with _lock:
            if _current is self:
                _current = None
                recording.set_sink(None)
        thread = self._thread
        if thread is not None:
            self.flush()
            thread.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _wake(self) -> None:
        if self._thread is None:
            self.start()
        if self._thread is not None:
            self._thread.wake()

    def _drain(self) -> tuple[list[Note | threading.Event], int]:
        """
        Return what is to be written, and the number of notes that were dropped since the last call.

        After notes the thread calls again without a signal: a signal for each entry costs the failing calls 0.5 %.
        """
        self._signalled = False
        notes: list[Note | threading.Event] = []
        while self._notes:
            notes.append(self._notes.popleft())
        if notes:
            self._signalled = True
        dropped, self._dropped = self._dropped, 0
        return notes, dropped

    def _drop(self) -> None:
        self._dropped += 1
        if self._dropped == 1:
            _log.warning("failures come faster than they can be recorded: events are dropped")

    # Forks -----------------------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Wait until the store is idle: a child inherits SQLite's locks, and could never get them."""
        if self._thread is not None:
            self._thread.pause()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        if self._thread is not None:
            self._thread.resume()

    def after_fork_in_child(self) -> None:
        """Forget the parent's thread, store and notes. The next failure starts a thread of the child's own."""
        self._notes = deque()
        self._signalled, self._dropped = False, 0
        self._start_lock = threading.Lock()
        _abandoned.append(self._thread)
        self._thread = None


_abandoned: list[WriterThread | None] = []
"""Threads of parent processes: their connections must not be closed by the child."""
_registered = False


def _register_hooks() -> None:
    global _registered  # noqa: PLW0603
    if _registered:
        return
    _registered = True
    atexit.register(_at_exit)
    os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)


def _at_exit() -> None:
    if _current is not None:
        _current.flush(_EXIT)


_forking: list[Recorder] = []


def _before_fork() -> None:
    if _current is not None:
        _forking.append(_current)
        _current.before_fork()


def _after_in_parent() -> None:
    while _forking:
        _forking.pop().after_fork_in_parent()


def _after_in_child() -> None:
    global _lock  # noqa: PLW0603 - another thread of the parent may hold it
    _lock = threading.Lock()
    while _forking:
        _forking.pop().after_fork_in_child()
