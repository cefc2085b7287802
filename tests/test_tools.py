"""What a model reads about a failed tool, in any framework."""

import asyncio
import logging

import pytest

from amends import Fault, Operation, recover
from amends.errors import NotFoundError, RateLimitedError
from amends.testing import FakeClock, Script
from amends.tools import failure_text, reporting
from tests.foreign.test_leaks import POISONS, poisoned


def test_a_failure_says_what_to_do():
    """The facts, and the author's words inside the fence."""
    text = failure_text(RateLimitedError("Slow down", retry_after=5))
    assert 'code "RATE_LIMITED"' in text
    assert "wait 5 seconds" in text
    assert "message: Slow down" in text
    assert text == failure_text(RateLimitedError("Slow down", retry_after=5).fault)


def test_what_was_tried_is_said_so_that_nobody_tries_it_again():
    """In our own words, before everything else."""
    with FakeClock(), pytest.raises(RateLimitedError) as caught:
        recover(
            Script(Fault(code="RATE_LIMITED", vocabulary="adcp"), repeat=True),
            operation=Operation(read_only=True),
        )
    first, rest = failure_text(caught.value).split("\n", 1)
    assert first == "The call was made 3 times and given up on: every allowed try was made."
    assert rest == failure_text(caught.value.fault)
    caught.value.history = caught.value.history[:1]
    assert failure_text(caught.value).startswith("The call was made 1 time and")


def test_foreign_exceptions_show_nothing():
    """Hosts, SQL, paths, tokens, prompts."""
    for number in range(200):
        poison = POISONS[number % len(POISONS)]
        text = failure_text(poisoned(f"acme_{number}.Own", poison))
        assert "acme" not in text
        assert poison.encode("ascii", "ignore").decode()[:8] not in text


def test_a_told_tool_answers_instead_of_raising(caplog):
    """Plain and async; what nobody expected is logged, what its author raised is not worth an alarm."""
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
    """It is nobody's answer."""

    @reporting
    async def tool():
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(tool())
