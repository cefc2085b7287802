"""`amends.record`: one recorder per process, off the hot path, bounded; it survives forks and the end of the program."""

import asyncio
import os
import subprocess
import sys
import threading

import pytest

import amends
from amends.core import recording
from amends.core.fault import Fault
from amends.errors import RateLimitedError
from amends.recorder import Filter, Recorder, current_recorder, open_reader
from amends.recorder import recorder as module

SLOW = "wait for db.internal, password=hunter2"


def failing(times):
    left = [times]

    def call():
        if left[0]:
            left[0] -= 1
            raise RateLimitedError(SLOW, retry_after=0.001)
        return "done"

    return call


def run(program, url):
    env = {**os.environ, "AMENDS_RECORD": url}
    return subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, timeout=60, check=False
    )


async def read(url, **wanted):
    async with open_reader(url) as reader:
        return await reader.events(Filter(**wanted), limit=100_000)


def test_a_recovery_is_recorded(recorder, url):
    """Each try with its decision, then the outcome; one trace id; redacted."""
    assert amends.recover(failing(2), upstream=amends.Upstream("shop", vendor="openai")) == "done"
    assert recorder.flush()
    events = asyncio.run(read(url))
    assert [(event.outcome, event.attempt) for event in events] == [
        ("recovered", 3),
        ("retry", 2),
        ("retry", 1),
    ]
    assert {(event.where, event.upstream, event.vendor) for event in events} == {("call", "shop", "openai")}
    assert len({event.trace_id for event in events}) == 1
    assert len(events[0].trace_id) == 32
    assert events[-1].decision.reason == "hint"
    assert "hunter2" not in repr(events)
    assert [event.outcome for event in recorder.recent(1)] == ["recovered"]


def test_a_second_call_returns_the_same_recorder(recorder, url, tmp_path):
    """Another URL replaces it, and closing it stops the recording."""
    assert amends.record(url) is recorder is current_recorder()
    with amends.record(f"sqlite:///{tmp_path}/other.db") as other:
        assert recorder.closed
        assert current_recorder() is other
    assert not recording.active()
    assert recorder.recent() == []


@pytest.mark.parametrize(
    ("url", "options"),
    [("failures.db", {}), ("sqlite:///a.db", {"days": 0}), ("sqlite:///a.db", {"megabytes": -1})],
)
def test_wrong_arguments_are_refused(url, options):
    """A URL that is none, and limits that keep nothing."""
    with pytest.raises(ValueError, match=r"store URL|more than 0"):
        amends.record(url, **options)
    assert current_recorder() is None


def test_a_full_queue_drops_events_and_says_so(recorder, url, monkeypatch, caplog):
    """Calls go on; the number of lost events is recorded with the next event."""
    monkeypatch.setattr(module, "_MOST", 3)
    recorder._signalled = True  # the thread is not woken
    for _ in range(5):
        recording.emit("call", "gave-up", Fault(code="TIMEOUT"))
    recorder.flush()
    recording.emit("call", "gave-up", Fault(code="TIMEOUT"))
    recorder.flush()
    lost = asyncio.run(read(url, outcome="lost"))
    assert [event.count for event in lost] == [2]
    assert "dropped" in caplog.text


@pytest.mark.parametrize("place", ["/dev/null/x", "/proc/nothing"])
def test_a_store_that_cannot_be_opened_fails_no_call(place, caplog):
    """A warning is logged, and the calls go on."""
    with amends.record(f"sqlite:///{place}/failures.db") as recorder:
        assert amends.recover(failing(1)) == "done"
        recorder.flush()
    assert "cannot be opened" in caplog.text


def test_a_failing_sink_fails_no_call(caplog):
    """`emit` logs what a sink raises."""

    def sink(*_):
        raise OSError("no")

    recording.set_sink(sink)
    try:
        assert amends.recover(failing(1)) == "done"
    finally:
        recording.set_sink(None)
    assert "could not be recorded" in caplog.text


PROGRAM = """
import os, sys, threading, warnings
import amends
from amends.errors import RateLimitedError
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks beside threads
left = [1]
def call():
    if left[0]:
        left[0] -= 1
        raise RateLimitedError("slow", retry_after=0.001)
amends.recover(call, operation=amends.Operation(name="parent"))
for number in range(3):
    child = os.fork()
    if not child:
        left[0] = 1
        amends.recover(call, operation=amends.Operation(name=f"child-{number}"))
        sys.exit()
    os.waitpid(child, 0)
sys.argv[0] = "ended"
left[0] = 1
amends.recover(call, operation=amends.Operation(name="last"))
"""


def test_the_environment_variable_forks_and_the_end_of_a_program(url):
    """AMENDS_RECORD starts a recorder at the first failure; forked children record; the end waits for the last event."""
    done = run(PROGRAM, url)
    assert (done.returncode, done.stderr) == (0, b"")
    names = [event.name for event in asyncio.run(read(url, outcome="recovered"))]
    assert sorted(names) == ["child-0", "child-1", "child-2", "last", "parent"]


def test_forks_while_it_writes(recorder, url):
    """A child that is forked in the middle of writing can write too: the store is idle during a fork."""
    stop = threading.Event()

    def keep_failing():
        while not stop.is_set():
            recording.emit("call", "gave-up", Fault(code="TIMEOUT"), name="parent")
            stop.wait(0.001)

    thread = threading.Thread(target=keep_failing)
    thread.start()
    try:
        for number in range(5):
            child = os.fork()
            if not child:
                recording.emit("call", "gave-up", Fault(code="TIMEOUT"), name=f"child-{number}")
                os._exit(0 if current_recorder().flush(20) else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        thread.join()
    assert recorder.flush()
    names = {event.name for event in asyncio.run(read(url))}
    assert {f"child-{number}" for number in range(5)} <= names


def test_nothing_is_imported_and_started_without_a_failure(url):
    """A program that fails at nothing pays for nothing."""
    program = "import sys, amends\namends.recover(lambda: 1)\nprint('amends.recorder' in sys.modules)\n"
    done = run(program, url)
    assert done.stdout == b"False\n"


def test_recent_has_the_newest_first(recorder):
    """`recent(limit)`."""
    for number in range(3):
        recording.emit("call", "gave-up", Fault(code="TIMEOUT"), name=str(number))
    assert recorder.flush()
    assert [event.name for event in recorder.recent(2)] == ["2", "1"]
    assert recorder.recent(0) == []


def test_a_recorder_that_was_never_started():
    """It writes nothing and closes."""
    recorder = Recorder("sqlite:///never.db")
    assert recorder.flush()
    recorder.close()


def test_the_thread_is_woken_once_while_notes_keep_coming(tmp_path):
    """After notes it looks again by itself; only a note after none wakes it, so no note is left behind."""

    class Thread:
        woken = 0

        def wake(self):
            self.woken += 1

    recorder = Recorder(f"sqlite:///{tmp_path}/r.db")
    thread = recorder._thread = Thread()
    for woken, notes in ((1, 3), (1, 2), (1, 0), (2, 1), (2, 0), (3, 1)):
        for _ in range(notes):
            recorder.take("call", "retry", Fault(code="TIMEOUT"), {})
        assert thread.woken == (woken if notes else thread.woken)
        assert len(recorder._drain()[0]) == notes
