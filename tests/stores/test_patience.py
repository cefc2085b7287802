"""How long the event loop puts up with a disk: by the times it is told, no clock and no disk needed."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from amends.stores.sqlite import patience
from amends.stores.sqlite.patience import Patience

QUICK, SLOW, STALL = patience._QUICK / 2, patience._QUICK * 2, patience._STALL * 2


@pytest.fixture
async def disk():
    """Commits of this store wait for a disk."""
    return Patience(asyncio.get_running_loop(), commits_wait=True)


def shown(disk, count):
    for _ in range(count):
        disk.waited(0.0, QUICK)
        disk.gave()


async def test_without_fsync_there_is_nothing_to_trust():
    assert Patience(asyncio.get_running_loop(), commits_wait=False).trusts


async def test_a_disk_has_to_be_quick_many_times_in_a_row(disk):
    shown(disk, patience._PROOF - 1)
    assert not disk.trusts
    shown(disk, 1)
    assert disk.trusts


@pytest.mark.parametrize("how", ["waited", "waited_in_vain", "did"])
async def test_one_commit_that_is_not_quick_and_it_starts_anew(disk, how):
    shown(disk, patience._PROOF)
    getattr(disk, how)(0.0, SLOW)
    assert not disk.trusts
    shown(disk, patience._PROOF - 1)
    assert not disk.trusts
    shown(disk, 1)
    assert disk.trusts


async def test_every_stall_of_the_loop_doubles_what_has_to_be_shown(disk):
    needed = patience._PROOF
    while needed < patience._MOST_PROOF:
        shown(disk, needed)
        assert disk.trusts
        disk.did(0.0, STALL)
        shown(disk, needed)
        needed *= 2
        assert not disk.trusts
        disk.waited(0.0, SLOW)
    shown(disk, needed)
    disk.did(0.0, STALL)
    shown(disk, needed)
    assert disk.trusts, "no more than that is ever asked for"


async def test_a_stall_is_forgiven_after_long(disk):
    shown(disk, patience._PROOF)
    disk.did(0.0, STALL)
    shown(disk, 2 * patience._PROOF * patience._FORGIVEN)
    disk.waited(0.0, SLOW)
    shown(disk, patience._PROOF)
    assert disk.trusts


async def test_the_loop_lends_its_time_until_others_had_a_turn(disk):
    begin = 0.0
    while disk.left(begin):
        disk.did(begin, begin + QUICK)
        begin += QUICK
    assert begin > patience._LENT
    await asyncio.sleep(0)
    assert disk.left(begin)


async def test_one_write_in_many_is_the_threads_also_where_others_have_turns(disk):
    for _ in range(patience._IN_A_ROW):
        assert disk.left(0.0)
        disk.did(0.0, QUICK)
        await asyncio.sleep(0)
    assert not disk.left(0.0)
    disk.gave()
    assert disk.left(0.0)


async def test_who_was_slow_is_left_alone_for_ever_longer(disk):
    now, pauses = 0.0, []
    for _ in range(12):
        disk.waited_in_vain(now, now)
        spared = now
        while not disk.left(spared):
            spared += patience._SPARED_FIRST / 4
        pauses.append(spared - now)
        now = spared
    assert all(later > 0.99 * before for before, later in pairwise(pauses))
    assert pauses[0] < 2 * patience._SPARED_FIRST
    assert 0.99 * patience._SPARED < pauses[-1] < 1.01 * patience._SPARED
