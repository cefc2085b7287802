"""Groups of exceptions become one fault, the same way for every binding."""

import pytest

from amends import Fault, FaultError
from amends.core.enums import Executed
from amends.errors import (
    NotFoundError,
    PermissionDeniedError,
    RateLimitedError,
    ServiceUnavailableError,
    ValidationError,
)
from amends.foreign.groups import MAX_PARTS, combine, join, joined, parts_of, single

UNKNOWN = Fault(code="INTERNAL_ERROR")


def fault_of(exc):
    return exc.fault if isinstance(exc, FaultError) else UNKNOWN


def joined_group(*parts):
    return join(ExceptionGroup("tasks", [*parts]), fault_of)


def test_the_same_code_is_kept_with_every_part():
    """The first field, all suggestions once, the longest wait, and each failure in `errors`."""
    fault = joined_group(
        ValidationError("No day", field="/day", suggestions=["Name a day"]),
        ValidationError("No seat", field="/seat", suggestions=["Name a day", "Name a seat"]),
    )
    assert (fault.code, fault.recovery, fault.field) == ("VALIDATION_ERROR", "correctable", "/day")
    assert [part.field for part in fault.errors] == ["/day", "/seat"]
    assert fault.suggestions == ("Name a day", "Name a seat")
    assert "No day" not in fault.message
    limited = joined_group(RateLimitedError(retry_after=3), RateLimitedError(retry_after=9))
    assert (limited.code, limited.retry_after, limited.executed) == ("RATE_LIMITED", 9, "no")


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((RateLimitedError(), ServiceUnavailableError()), ("RATE_LIMITED", "transient", "maybe")),
        ((RateLimitedError(), ValidationError()), ("VALIDATION_ERROR", "correctable", "no")),
        ((ValidationError(), PermissionDeniedError()), ("PERMISSION_DENIED", "terminal", "no")),
        ((ValidationError(), NotFoundError()), ("VALIDATION_ERROR", "correctable", "no")),
        ((ValidationError(), KeyError()), ("VALIDATION_ERROR", "correctable", "maybe")),
        # Nothing can be corrected: the part that may be a bug decides.
        ((ServiceUnavailableError(), KeyError()), ("INTERNAL_ERROR", "uncertain", "maybe")),
        ((ValidationError(executed="yes"), NotFoundError()), ("VALIDATION_ERROR", "correctable", "yes")),
        ((NotFoundError(), NotFoundError(recovery="terminal")), ("NOT_FOUND", "terminal", "no")),
    ],
)
def test_different_failures_follow_the_nested_row(parts, expected):
    """M1: transient only if all are, terminal if any is, else correctable; `executed` is the worst of all."""
    for order in (parts, tuple(reversed(parts))):
        fault = joined_group(*order)
        assert (fault.recovery, fault.executed, len(fault.errors)) == (*expected[1:], 2)
    assert joined_group(*parts).code == expected[0]


def test_a_status_of_all_parts_is_kept():
    """Parts that were raised with different statuses have the status of their code."""
    assert joined_group(NotFoundError(status=410), NotFoundError(status=410)).status == 410
    assert joined_group(NotFoundError(status=410), NotFoundError()).status is None


def test_tries_made_below_count():
    """The largest number, so that layers do not multiply their tries."""
    assert joined([Fault(code="TIMEOUT", attempt=3), Fault(code="TIMEOUT")]).attempt == 3
    assert combine([Fault(code="TIMEOUT"), Fault(code="TIMEOUT")]).attempt is None


def test_a_group_of_one_is_that_exception():
    """Task groups wrap what their only task raised."""
    error = ValidationError("Which day?", field="/day")
    group = BaseExceptionGroup("all", [ExceptionGroup("tasks", [error])])
    assert single(group) is error
    assert join(group, fault_of) == error.fault
    assert single(error) is error


def test_groups_are_bounded():
    """Width and depth of groups are limited, also those of a group that contains itself."""
    assert len(parts_of(ExceptionGroup("", [ValueError()] * 5000))) == MAX_PARTS
    wide = ExceptionGroup("", [ExceptionGroup("", [ValueError()] * 100)] * 100)
    assert len(parts_of(wide)) == MAX_PARTS
    deep: Exception = ValueError()
    for _ in range(5000):
        deep = ExceptionGroup("", [deep])
    assert isinstance(single(deep), ExceptionGroup)

    class Endless(ExceptionGroup):
        exceptions = property(lambda self: (self, self))

    assert len(parts_of(Endless("", [ValueError()]))) == MAX_PARTS


def test_a_group_whose_parts_cannot_be_read_is_one_exception():
    """A class may define `exceptions` as a property that raises."""

    class Broken(ExceptionGroup):
        exceptions = property(lambda self: 1 / 0)

    group = Broken("", [ValueError()])
    assert parts_of(group) == (group,)
    assert Executed.MAYBE is join(group, fault_of).executed
