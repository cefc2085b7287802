"""The log of a session: which events have which numbers, in the order in which they are sent."""

from amends import stores
from amends.arcp.runtime.entries import JobEntry
from amends.arcp.runtime.server.delivery import (
    Attached,
    Detached,
    QueuedEvent,
    SessionLog,
    Subscription,
    session_entries,
)


def event(subscription, position, kind="event"):
    return QueuedEvent(subscription, position, JobEntry(kind, 1, 1, "node_1", 0.0))


def test_one_entry_for_what_is_sent_together():
    """Frames without a number need none; an end is marked."""
    job = Subscription("job_1", "", 2, 1)
    items = [Attached("job_1", 2, 1), b"frame", event(job, 2), event(job, 3, "result")]
    (entry,) = session_entries(items, 7)
    assert (entry.first, entry.attached) == (7, (("job_1", 2, 1),))
    assert entry.events == (("job_1", 2, False), ("job_1", 3, True))
    assert job.numbered == 4
    assert session_entries([b"frame"], 7) == []


def test_a_subscription_after_an_event_begins_a_new_entry():
    """An entry is applied in the order: ended subscriptions, new ones, events."""
    job = Subscription("job_1", "", 2, 1)
    first, second = session_entries([event(job, 2), Detached("job_1"), Attached("job_2", 1, 0)], 1)
    assert (first.first, first.events) == (1, (("job_1", 2, False),))
    assert (second.first, second.detached, second.attached) == (2, ("job_1",), (("job_2", 1, 0),))
    assert len(session_entries([Attached("job_1", 1, 0), Detached("job_1")], 1)) == 2


async def test_trimming_keeps_a_snapshot_before_what_is_needed():
    async with await stores.open("memory:") as store:
        log = store.log("arcp.session/sess_1")
        written = SessionLog(store, log.name, 1, 0)
        job = Subscription("job_1", "", 2, 1)
        for number in range(1, 7):
            for entry in session_entries([event(job, number)], number):
                await written.append(entry)
            if number % 2 == 0:
                await written.trim(number + 1, [job], needed=4)
        bounds = await log.bounds()
        assert written.since_snapshot == 0
        assert bounds.first > 1
        # The snapshot at event 3 covers event 4.
        assert bounds.last - bounds.first >= 4
