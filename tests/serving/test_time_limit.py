"""A time limit for plain functions."""

import threading
from contextvars import ContextVar

import pytest

from amends.errors import TimeoutError as TimedOutError
from amends.serving.time_limit import call_within

CURRENT: ContextVar[str] = ContextVar("current", default="")


def test_the_result_and_the_context():
    """The function runs with the caller's context."""
    token = CURRENT.set("task-42")
    try:
        assert call_within(60, CURRENT.get) == "task-42"
    finally:
        CURRENT.reset(token)


@pytest.mark.parametrize("error", [ValueError("x"), TimeoutError("its own"), KeyboardInterrupt()])
def test_what_the_function_raises(error):
    """It is raised in the calling thread, unchanged."""

    def fail():
        raise error

    with pytest.raises(type(error)) as raised:
        call_within(60, fail)
    assert raised.value is error


def test_the_time_is_over():
    """The caller goes on with an effect that is not known, and the thread does not keep the process alive."""
    end, threads = threading.Event(), []

    def wait():
        threads.append(threading.current_thread())
        end.wait(60)

    try:
        with pytest.raises(TimedOutError) as raised:
            call_within(0.01, wait)
    finally:
        end.set()
    assert raised.value.fault.executed == "maybe"
    assert threads[0].daemon
