"""The time budget of the event loop for writes, tested with given durations instead of a clock and a disk."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from amends.stores.sqlite import loop_budget
from amends.stores.sqlite.loop_budget import LoopBudget

QUICK, SLOW, STALL = loop_budget._QUICK / 2, loop_budget._QUICK * 2, loop_budget._STALL * 2


@pytest.fixture
async def budget():
    """The budget of a store whose commits wait for a disk."""
    return LoopBudget(asyncio.get_running_loop(), commits_wait=True)


def record_quick(budget, count):
    for _ in range(count):
        budget.record_wait(0.0, QUICK)
        budget.record_handover()


async def test_without_fsync_the_disk_is_trusted():
    assert LoopBudget(asyncio.get_running_loop(), commits_wait=False).trusts_disk


async def test_a_disk_is_trusted_after_many_quick_commits_in_a_row(budget):
    record_quick(budget, loop_budget._REQUIRED - 1)
    assert not budget.trusts_disk
    record_quick(budget, 1)
    assert budget.trusts_disk


@pytest.mark.parametrize("record", ["record_wait", "record_timeout", "record_write"])
async def test_one_slow_commit_resets_the_count(budget, record):
    record_quick(budget, loop_budget._REQUIRED)
    getattr(budget, record)(0.0, SLOW)
    assert not budget.trusts_disk
    record_quick(budget, loop_budget._REQUIRED - 1)
    assert not budget.trusts_disk
    record_quick(budget, 1)
    assert budget.trusts_disk


async def test_each_stall_of_the_loop_doubles_the_required_number(budget):
    required = loop_budget._REQUIRED
    while required < loop_budget._MAX_REQUIRED:
        record_quick(budget, required)
        assert budget.trusts_disk
        budget.record_write(0.0, STALL)
        record_quick(budget, required)
        required *= 2
        assert not budget.trusts_disk
        budget.record_wait(0.0, SLOW)
    record_quick(budget, required)
    budget.record_write(0.0, STALL)
    record_quick(budget, required)
    assert budget.trusts_disk, "the required number has a maximum"


async def test_the_required_number_falls_after_many_quick_commits(budget):
    record_quick(budget, loop_budget._REQUIRED)
    budget.record_write(0.0, STALL)
    record_quick(budget, 2 * loop_budget._REQUIRED * loop_budget._RECOVERY)
    budget.record_wait(0.0, SLOW)
    record_quick(budget, loop_budget._REQUIRED)
    assert budget.trusts_disk


async def test_the_loop_writes_until_its_budget_is_spent(budget):
    begin = 0.0
    while budget.allows_write(begin):
        budget.record_write(begin, begin + QUICK)
        begin += QUICK
    assert begin > loop_budget._BUDGET
    await asyncio.sleep(0)
    assert budget.allows_write(begin)


async def test_one_write_in_many_goes_to_the_thread_also_if_other_tasks_have_turns(budget):
    for _ in range(loop_budget._MAX_CONSECUTIVE):
        assert budget.allows_write(0.0)
        budget.record_write(0.0, QUICK)
        await asyncio.sleep(0)
    assert not budget.allows_write(0.0)
    budget.record_handover()
    assert budget.allows_write(0.0)


async def test_the_pause_after_timeouts_doubles_up_to_a_maximum(budget):
    now, pauses = 0.0, []
    for _ in range(12):
        budget.record_timeout(now, now)
        allowed = now
        while not budget.allows_write(allowed):
            allowed += loop_budget._FIRST_PAUSE / 4
        pauses.append(allowed - now)
        now = allowed
    assert all(later > 0.99 * before for before, later in pairwise(pauses))
    assert pauses[0] < 2 * loop_budget._FIRST_PAUSE
    assert 0.99 * loop_budget._MAX_PAUSE < pauses[-1] < 1.01 * loop_budget._MAX_PAUSE
