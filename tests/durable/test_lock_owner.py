"""The proof that a process has ended."""

import doctest
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

from amends import stores
from amends.durable import lock_owner
from amends.durable.lock_owner import FOLDER, LockOwner, owner_of

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no such locks; leases end by time"
)

HOLD = """
import sys
from amends.durable.lock_owner import LockOwner
owner = LockOwner(sys.argv[1])
print(owner.id, flush=True)
sys.stdin.read()
"""


def test_its_examples():
    """The examples in the docstrings hold."""
    assert doctest.testmod(lock_owner).failed == 0


def hold(folder):
    """Start a process that holds its lock, and return it with its id."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    return process, process.stdout.readline().strip()


def test_only_the_end_of_a_process_is_its_end(tmp_path):
    """A process that lives or is stopped has not ended; one that was killed has."""
    ours = LockOwner(tmp_path)
    process, id = hold(tmp_path)
    try:
        assert not ours.ended(id)
        os.kill(process.pid, signal.SIGSTOP)
        assert not ours.ended(id)
        os.kill(process.pid, signal.SIGCONT)
    finally:
        process.kill()
        process.communicate()
    assert ours.ended(id)
    assert not ours.ended(ours.id)


@pytest.mark.parametrize("id", ["", "x", "0" * 32, "../other", "a" * 33, "\0", "é" * 32])
def test_what_is_not_known_has_not_ended(tmp_path, id):
    """An id without a file, and any other text, proves nothing."""
    assert not LockOwner(tmp_path).ended(id)


def _child(folder, id, found):
    found.put((owner_of_folder(folder).id != id, lock_owner._owners[folder].ended(id)))


def owner_of_folder(folder):
    owner = lock_owner._owners.get(folder)
    if owner is None or owner.pid != os.getpid():
        owner = lock_owner._owners[folder] = LockOwner(folder)
    return owner


def test_a_fork_has_its_own_lock(tmp_path):
    """A process that was forked does not count as its parent, whose lock it shares."""
    folder = str(tmp_path)
    parent = owner_of_folder(folder)
    context = multiprocessing.get_context("fork")
    found = context.Queue()
    child = context.Process(target=_child, args=[folder, parent.id, found])
    child.start()
    assert found.get(timeout=30) == (True, False)
    child.join()


def test_old_files_are_deleted(tmp_path):
    """The file of a process that ended long ago is deleted; that of one that lives is not."""
    process, id = hold(tmp_path)
    process.kill()
    process.communicate()
    living = LockOwner(tmp_path)
    for name in (id, living.id):
        os.utime(tmp_path / name, (time.time() - 2 * 86400,) * 2)
    LockOwner(tmp_path)
    assert not (tmp_path / id).exists()
    assert (tmp_path / living.id).exists()


async def test_only_a_store_in_a_file_has_an_owner(tmp_path):
    """Leases in memory and on servers end by time."""
    async with await stores.open("memory:") as memory:
        assert owner_of(memory) is None
    async with await stores.open(f"sqlite:///{tmp_path}/a.db") as store:
        owner = owner_of(store)
        assert owner is owner_of(store)
        assert (tmp_path / f"a.db{FOLDER}" / owner.id).exists()
