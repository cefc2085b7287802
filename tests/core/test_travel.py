"""What travels beside an error: tries and `executed` (M8)."""

from amends import Fault
from amends.core import travel
from amends.core.enums import Executed
from amends.core.fault import Origin


def test_tries_and_executed_are_written_and_read():
    """`executed` is always written, tries only if there were several."""
    fault = Fault(code="RATE_LIMITED", vocabulary="adcp", executed="maybe", attempt=4)
    assert travel.write(fault) == {"amends/executed": "maybe", "amends/tries": 4}
    bare = Fault(code="RATE_LIMITED", vocabulary="adcp", origin=Origin("adcp"))
    assert travel.write(bare) == {"amends/executed": "no"}
    found = travel.read(bare, travel.write(fault))
    assert (found.executed, found.attempt) == (Executed.MAYBE, 4)
    assert travel.read(bare, {"amends/tries": 2.0}).attempt == 2


def test_wrong_values_count_as_absent():
    """The members come from outside."""
    fault = Fault(code="TIMEOUT", attempt=2)
    for wrong in (None, 7, [], "amends/tries", {}, {1: 2}):
        assert travel.read(fault, wrong) is fault
    for value in (None, True, "3", -1, 0, 2.5, float("nan"), float("inf"), [3], {}):
        assert travel.read(fault, {"amends/tries": value, "amends/executed": value}) is fault
    assert travel.read(fault, {"amends/tries": 10**400}).attempt == 1_000_000


def test_no_tries_are_no_count():
    """0 stays 0; a larger count than a million is cut."""
    assert [travel.count(value) for value in (0, 0.0, 1, 10**9)] == [0, 0, 1, 10**6]


def test_one_try_is_not_written():
    """Two are; what is read replaces only what was sent."""
    for attempt, written in ((None, {}), (1, {}), (2, {"amends/tries": 2})):
        fault = Fault(code="TIMEOUT", attempt=attempt)
        assert travel.write(fault) == {"amends/executed": "maybe", **written}
    fault = Fault(code="TIMEOUT", attempt=2, executed="yes")
    assert travel.read(fault, {"amends/executed": "no"}).attempt == 2
    assert travel.read(fault, {"amends/tries": 5}).executed is Executed.YES
    assert [travel.count(value) for value in (10**6, 10**6 + 1, 1.5, -0.0)] == [10**6, 10**6, 0, 0]
