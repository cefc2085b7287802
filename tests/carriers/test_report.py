"""The report of a reading: found, failed, fatal, and the decision (M6)."""

import pytest

from amends.carriers.report import Report, report
from amends.core.decision import NON_FATAL, NOTHING_FOUND
from amends.core.enums import Action, Executed
from amends.core.fault import Fault
from amends.core.reading import FAILED, NOT_FAILED, Reading

ERROR = {"code": "TIMEOUT"}
LATE = Fault(code="TIMEOUT", message="late", vocabulary="task", executed=Executed.MAYBE, retry_after=3.0)


def reading(fault, **members):
    """Return the reading of a failed response with this fault."""
    return Reading(failed=True, fault=fault, path="task", error=ERROR, fatal=True, **members)


@pytest.mark.parametrize("bare", [FAILED, NOT_FAILED])
def test_nothing_found(bare):
    """Without a structured error the decision is NOTHING_FOUND, whether the response failed or not."""
    assert report("task", bare) == Report(
        found=False, failed=bare.failed, fatal=bare.fatal, via="task", vendor=None, path=None, error=None, fault=None,
        decision=NOTHING_FOUND, decision_unsafe=NOTHING_FOUND,
    )  # fmt: skip


def test_a_failure():
    """The report has the received error, the fault, and the decision for a first failure without jitter."""
    found = report("task", reading(LATE))
    assert (found.found, found.failed, found.fatal, found.via, found.path) == (
        True,
        True,
        True,
        "task",
        "task",
    )
    assert found.error is ERROR
    assert found.fault is LATE
    assert (found.decision.action, found.decision.delay) == (Action.RETRY, 3.0)


def test_an_unsafe_operation_is_not_retried():
    """`--unsafe`: if the effect is unknown, the decision is not to retry."""
    assert report("task", reading(LATE), safe=False).decision.action is not Action.RETRY


def test_an_error_in_a_successful_response():
    """An error in a response that did not fail gives the decision NON_FATAL."""
    non_fatal = Reading(failed=False, fault=LATE, path="x", error=ERROR, fatal=False)
    found = report(None, non_fatal)
    assert (found.failed, found.fatal, found.decision) == (False, False, NON_FATAL)


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"details": {}}, (None, None)),
        ({"intent": {}}, (None, None)),
        ({"details": {}, "intent": {"state": "unknown"}}, (None, {"state": "unknown"})),
        ({"details": {"a": 1}, "intent": {}}, ({"a": 1}, None)),
        ({"details": {"a": 1}, "intent": {"state": "unknown"}}, ({"a": 1}, {"state": "unknown"})),
    ],
)
def test_empty_members_are_left_out(given, left):
    """Empty `details` and `intent` are left out of the fault; `error` still has them."""
    fault = report("task", reading(Fault(code="TIMEOUT", message="late", vocabulary="task", **given))).fault
    assert (fault.details, fault.intent) == left
