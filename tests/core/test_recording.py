"""Notes of failures: where they are sent, and when the recorder is started."""

import logging

import pytest

from amends import Fault
from amends.core import recording
from amends.core.recording import active, add_sink, emit, remove_sink, set_sink, start_at_first_failure

FAULT = Fault(code="TIMEOUT")


@pytest.fixture(autouse=True)
def restored(monkeypatch):
    """Start without sinks, and restore those of the process."""
    for name, value in (("_sink", None), ("_starter", None), ("_others", ())):
        monkeypatch.setattr(recording, name, value)


def test_sinks():
    """Every sink gets the note, an added one once."""
    notes = []

    def sink(*note):
        notes.append(note)

    assert not active()
    emit("http server", "sent", FAULT)
    set_sink(sink)
    assert active()
    emit("http server", "sent", FAULT, name="a")
    assert notes == [("http server", "sent", FAULT, {"name": "a"})]
    set_sink(None)
    assert not active()
    add_sink(sink)
    add_sink(sink)
    assert active()
    emit("http server", "sent", FAULT)
    assert len(notes) == 2
    remove_sink(sink)
    assert not active()
    emit("http server", "sent", FAULT)
    assert len(notes) == 2


def test_the_recorder_is_started_at_the_first_failure():
    """The starter runs once, and the sink that it sets gets the note; a sink set before makes it unnecessary."""
    notes, started = [], []

    def starter():
        started.append(1)
        recording._sink = lambda *note: notes.append(note)

    start_at_first_failure(starter)
    assert active()
    assert started == []
    emit("http server", "sent", FAULT)
    emit("http server", "sent", FAULT)
    assert (len(started), len(notes)) == (1, 2)
    start_at_first_failure(starter)
    set_sink(None)
    emit("http server", "sent", FAULT)
    assert len(started) == 1


def test_a_recorder_that_fails_is_logged(caplog):
    """Neither a sink nor a starter that raises reaches the program."""

    def fail(*_):
        raise RuntimeError

    start_at_first_failure(fail)
    add_sink(fail)
    with caplog.at_level(logging.ERROR):
        emit("http server", "sent", FAULT)
        emit("http server", "sent", FAULT)
    assert [record.getMessage() for record in caplog.records] == [
        "the recorder could not be started",
        "a failure could not be recorded",
        "a failure could not be recorded",
    ]
