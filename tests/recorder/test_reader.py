"""`Reader`: list, filter, follow, trace and summarise; on SQLite and on NATS."""

import asyncio

import pytest

from amends import Fault, stores
from amends.core import recording
from amends.recorder import Filter, Reader, open_reader, record
from amends.recorder.event import Event, encode_events
from amends.recorder.thread import LOG
from tests.stores.conftest import nats_server  # noqa: F401


def event(number, **members):
    given = {
        "at": float(number),
        "where": "call",
        "outcome": "gave-up",
        "fault": Fault(code="TIMEOUT"),
    } | members
    return Event(name=str(number), **given)


async def written(store, *entries):
    for events in entries:
        await store.log(LOG).append(encode_events(events))
    return Reader(store)


async def test_newest_first_with_filters_and_limits():
    """Pages are read backwards until there are enough events."""
    async with await stores.open("memory:") as store:
        entries = [[event(number, trace_id=f"{number:04}")] for number in range(1, 301)]
        entries.append(
            [event(301, fault=Fault(code="CONFLICT", trace_id="feed"), where="http server", upstream="shop")]
        )
        reader = await written(store, *entries)
        assert [each.name for each in await reader.events(limit=3)] == ["301", "300", "299"]
        assert [each.name for each in await reader.events(Filter(trace="0003"))] == ["3"]
        assert [each.name for each in await reader.events(Filter(trace="fee"))] == ["301"]
        for wanted in (
            {"code": "CONFLICT"},
            {"where": "http"},
            {"where": "http server"},
            {"upstream": "shop"},
        ):
            assert [each.name for each in await reader.events(Filter(**wanted))] == ["301"]
        assert len(await reader.events(Filter(since=299.0, until=300.0))) == 2
        assert len(await reader.events(Filter(outcome="gave-up"), limit=1000)) == 301
        await store.log(LOG).trim(290)
        assert len(await reader.events(limit=1000)) == 12


async def test_follow_begins_with_the_last_events_and_goes_on():
    """Entries that are trimmed while it follows are skipped; garbage is too."""
    async with await stores.open("memory:") as store:
        reader = await written(store, [event(1), event(2)], [event(3)])
        found = []

        async def follow():
            async for each in reader.follow(Filter(outcome="gave-up"), last=2):
                found.append(each.name)

        task = asyncio.create_task(follow())
        while len(found) < 2:
            await asyncio.sleep(0)
        await store.log(LOG).append(b"garbage")
        await written(store, [event(4, outcome="retry"), event(5)])
        while len(found) < 3:
            await asyncio.sleep(0.001)
        task.cancel()
        assert found == ["2", "3", "5"]


async def test_a_trace_over_two_processes_and_a_summary():
    """The traces with their timeline; the figures of all."""
    async with await stores.open("memory:") as store:
        reader = await written(
            store,
            [event(2, trace_id="abcd", outcome="recovered", process="client:1", attempt=2, elapsed=1.5)],
            [event(1, trace_id="abcd", outcome="sent", where="http server", process="shop:7")],
            [event(3, trace_id="abff")],
        )
        (trace,) = await reader.trace("abcd")
        assert [line.where for line in trace.lines] == ["http server", "call"]
        assert (trace.processes, trace.outcome, trace.tries) == (("shop:7", "client:1"), "recovered", 2)
        assert [each.id for each in await reader.trace("ab")] == ["abff", "abcd"]
        summary = await reader.summary()
        assert (summary.events, summary.failures, summary.recovered, summary.recovery_p99) == (3, 3, 1, 1.5)


@pytest.mark.parametrize("backend", ["sqlite", "nats"])
def test_recorder_and_reader_share_a_store(backend, tmp_path, request):
    """A follower in one event loop sees what the recorder's thread writes."""
    if backend == "sqlite":
        url = f"sqlite:///{tmp_path}/below/failures.db"
    else:
        url = f"{request.getfixturevalue('nats_server').url}/recorder"

    async def first():
        async with open_reader(url) as reader, asyncio.timeout(20):
            found = aiter(reader.follow())
            waiting = asyncio.ensure_future(anext(found))
            await asyncio.sleep(0)
            while not waiting.done():
                recording.emit("call", "gave-up", Fault(code="CONFLICT"), trace_id="feed")
                await asyncio.wait([waiting], timeout=0.1)
            return waiting.result()

    with record(url):
        assert asyncio.run(first()).fault.code == "CONFLICT"
