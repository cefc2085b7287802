"""Tests of the quota of operations without an Upstream."""

import asyncio
from functools import partial

import pytest

from amends import FaultError, Operation, Policy, arecover, errors, recover
from amends.errors import RateLimitedError
from amends.recovery import configure
from amends.recovery.process_quota import CALLEES, SAVED, ProcessQuota, callee_of
from amends.testing import Script


def left(quota, now=0.0, **options):
    """Return how many repeats can be taken at one moment."""
    count = 0
    while quota.take(now, **options) == 0.0:
        count += 1
    return count


def test_successes_and_time_earn_repeats():
    """At most SAVED are saved."""
    quota = ProcessQuota()
    assert left(quota) == SAVED
    quota.successes += 2
    assert left(quota) == 3
    quota.successes += 1000
    assert left(quota) == SAVED
    assert left(quota, now=1000.0) == 5


def test_a_time_out_takes_all_savings():
    """It is repeated itself if ten calls succeeded before. A connection that is lost at once is an ordinary failure."""
    quota = ProcessQuota()
    quota.successes = 9
    assert left(quota, silent=2.0, before=9) == 0
    assert left(quota, before=9) == 0
    quota.successes = 20
    assert left(quota, silent=2.0, before=20) == 1
    assert left(quota, silent=2.0, before=20) == 0
    quota = ProcessQuota()
    quota.successes = 20
    assert left(quota, silent=0.1, before=20) == SAVED


def test_successes_since_the_call_was_sent_make_a_time_out_an_ordinary_failure():
    """They show that the service works and a message was lost."""
    quota = ProcessQuota()
    quota.successes = 20
    assert left(quota, silent=2.0, before=16) == SAVED
    quota = ProcessQuota()
    quota.successes = 20
    assert left(quota, silent=2.0, before=17) == 1


def test_before_the_first_success_short_time_outs_are_repeated_once():
    """A fleet that starts during an overload must not multiply its calls; long time-outs make few calls."""
    quota = ProcessQuota()
    assert left(quota, silent=2.0) == 1
    quota = ProcessQuota()
    assert left(quota, silent=5.0) == SAVED


def test_each_callee_has_its_own_savings():
    """Their number is bounded."""
    quota = ProcessQuota()
    assert left(quota, callee="one") == SAVED
    assert left(quota, callee="two") == SAVED
    assert left(quota, callee="one") == 0
    for number in range(CALLEES):
        quota.take(0.0, callee=number)
    assert left(quota, callee="one") == SAVED


def test_callee_of():
    """The code decides, not the object."""

    class Service:
        def call(self):
            pass

        def __call__(self):
            pass

    makers = [lambda: None for _ in range(2)]
    assert callee_of(makers[0]) == callee_of(makers[1])
    assert callee_of(Service().call) == callee_of(Service().call) == callee_of(partial(Service().call))
    assert callee_of(Service()) is Service
    assert callee_of(print) != callee_of(makers[0])


def failing(error, calls):
    def call():
        calls.append(1)
        raise error

    return call


def test_a_bare_recover_takes_part(clock):
    """When nothing is saved, the repeats of all operations are sent one at a time, with growing gaps, within their waiting."""
    calls = []

    def call():
        calls.append(clock.now())
        raise errors.ServiceUnavailableError("no")

    for _ in range(30):
        with pytest.raises(FaultError):
            recover(call, read_only=True, policy=Policy(max_wait=20))
    held = calls[2 * 5 + 5 :]
    assert (held[-1] - held[0]) / len(held) > 3
    configure(quota=None)
    try:
        before = len(calls)
        with pytest.raises(FaultError):
            recover(call, read_only=True, policy=Policy(attempts=5))
        assert len(calls) == before + 5
        assert calls[-1] - calls[before] < 16
    finally:
        configure(quota=True)


async def test_a_cold_batch_waits_for_one_repeat(clock):
    """Of a hundred calls that fail at once, eight are repeated from savings; the others wait until one is answered."""
    down_until, calls = clock.now() + 3.0, []

    async def call():
        calls.append(clock.now())
        if clock.now() < down_until:
            raise errors.ServiceUnavailableError("no")
        return "done"

    found = await asyncio.gather(*(arecover(call, read_only=True) for _ in range(100)))
    assert found == ["done"] * 100
    assert len(calls) <= 230
    assert clock.now() < down_until + 4


