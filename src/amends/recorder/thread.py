"""The thread that writes events: it opens the store, collects notes for a moment, and appends them as one entry."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from amends.core.fault import Fault
from amends.logs import logger
from amends.recorder.clean import event_of
from amends.recorder.event import Event, encode_event, join_events
from amends.recorder.index import IndexWriter
from amends.recorder.retention import Retention

if TYPE_CHECKING:
    from amends.stores.contract import Store

__all__ = ["LOG", "Note", "WriterThread", "open_store"]

LOG = "amends-events"
"""The name of the log in the store."""

_log = logger("amends.recorder")

_COLLECT = 0.025
"""Seconds in which notes are collected after the first one, and …"""
_TICK = 0.1
"""… while notes keep coming: an entry takes 0.3 ms to write. A page shows a failure within 200 ms."""
_OPEN_WAIT = 1.0
_REOPEN = 5.0
_ENTRY_BYTES = 200_000
"""The largest entry; a NATS server accepts 1 MB by default."""
_TRIES = 3
_RETAIN_EVERY = 60.0
_WARN_EVERY = 60.0


class Note(NamedTuple):
    """What a binding reported, and when."""

    at: float
    where: str
    outcome: str
    fault: Fault
    facts: dict[str, object]


Drain = Callable[[], tuple[list[Note | threading.Event], int]]


async def open_store(url: str) -> Store:
    """Open the store of a recorder. SQLite does not wait for the disk at each commit, unless the URL asks for it."""
    from pathlib import Path

    from amends import stores
    from amends.stores.address import parse

    address = parse(url)
    if address.scheme == "sqlite":
        Path(address.path).parent.mkdir(parents=True, exist_ok=True)
        if "synchronous" not in address.options:
            url += ("&" if "?" in url else "?") + "synchronous=normal"
    return await stores.open(url)


class _Batch:
    """The events of one entry, each encoded once."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.encoded: list[bytes] = []
        self._size = 0

    def add(self, event: Event) -> bool:
        """Add an event, and return whether the entry has room for it. An empty one has room for any."""
        encoded = encode_event(event)
        if self.events and self._size + len(encoded) > _ENTRY_BYTES:
            return False
        self.events.append(event)
        self.encoded.append(encoded)
        self._size += len(encoded)
        return True


class Marker(threading.Event):
    """Is set when everything that was taken before it is written or lost."""

    written = False
    """Whether nothing was lost."""


