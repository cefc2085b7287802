"""What a reading amounts to: found, failed, fatal, and what to do about it (M6)."""

import pytest

from amends.carriers.reading import FAILED, NOT_FAILED, Reading
from amends.carriers.report import Report, report
from amends.core.decision import NON_FATAL, NOTHING_FOUND
from amends.core.enums import Action, Executed
from amends.core.fault import Fault

ERROR = {"code": "TIMEOUT"}
LATE = Fault(code="TIMEOUT", message="late", vocabulary="task", executed=Executed.MAYBE, retry_after=3.0)


def reading(fault, **members):
    """A failed response with this fault."""
    return Reading(failed=True, fault=fault, path="task", error=ERROR, fatal=True, **members)


@pytest.mark.parametrize("bare", [FAILED, NOT_FAILED])
def test_nothing_found(bare):
    """Without a structured error nothing is decided, whether it failed or not."""
    assert report("task", bare) == Report(
        found=False, failed=bare.failed, fatal=bare.fatal, via="task", path=None, error=None, fault=None,
        decision=NOTHING_FOUND,
    )  # fmt: skip


def test_a_failure():
    """The object as received, the fault, and a decision without jitter for a first failure."""
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


def test_what_may_have_happened_is_not_repeated():
    """`--unsafe`: a repeat that is not safe is not advised."""
    assert report("task", reading(LATE), safe=False).decision.action is not Action.RETRY


def test_a_remark_is_no_failure():
    """An error on a response that did not fail asks for nothing."""
    remark = Reading(failed=False, fault=LATE, path="x", error=ERROR, fatal=False)
    found = report(None, remark)
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
    """What was received empty stands in `error` only."""
    fault = report("task", reading(Fault(code="TIMEOUT", message="late", vocabulary="task", **given))).fault
    assert (fault.details, fault.intent) == left