def test_a_function_whose_repeats_are_held_makes_first_calls(clock):
    """Only repeats wait: a first call is made at once, and its success ends nothing for the others."""
    script = Script(*[errors.ServiceUnavailableError("no")] * 20, "done", repeat=True)
    for _ in range(4):
        with pytest.raises(FaultError):
            recover(script, read_only=True)
    began = clock.now()
    assert recover(script, read_only=True) == "done"
    assert clock.now() == began


def test_functions_are_held_apart(clock):
    """The repeats of another function are not held."""
    for _ in range(4):
        with pytest.raises(FaultError):
            recover(
                failing(errors.ServiceUnavailableError("no"), []), read_only=True, policy=Policy(max_wait=20)
            )
    other = Script(errors.ServiceUnavailableError("no"), "done")
    began = clock.now()
    assert recover(other, read_only=True) == "done"
    assert clock.now() < began + 1.1


def test_the_repeats_that_a_rate_limit_asks_for_are_not_counted(clock):
    """The limit bounds them."""
    calls = []
    call = failing(RateLimitedError("wait", retry_after=2), calls)
    for _ in range(10):
        with pytest.raises(FaultError):
            recover(call, read_only=True)
    assert len(calls) == 50


def test_a_program_that_makes_one_call_has_all_tries_after_time_outs(clock):
    """Before the first success a time-out costs little."""
    calls = []

    def call():
        calls.append(1)
        clock.advance(5.0)
        if len(calls) < 5:
            raise errors.TimeoutError("late")
        return "done"

    assert recover(call, operation=Operation(name="one", read_only=True)) == "done"


def test_eight_repeats_are_saved_for_each_of_256_functions():
    """The function that was called longest ago starts again with full savings."""
    quota = ProcessQuota()
    assert left(quota, callee="one") == 8
    for number in range(255):
        quota.take(0.0, callee=number)
    assert left(quota, callee="one") == 0
    for number in range(255):
        quota.take(0.0, callee=number)
    assert left(quota, callee="one") == 0
    for number in range(256):
        quota.take(0.0, callee=number)
    assert left(quota, callee="one") == 8


def test_when_the_next_repeat_is_available():
    """A repeat in 200 seconds without successes; a part of one that is left makes the wait shorter."""
    quota = ProcessQuota()
    assert left(quota, now=50.0) == 8
    assert quota.take(50.0) == 250.0
    assert quota.take(150.0) == 250.0
    assert quota.take(40.0) == pytest.approx(140.0)
    assert quota.take(140.0) == 0.0
    quota.successes = 1
    assert quota.take(140.0) == 0.0
    assert quota.take(140.0) == 240.0


def test_a_success_earns_one_and_a_half_repeats():
    """Successes count once, and for ordinary failures at most eight are saved."""
    quota = ProcessQuota()
    assert left(quota) == 8
    for more, repeats in ((4, 6), (0, 0), (2, 3), (3, 4), (1, 2), (60, 8)):
        quota.successes += more
        assert left(quota, before=quota.successes) == repeats


def test_ten_successes_earn_the_repeat_of_a_time_out():
    """At most one is saved. The one of a process without any success is lost with the first success."""
    for successes, repeats in ((1, 0), (9, 0), (10, 1), (19, 1), (50, 1)):
        quota = ProcessQuota()
        quota.successes = successes
        assert left(quota, silent=2.0, before=successes) == repeats
    quota = ProcessQuota()
    quota.successes = 10
    assert quota.take(0.0, silent=2.0, before=10) == 0.0
    quota.successes = 15
    assert quota.take(0.0, silent=2.0, before=15) == pytest.approx(100.0)
    quota.successes = 20
    assert quota.take(0.0, silent=2.0, before=20) == 0.0


def test_what_counts_as_a_time_out():
    """More than half a second without an answer; before the first success less than five."""
    for silent, repeats in ((0.5, 8), (0.51, 1), (4.9, 1), (5.0, 8)):
        assert left(ProcessQuota(), silent=silent) == repeats
    for silent, repeats in ((0.5, 8), (0.51, 1), (5.0, 1), (60.0, 1)):
        quota = ProcessQuota()
        quota.successes = 20
        assert left(quota, silent=silent, before=20) == repeats


def test_turning_the_quota_on_again():
    """Off, every repeat is allowed. On again, the savings are full and no success is known."""
    quota = ProcessQuota()
    assert left(quota) == 8
    quota.successes = 50
    quota.turn(on=False)
    assert [quota.take(0.0) for _ in range(20)] == [0.0] * 20
    quota.turn(on=True)
    assert quota.successes == 0
    assert left(quota) == 8
