"""`flush` says whether the events are in the store."""

import sqlite3

import amends
from amends import Fault
from amends.core import recording


def fail(number=1):
    for _ in range(number):
        recording.emit("call", "gave-up", Fault(code="TIMEOUT"), name="search")


def test_written(tmp_path):
    """True when they can be read."""
    with amends.record(f"sqlite:///{tmp_path}/r.db") as recorder:
        fail()
        assert recorder.flush(20)
        assert len(recorder.recent()) == 1
        assert recorder.flush(20)


def test_a_damaged_file(tmp_path):
    """It is not SQLite's: nothing is written, and flush says so."""
    path = tmp_path / "r.db"
    path.write_bytes(b"not a database" * 1000)
    with amends.record(f"sqlite:///{path}") as recorder:
        fail()
        assert not recorder.flush(20)


def test_a_file_that_is_damaged_while_it_is_open(tmp_path):
    """Its table is gone: events are lost, and flush says so; nothing more is lost after it."""
    path = tmp_path / "r.db"
    with amends.record(f"sqlite:///{path}") as recorder:
        fail()
        assert recorder.flush(20)
        with sqlite3.connect(path) as other:
            for (name,) in other.execute("select name from sqlite_master where type='table'").fetchall():
                if not name.startswith("sqlite_"):
                    other.execute(f'drop table "{name}"')
        other.close()
        fail(3)
        assert not recorder.flush(20)


def test_a_folder_that_cannot_be_written(tmp_path):
    """There is no room or no right: the same."""
    (tmp_path / "file").write_text("")
    with amends.record(f"sqlite:///{tmp_path}/file/r.db") as recorder:
        fail()
        assert not recorder.flush(20)


def test_too_many_at_once(tmp_path, monkeypatch):
    """What did not fit into the queue was not written."""
    from amends.recorder import recorder as module

    monkeypatch.setattr(module, "_MOST", 2)
    with amends.record(f"sqlite:///{tmp_path}/r.db") as recorder:
        recorder._signalled = True  # the thread does not take them meanwhile
        fail(5)
        recorder._signalled = False
        assert not recorder.flush(20)
