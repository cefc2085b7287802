"""`summarise`: figures by upstream and code, and what recovery saved."""

from amends import Decision, Fault
from amends.core.enums import Action
from amends.recorder import CodeCount, Event, Summary, summarise

VERIFY = Decision(action=Action.VERIFY, delay=None, reason="effect-unknown")


def test_no_events():
    """All figures are empty."""
    assert summarise([]) == Summary()


def test_figures():
    """Upstreams with the most failures first; calls that were not repeated; bytes; lost events."""
    limited, timeout = Fault(code="RATE_LIMITED"), Fault(code="TIMEOUT")
    events = [
        Event(at=5.0, where="gateway", outcome="passed-on", fault=timeout, upstream="shop", decision=VERIFY),
        Event(at=1.0, where="gateway", outcome="retry", fault=limited, upstream="seats", wait=2.0),
        Event(at=3.0, where="gateway", outcome="recovered", fault=limited, upstream="seats", elapsed=2.0),
        Event(
            at=4.0,
            where="gateway",
            outcome="gave-up",
            fault=timeout,
            upstream="seats",
            facts={"bytes_saved": 70},
        ),
        Event(at=6.0, where="recorder", outcome="lost", fault=limited, count=9),
    ]
    found = summarise(events)
    assert (found.since, found.until, found.failures, found.recovered) == (1.0, 6.0, 3, 1)
    assert (found.tries, found.waited, found.duplicates_avoided, found.bytes_saved, found.lost) == (
        1,
        2.0,
        1,
        70,
        9,
    )
    assert (found.recovery_p50, found.recovery_p99) == (2.0, 2.0)
    assert [(each.upstream, each.failures, each.recovered) for each in found.upstreams] == [
        ("seats", 2, 1),
        ("shop", 1, 0),
    ]
    assert found.codes == (CodeCount("TIMEOUT", 2), CodeCount("RATE_LIMITED", 1))
    assert found.where == {"gateway": 4, "recorder": 1}
