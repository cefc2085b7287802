"""What the task format has no member for travels in `details.amends`, and is removed again by the reader (M8)."""

import pytest

from amends.core.fault import Fault
from amends.dialects import task
from amends.dialects.details_beside import split_details


@pytest.mark.parametrize(
    ("fault", "beside"),
    [
        (Fault(code="TIMEOUT", vocabulary="task"), None),
        (Fault(code="TIMEOUT", vocabulary="task", attempt=1), None),
        (Fault(code="TIMEOUT", vocabulary="task", attempt=3), {"tries": 3}),
        (Fault(code="TIMEOUT", vocabulary="task", executed="no"), {"executed": "no"}),
        (Fault(code="RATE_LIMITED", vocabulary="task", retry_after=1.5), {"retry_after_ms": 1500}),
        (
            Fault(code="TIMEOUT", vocabulary="task", retry_after=2),
            {"retry_after_ms": 2000, "executed": "maybe"},
        ),
        (Fault(code="AGENT_BUSY", vocabulary="task", actor="provider"), {"actor": "provider"}),
        (Fault(code="AGENT_BUSY", vocabulary="task", details={"a": 1}, attempt=2), {"tries": 2}),
    ],
)
def test_only_what_a_reader_could_not_derive_is_written(fault, beside):
    written = task.encode_beside(fault)
    assert (written.get("details") or {}).get("amends") == beside
    read = task.decode(written)
    for name in ("executed", "retry_after", "actor", "details"):
        assert getattr(read, name) == getattr(fault, name), name
    assert (read.attempt or 1) == (fault.attempt or 1)


@pytest.mark.parametrize(
    "given",
    [
        *({"tries": value} for value in (0, -1, True, "3", 1.5, 10**9, None)),
        *({"retry_after_ms": value} for value in (0, -5, "1", 10**15, float("nan"))),
        {"executed": "perhaps"},
        {"executed": ["no"]},
        {"actor": 3},
        {"actor": {}},
    ],
)
def test_members_of_the_wrong_type_are_ignored(given):
    details, beside = split_details({"a": 1, "amends": given})
    assert (details, set(beside)) == ({"a": 1}, {None})


@pytest.mark.parametrize("given", [None, {}, {"amends": "text"}, {"amends": None}, {"other": 1}])
def test_other_details_are_left_alone(given):
    assert split_details(given)[0] == given
