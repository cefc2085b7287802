"""The writing thread: a full disk, a store that comes back, batches of limited size."""

import asyncio

import pytest

from amends import Fault, stores
from amends.core import recording
from amends.recorder import Filter, open_reader, record
from amends.recorder import thread as module
from amends.stores.errors import StoreFullError, StoreUnavailableError


class Broken:
    """A store whose log fails so often."""

    def __init__(self, store, error, times):
        self._store, self._error, self.left = store, error, times
        self.closed = False

    def log(self, name):
        self._log = self._store.log(name)
        return self

    async def append(self, value, dedupe=None):
        if self.left:
            self.left -= 1
            raise self._error
        return await self._log.append(value, dedupe=dedupe)

    async def close(self):
        self.closed = True
        await self._store.close()


@pytest.mark.parametrize(
    ("error", "times", "kept"),
    [(StoreFullError("full"), 1, 1), (StoreUnavailableError("away", "maybe"), 2, 2), (KeyError("bug"), 1, 1)],
)
def test_a_store_that_fails_loses_events_and_no_calls(url, monkeypatch, caplog, error, times, kept):
    """A full disk drops the events at once and logs it; a store that is away is tried again."""
    monkeypatch.setattr(module, "_OPEN_WAIT", 0.001)
    made = []

    async def open_broken(url):
        made.append(Broken(await stores.open(url), error, times))
        return made[-1]

    monkeypatch.setattr(module, "open_store", open_broken)
    with record(url) as recorder:
        recorder._thread._opened.wait(20)
        for code in ("CONFLICT", "TIMEOUT"):
            recording.emit("call", "gave-up", Fault(code=code))
            assert recorder.flush(20) is (kept == 2 or code == "TIMEOUT")
    assert made[0].closed

    async def read():
        async with open_reader(url) as reader:
            return await reader.events(Filter(outcome="gave-up")), await reader.events(Filter(outcome="lost"))

    monkeypatch.undo()
    events, lost = asyncio.run(read())
    assert len(events) == kept
    assert [each.count for each in lost] == ([] if kept == 2 else [1])
    assert ("dropped" in caplog.text) == (kept < 2)


def test_a_store_that_opens_later(url, monkeypatch, caplog):
    """Events before that are lost, and counted."""
    good, left = module.open_store, [1]

    async def open_second(url):
        if left[0]:
            left[0] -= 1
            raise StoreUnavailableError("away")
        return await good(url)

    monkeypatch.setattr(module, "open_store", open_second)
    monkeypatch.setattr(module, "_REOPEN", 0.0)
    with record(url) as recorder:
        for _ in range(3):
            recording.emit("call", "gave-up", Fault(code="TIMEOUT"))
            recorder.flush(20)
        assert recorder.flush(20)
        assert [event.outcome for event in recorder.recent()].count("gave-up") >= 2
    assert "cannot be opened" in caplog.text


def test_large_batches_become_several_entries(recorder, url, monkeypatch):
    """No entry is larger than a NATS server accepts."""
    monkeypatch.setattr(module, "_ENTRY_BYTES", 5000)
    for _ in range(50):
        recording.emit("call", "gave-up", Fault(code="TIMEOUT", message="m" * 400))
    assert recorder.flush()

    async def sizes():
        async with await stores.open(url) as store:
            return [len(entry.value) for entry in await store.log(module.LOG).read()]

    found = asyncio.run(sizes())
    assert len(found) > 4
    assert max(found) < 6000
