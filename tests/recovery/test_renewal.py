"""One renewal of credentials for all operations that were refused."""

from amends.recovery.async_library import ThreadWaiter
from amends.recovery.renewal import Renewal, Turn


def test_one_leads_and_the_others_wait():
    """The first leads; the others wait until it has ended, and go on with the new credentials."""
    renewal, first, second = Renewal(), ThreadWaiter(), ThreadWaiter()
    assert renewal.ask(first, 0, 0) is Turn.LEAD
    assert renewal.ask(second, 0, 0) is Turn.WAIT
    assert renewal.waiters == {second}
    renewal.end(True)
    assert second.event.is_set()
    assert (renewal.waiters, renewal.leading) == (set(), False)
    assert (renewal.generation, renewal.failures) == (1, 0)
    assert renewal.ask(second, 0, 0) is Turn.DONE
    assert renewal.ask(second, 1, 0) is Turn.LEAD


def test_a_failed_renewal_ends_the_waits():
    """Operations that knew of fewer failures give up; one that asks afterwards tries again."""
    renewal, first, second = Renewal(), ThreadWaiter(), ThreadWaiter()
    renewal.ask(first, 0, 0)
    renewal.ask(second, 0, 0)
    renewal.end(False)
    assert (renewal.generation, renewal.failures) == (0, 1)
    assert renewal.ask(second, 0, 0) is Turn.FAILED
    assert renewal.ask(second, 0, 1) is Turn.LEAD


def test_an_interrupted_renewal_says_nothing():
    """Another operation leads; neither successes nor failures are counted."""
    renewal, first, second = Renewal(), ThreadWaiter(), ThreadWaiter()
    renewal.ask(first, 0, 0)
    renewal.ask(second, 0, 0)
    renewal.end(None)
    assert second.event.is_set()
    assert (renewal.generation, renewal.failures) == (0, 0)
    assert renewal.ask(second, 0, 0) is Turn.LEAD
