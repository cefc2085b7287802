"""Events are removed when they are too old or too many."""

from amends import Fault, stores
from amends.recorder.event import Event, encode_events
from amends.recorder.retention import Retention


def entry(at):
    return encode_events([Event(at=at, where="call", outcome="retry", fault=Fault(code="TIMEOUT"))])


async def fill(log, times):
    for at in times:
        await log.append(entry(at))


async def test_by_age_and_by_size():
    """Whole pages go; each entry is read once; an empty log and garbage are fine."""
    async with await stores.open("memory:") as store:
        log = store.log("events")
        retention = Retention(log, seconds=100, max_bytes=10_000)
        await retention.apply(0)
        await fill(log, range(64))
        await retention.apply(150)
        assert (await log.bounds()).kept == 64
        await fill(log, [150, 151])
        await retention.apply(164)
        assert (await log.bounds()).first == 65
        await log.append(b"garbage" * 2000)
        await fill(log, [160])
        await retention.apply(165)
        kept = await log.read()
        assert sum(len(each.value) for each in kept) <= 10_000


async def test_beside_another_process_that_trims():
    """Pages that another process removed are forgotten."""
    async with await stores.open("memory:") as store:
        log = store.log("events")
        one, other = (Retention(log, seconds=100, max_bytes=10**6) for _ in range(2))
        await fill(log, range(200))
        await one.apply(100)
        await log.trim(150)
        await fill(log, [200, 201])
        await one.apply(200)
        await log.trim(202)
        await fill(log, [202])
        await other.apply(203)
        await one.apply(203)
        assert (await log.bounds()).last == 203
        await one.apply(1000)
        assert (await log.bounds()).kept == 0
