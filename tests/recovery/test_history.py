"""The records of attempts."""

import doctest
import pickle

from amends import Decision, Fault
from amends.core.enums import Action
from amends.recovery import history
from amends.recovery.history import Attempt, History


def test_its_examples():
    """The examples in the docstrings hold."""
    assert doctest.testmod(history).failed == 0


def test_pickling_leaves_exceptions_out():
    """An attempt is pickled without `error` and `result`, which may be objects of other libraries."""
    attempt = Attempt(
        number=2,
        started=1.0,
        duration=0.5,
        parked=3.0,
        fault=Fault(code="TIMEOUT"),
        error=lambda: None,
        result=lambda: None,
        wait=2.0,
    )
    copy = pickle.loads(pickle.dumps(attempt))
    assert (copy.error, copy.result) == (None, None)
    assert (copy.number, copy.started, copy.duration, copy.parked, copy.wait) == (2, 1.0, 0.5, 3.0, 2.0)
    assert copy.fault == attempt.fault


def test_the_table():
    """A row has the code and status, the decision, and all seconds waited: in the queue and after the call."""
    decision = Decision(action=Action.RETRY, delay=1.0, reason="hint")
    failed = Attempt(
        number=1,
        started=0.0,
        duration=0.25,
        parked=2.0,
        wait=1.0,
        fault=Fault(code="RATE_LIMITED", status=429),
        decision=decision,
    )
    lines = str(History([failed, Attempt(number=2, started=4.0, duration=0.1)])).splitlines()
    assert lines[1].split() == ["1", "0.25", "s", "RATE_LIMITED", "429", "retry", "(hint)", "3", "s"]
    assert lines[2].split() == ["2", "0.1", "s", "-"]
    assert len(lines) == 3
