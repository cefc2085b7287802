"""A handle: what the runtime granted, without secrets in its text."""

from amends.arcp.client import Settings
from amends.arcp.client.handle import Handle
from amends.arcp.client.job import Job
from amends.arcp.client.session_faults import connection_lost
from amends.arcp.wire import messages as m


def handle(cancelled, **accepted):
    async def cancel(job, reason):
        cancelled.append((job.job_id, reason))

    return Handle(cancel, Job("job_1", "ab" * 16, Settings()), m.Accepted("job_1", **accepted))


async def test_what_was_granted():
    one = handle([], agent="a@1", lease={"fs.read": ["/a"]})
    assert (one.job_id, one.agent, one.lease, one.trace_id, one.run) == (
        *("job_1", "a@1", {"fs.read": ["/a"]}, "ab" * 16, 1),
    )
    assert (one.credentials, one.summary, one.missed, one.finished) == ([], None, 0, False)
    assert repr(one) == "<Handle job_1 a@1 running>"
    assert handle([]).lease == {}


async def test_credentials_have_their_newest_values():
    one = handle([], credentials=[{"id": "c1", "value": "old"}, {"id": "c2", "value": "kept"}])
    one._job.rotated["c1"] = "new"
    assert [each["value"] for each in one.credentials] == ["new", "kept"]
    assert "kept" not in repr(one) + repr(one.accepted)


async def test_cancelling():
    cancelled = []
    await handle(cancelled).cancel("enough")
    assert cancelled == [("job_1", "enough")]


async def test_events_end_with_the_job():
    one = handle([])
    one._job.fail(connection_lost("closed"))
    assert [event async for event in one.events()] == []
    assert repr(one) == "<Handle job_1  finished>"