class WriterThread:
    """One thread with an event loop, which owns the store."""

    def __init__(
        self, url: str, keep: tuple[float, int], drain: Drain, written: Callable[[Event], object]
    ) -> None:
        self._url = url
        self._keep = keep
        self._drain = drain
        self._written = written
        self._opened = threading.Event()
        self._busy = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._work: asyncio.Event | None = None
        self._hurry: asyncio.Event | None = None
        self._stopping = False
        self._lost = 0
        self._unwritten = 0
        """Events that were lost since somebody asked."""
        self._warned = -_WARN_EVERY
        self._thread = threading.Thread(target=self._run, name="amends-recorder", daemon=True)

    def start(self) -> None:
        """Start the thread, and wait for its store, at most a second."""
        self._thread.start()
        self._opened.wait(_OPEN_WAIT)

    def wake(self, *, at_once: bool = False) -> None:
        """Write what is there; `at_once`: without collecting more first."""
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._set, at_once)

    def stop(self) -> None:
        """Close the store and end the thread."""
        self._stopping = True
        self.wake(at_once=True)
        if threading.current_thread() is not self._thread:
            self._thread.join(_OPEN_WAIT * 5)

    def pause(self) -> None:
        """Keep the store idle until `resume`. A store that hangs is not waited for without end."""
        self._paused = self._busy.acquire(timeout=2.0)

    def resume(self) -> None:
        """Let the thread write again."""
        if self._paused:
            self._busy.release()

    def _set(self, at_once: bool) -> None:
        assert self._work is not None
        assert self._hurry is not None
        self._work.set()
        if at_once:
            self._hurry.set()

    def _run(self) -> None:
        try:
            asyncio.run(self._write_until_stopped())
        except Exception:  # noqa: BLE001 - the log has it; the program goes on
            _log.exception("the recorder has stopped")
        finally:
            self._opened.set()

    async def _write_until_stopped(self) -> None:
        self._work, self._hurry = asyncio.Event(), asyncio.Event()
        self._loop = asyncio.get_running_loop()
        store: Store | None = None
        retention: Retention | None = None
        index: IndexWriter | None = None
        next_open = 0.0
        retain_at = time.monotonic() + _RETAIN_EVERY
        notes: list[Note | threading.Event] = []
        while True:
            if store is None and time.monotonic() >= next_open:
                store = await self._open()
                next_open = time.monotonic() + _REOPEN
                if store is not None:
                    log = store.log(LOG)
                    retention, index = Retention(log, *self._keep), IndexWriter(store, log)
                self._opened.set()
            await self._wait(busy=bool(notes), reopening=store is None)
            notes, dropped = self._drain()
            self._lost += dropped
            self._unwritten += dropped
            if store is not None or self._stopping:
                await self._write(store, notes)
                if retention is not None and index is not None and time.monotonic() >= retain_at:
                    retain_at = time.monotonic() + _RETAIN_EVERY
                    await self._retain(retention, index)
            elif notes:
                self._lose(notes, None)
            if self._stopping:
                if store is not None:
                    with contextlib.suppress(Exception):
                        await store.close()
                return

    async def _wait(self, *, busy: bool, reopening: bool) -> None:
        """Wait for notes, then a moment for more of them; if there were some before, only the moment."""
        assert self._work is not None
        assert self._hurry is not None
        try:
            if not busy:
                async with asyncio.timeout(_REOPEN if reopening else _RETAIN_EVERY):
                    await self._work.wait()
            async with asyncio.timeout(_TICK if busy else _COLLECT):
                await self._hurry.wait()
        except TimeoutError:
            pass
        self._work.clear()
        self._hurry.clear()

    async def _open(self) -> Store | None:
        with self._busy:
            try:
                return await open_store(self._url)
            except Exception as error:  # noqa: BLE001 - whatever it is, the program goes on without a record
                self._warn("the store of the recorder cannot be opened", error)
                return None

    async def _retain(self, retention: Retention, index: IndexWriter) -> None:
        """Remove what is too old or too much, and index what is new."""
        with self._busy:
            try:
                await retention.apply(time.time())
                await index.apply()
            except Exception as error:  # noqa: BLE001
                self._warn("old events cannot be removed, or new ones not be indexed", error)

    async def _write(self, store: Store | None, notes: list[Note | threading.Event]) -> None:
        """Append the notes in entries of limited size, and set the markers of those who wait."""
        batch = _Batch()
        if self._lost and notes and store is not None:
            batch.add(_lost_event(self._lost))
            self._lost = 0
        for note in notes:
            if isinstance(note, threading.Event):
                await self._append(store, batch)
                batch = _Batch()
                self._answer(note)
                continue
            try:
                event = event_of(*note)
                if not batch.add(event):
                    await self._append(store, batch)
                    batch = _Batch()
                    batch.add(event)
            except Exception:  # noqa: BLE001 - the log has it; the program goes on
                _log.exception("a failure could not be recorded")
        await self._append(store, batch)

    async def _append(self, store: Store | None, batch: _Batch) -> None:
        if not batch.events or store is None:
            return
        from amends.stores.errors import StoreFullError, StoreUnavailableError

        entry, dedupe = join_events(batch.encoded), uuid4().hex
        for left in range(_TRIES - 1, -1, -1):
            try:
                with self._busy:
                    await store.log(LOG).append(entry, dedupe=dedupe)
            except StoreFullError as error:
                self._lose(batch.events, error)
                return
            except StoreUnavailableError as error:
                if not left or self._stopping:
                    self._lose(batch.events, error)
                    return
                await asyncio.sleep(_OPEN_WAIT)
            except Exception as error:  # noqa: BLE001 - an unknown failure of the store: the calls go on
                self._lose(batch.events, error)
                return
            else:
                for event in batch.events:
                    self._written(event)
                return

    def _lose(self, lost: Sequence[Event | Note | threading.Event], error: Exception | None) -> None:
        count = sum(not isinstance(each, threading.Event) for each in lost)
        self._lost += count
        self._unwritten += count
        for each in lost:
            if isinstance(each, threading.Event):
                self._answer(each)
        self._warn(f"{self._lost} events were dropped, because they cannot be written", error)

    def _answer(self, marker: threading.Event) -> None:
        """Tell the one who waits for a marker whether everything that was taken since the marker before is written."""
        if isinstance(marker, Marker):
            marker.written = not self._unwritten
        self._unwritten = 0
        marker.set()

    def _warn(self, what: str, error: Exception | None) -> None:
        """Log a problem, at most once a minute."""
        now = time.monotonic()
        if now - self._warned >= _WARN_EVERY:
            self._warned = now
            _log.warning("%s%s", what, "" if error is None else f": {error}")


def _lost_event(count: int) -> Event:
    fault = Fault(code="SERVICE_UNAVAILABLE", message="Events could not be written")
    return event_of(time.time(), "recorder", "lost", fault, {"count": count})
