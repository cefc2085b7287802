"""Tests of `amends.tools`: the text that a model gets when a tool fails."""

import asyncio
import logging

import pytest

from amends import Fault, Operation, recover
from amends.errors import NotFoundError, RateLimitedError
from amends.testing import FakeClock, Script
from amends.tools import failure_text, reporting
from tests.foreign.test_leaks import POISONS, poisoned


def test_the_text_has_facts_and_message():
    """The facts are outside the fence, the author's message is inside."""
    text = failure_text(RateLimitedError("Slow down", retry_after=5))
    assert "Failed: RATE_LIMITED." in text
    assert "Wait 5 seconds" in text
    assert "message: Slow down" in text
    assert text == failure_text(RateLimitedError("Slow down", retry_after=5).fault)


def test_the_text_begins_with_the_attempts():
    """It begins with the number of calls, if there was more than one."""
    with FakeClock(), pytest.raises(RateLimitedError) as caught:
        recover(
            Script(Fault(code="RATE_LIMITED", vocabulary="adcp"), repeat=True),
            operation=Operation(read_only=True),
        )
    assert failure_text(caught.value) == f"Tried 3 times. {failure_text(caught.value.fault)}"
    caught.value.history = caught.value.history[:1]
    assert failure_text(caught.value) == failure_text(caught.value.fault)


def test_the_text_of_foreign_exceptions_is_not_shown():
    """The text of a foreign exception, which may contain hosts, SQL, paths or tokens, is left out."""
    for number in range(200):
        poison = POISONS[number % len(POISONS)]
        text = failure_text(poisoned(f"acme_{number}.Own", poison))
        assert "acme" not in text
        assert poison.encode("ascii", "ignore").decode()[:8] not in text


def test_reporting_returns_the_text_instead_of_raising(caplog):
    """Works for plain and async functions; logs a FaultError at INFO, others at ERROR with their traceback."""
    caplog.set_level(logging.INFO, "amends.tools")

    @reporting
    def plain(day: str) -> str:
        """Book a day."""
        if day == "never":
            raise NotFoundError("No such day")
        return day

    @reporting
    async def later(day: str) -> str:
        if day == "never":
            raise OSError("db.internal is down")
        return day

    assert plain("Monday") == "Monday"
    assert asyncio.run(later("Monday")) == "Monday"
    assert "No such day" in plain(day="never")
    assert "internal" not in asyncio.run(later("never"))
    assert (plain.__name__, plain.__doc__) == ("plain", "Book a day.")
    assert [(record.levelname, record.exc_info is None) for record in caplog.records] == [
        ("INFO", True),
        ("ERROR", False),
    ]


def test_cancellation_passes_through():
    """CancelledError is not an Exception, so it is raised."""

    @reporting
    async def tool():
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(tool())


def test_reporting_does_not_say_that_nothing_happened():
    """A tool whose inner call was refused may have done something before that call (M3)."""

    @reporting
    def pay():
        raise ConnectionRefusedError

    assert "may have had its effect" in pay()
