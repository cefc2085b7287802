"""What must not be done twice is stopped when the hold on its task runs out: at once, once, and by nobody else's will."""

import asyncio

import pytest

from amends.tasks.journal import Fenced
from amends.tasks.lease_guard import held


class Hold:
    """A lease as far as it is looked at: it runs out at a time of the loop's clock."""

    def __init__(self, seconds):
        self._until = asyncio.get_running_loop().time() + seconds

    @property
    def expires_in(self):
        return self._until - asyncio.get_running_loop().time()

    def extend(self, seconds):
        self._until += seconds


async def for_ever(heard):
    try:
        await asyncio.Event().wait()
    finally:
        heard.append("stopped")


async def test_it_is_stopped_when_the_hold_runs_out():
    """And whoever held it can go on, as if it had never been cancelled."""
    heard = []
    with pytest.raises(Fenced):
        await held(Hold(0.01), for_ever(heard))
    assert heard == ["stopped"]
    assert asyncio.current_task().cancelling() == 0
    await asyncio.sleep(0)


async def test_one_that_ran_out_before_it_began():
    """It does not get further than its first wait."""
    heard = []
    with pytest.raises(Fenced):
        await held(Hold(-1), for_ever(heard))
    assert heard == ["stopped"]


async def test_it_goes_on_for_as_long_as_the_hold_is_extended():
    """The hold is looked at again when it would have run out, and when it does."""
    hold = Hold(0.01)

    async def work():
        hold.extend(3600)
        await asyncio.sleep(0.03)
        hold.extend(-7200)
        return "done"

    assert await held(hold, work()) == "done"


async def test_it_is_stopped_when_an_extended_hold_runs_out():
    """However often it was."""
    hold, heard = Hold(0.01), []

    async def work():
        hold.extend(0.05)
        await for_ever(heard)

    with pytest.raises(Fenced):
        await held(hold, work())
    assert heard == ["stopped"]


async def test_nothing_is_left_of_a_hold_after_the_work():
    """Its end, later on, stops nobody."""
    assert await held(Hold(0.01), asyncio.sleep(0, "done")) == "done"
    await asyncio.sleep(0.03)
    with pytest.raises(ValueError, match="own"):
        await held(Hold(0.01), failing())
    await asyncio.sleep(0.03)


async def failing():
    raise ValueError("its own failure")


async def slow_to_stop(heard):
    try:
        await for_ever(heard)
    finally:
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(60)  # until the hold runs out


@pytest.mark.parametrize("work", [for_ever, slow_to_stop])
async def test_somebody_elses_cancellation_is_theirs(work):
    """Also where the hold runs out while the work is being stopped."""
    heard = []
    task = asyncio.ensure_future(held(Hold(0.05), work(heard)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (heard, task.cancelled()) == (["stopped"], True)


async def test_work_that_will_not_be_stopped_has_done_what_it_did():
    """The log decides whether it counts."""

    async def stubborn():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done all the same"

    assert await held(Hold(0.01), stubborn()) == "done all the same"
    assert asyncio.current_task().cancelling() == 0
