"""What a runtime writes to a store."""

import msgspec
import pytest

from amends.arcp.runtime.entries import (
    JobEntry,
    JobSpec,
    Summary,
    digest,
    encode,
    job_log,
    queue_of,
    session_log,
)


def test_names():
    assert (job_log("job_1"), session_log("sess_1"), queue_of("a@1")) == (
        *("arcp.job/job_1", "arcp.session/sess_1", "arcp.run.a@1"),
    )


@pytest.mark.parametrize("principal", ["alice", "a/b c", "é" * 500, "\udcff", ""])
def test_principals_in_keys(principal):
    """A digest of fixed length in a safe alphabet."""
    assert len(digest(principal)) == 32
    assert set(digest(principal)) <= set("0123456789abcdef")
    assert digest(principal) != digest(principal + "x")


@pytest.mark.parametrize(
    ("kind", "ended", "requeued"),
    [("result", True, False), ("error", True, False), ("requeued", False, True), ("event", False, False)],
)
def test_the_state_of_an_entry(kind, ended, requeued):
    entry = JobEntry(kind, 1, 1, "node_1", 0.0)
    assert (entry.ended, entry.requeued) == (ended, requeued)


def test_entries_are_read_back():
    """Byte by byte: the log is the truth."""
    spec = JobSpec(
        job_id="job_1", principal="alice", session="s", agent="a@1", created=1.5, trace="ab", input=[1, None]
    )
    assert msgspec.json.decode(encode(spec), type=JobSpec) == spec
    entry = JobEntry("event", 2, 3, "node_1", 1.25, msgspec.Raw(b'{"kind":"log"}'), "log")
    found = msgspec.json.decode(encode(entry), type=JobEntry)
    assert (found.run, found.epoch, bytes(found.payload), found.label) == (2, 3, b'{"kind":"log"}', "log")
    summary = Summary(
        job_id="j", principal="p", session="s", agent="a", status="running", created=1.0, trace="t"
    )
    assert b"parent" not in encode(summary)
