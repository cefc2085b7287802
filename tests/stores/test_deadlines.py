"""Deadlines on the clock since boot: on this machine, after a reboot, and made by another machine."""

import pytest

from amends import stores
from amends.durable.keys import Claim, KeyInDoubt, KeyRecord, KeyRunning, Keys
from amends.stores.clock import NO_BOOT
from amends.stores.deadlines import Deadline, Deadlines
from tests.stores.clocks import SetClock


def test_a_deadline_of_this_machine():
    """The clock since boot decides; changes of the wall clock of any size do not."""
    clock = SetClock()
    deadlines = Deadlines(clock, one_machine=True)
    deadline = deadlines.start(30)
    for step in (86_400.0, -2 * 86_400.0, 4e9):
        clock.now += step
        assert deadlines.left(deadline, "k") == 30
    clock.up += 29
    assert deadlines.left(deadline, "k") == 1
    clock.up += 1
    assert deadlines.left(deadline, "k") == 0


def test_a_deadline_of_an_earlier_boot():
    """On one machine it is over. If boots have no ids, the whole length has to pass."""
    clock = SetClock()
    deadline = Deadlines(clock).start(30)
    clock.booted, clock.up = "second boot", 3.0
    assert Deadlines(clock, one_machine=True).left(deadline, "k") == 0
    unknown = Deadline(NO_BOOT, deadline.end, deadline.length)
    assert 29 < Deadlines(clock, one_machine=True).left(unknown, "k") <= 30


def test_a_deadline_of_another_machine():
    """It is over when this process has seen it unchanged for its length; a renewal or another owner begins again."""
    clock, other = SetClock(), SetClock()
    other.booted, other.now, other.up = "another machine", 5e9, 9e9
    deadlines, theirs = Deadlines(clock), Deadlines(other)
    deadline = theirs.start(30)
    assert deadlines.left(deadline, "k") == 30
    clock.up += 20
    assert deadlines.left(deadline, "k") == 10
    other.up += 20
    renewed = theirs.start(30)
    assert deadlines.left(renewed, "k") == 30
    clock.up += 10
    assert (deadlines.left(deadline, "k"), deadlines.left(renewed, "k"), deadlines.left(deadline, "l")) == (
        0,
        20,
        30,
    )


def test_what_is_watched_is_bounded():
    """A forgotten deadline is watched from the start, so that it ends late and never early."""
    clock = SetClock()
    deadlines = Deadlines(clock)
    first = Deadline("elsewhere", 1.0, 30.0)
    assert deadlines.left(first, "first") == 30
    clock.up += 29
    for number in range(10_001):
        deadlines.left(Deadline("elsewhere", 1.0, 30.0), str(number))
    assert deadlines.left(first, "first") == 30


class Owner:
    """A process of a simulated system, with the proof that others have ended."""

    def __init__(self, id, ended):
        self.id, self._ended = id, ended

    def ended(self, id):
        return id in self._ended


@pytest.fixture(params=["memory", "sqlite"])
async def timed(request, tmp_path):
    clock = SetClock()
    url = "memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/k.db"
    async with await stores.open(url, clock=clock) as store:
        yield store, clock


def keys_in(store, **options):
    return Keys(store, "k", KeyRecord, expires_in=86_400.0, lease=30.0, **options)


async def no(record):
    return False


async def test_a_step_of_the_wall_clock_frees_no_key(timed):
    """A minute or a day forwards or backwards: the work still runs, and its outcome is stored."""
    store, clock = timed
    keys = keys_in(store)
    claim = await keys.claim("a", "f")
    for step in (60.0, 86_400.0, -3 * 86_400.0, 86_400.0):
        clock.now += step
        with pytest.raises(KeyRunning) as running:
            await keys.claim("a", "f", verify=no)
        assert running.value.left == 30.0
        await keys.renew(claim)
    await keys.complete(claim)
    assert (await keys.claim("a", "f")).state == "done"


async def test_no_is_not_believed_before_the_time_limit(timed):
    """The lease is over after 30 seconds, and the lost call may act for 60, also if the wall clock says otherwise."""
    store, clock = timed
    keys = keys_in(store)
    await keys.claim("a", "f")
    clock.up += 31
    clock.now += 86_400
    for left in (29.0, 9.0):
        with pytest.raises(KeyRunning) as lost:
            await keys.claim("a", "f", verify=no)
        assert (lost.value.lost, lost.value.left) == (True, left)
        clock.up += 20
    assert isinstance(await keys.claim("a", "f", verify=no), Claim)


async def test_a_longer_time_limit_is_in_the_record(timed):
    """A process with other settings than the lost one believes the record."""
    store, clock = timed
    fresh = KeyRecord(state="running", fingerprint="f")
    await keys_in(store).acquire("a", fresh, call_limit=300.0)
    clock.up += 200
    with pytest.raises(KeyRunning) as lost:
        await keys_in(store, call_limit=1.0).claim("a", "f", verify=no)
    assert lost.value.left == 100.0


async def test_a_process_that_is_proved_to_have_ended_has_no_lease(timed):
    """Its key is in doubt at once; that of another process is not, and neither is one without an owner."""
    store, _ = timed
    ended = set()
    first = keys_in(store, owner=Owner("first", ended))
    await first.claim("a", "f")
    await keys_in(store).claim("b", "f")
    second = keys_in(store, owner=Owner("second", ended))
    for key in ("a", "b"):
        with pytest.raises(KeyRunning):
            await second.claim(key, "f")
    ended.update(("first", ""))
    with pytest.raises(KeyInDoubt):
        await second.claim("a", "f")
    with pytest.raises(KeyRunning):
        await second.claim("b", "f")
