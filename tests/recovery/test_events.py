"""Tests of the events of recovery: they contain names and numbers, never values."""

import logging
from contextlib import contextmanager

import msgspec
import pytest

from amends import Fault, FaultError, Operation, recover
from amends.core.decision import REASONS
from amends.errors import RateLimitedError, ServiceUnavailableError
from amends.recovery import Event, add_hook, remove_hook, set_hooks
from amends.recovery.events import only_hooks, plain_url
from amends.testing import FakeClock, Script

READ = Operation(name="read", read_only=True)


def test_every_step_sends_an_event(clock, seen):
    """An event has operation, code, recovery, attempt, delay, reason and elapsed time."""
    recover(Script(RateLimitedError("secret", retry_after=1.5), "x"), "argument", operation=READ)
    assert [event.kind for event in seen] == ["retry", "recovered"]
    assert seen[0] == Event(
        kind="retry",
        operation="read",
        code="RATE_LIMITED",
        vocabulary="everyday",
        recovery="transient",
        attempt=1,
        delay=1.5,
        reason="hint",
        elapsed=0.0,
    )
    assert seen[1].elapsed == 1.5
    with pytest.raises(FaultError):
        recover(Script(ServiceUnavailableError()))
    assert (seen[-1].kind, seen[-1].reason) == ("gave-up", "effect-unknown")
    assert all(event.reason in REASONS for event in seen)


def test_no_values_in_events(clock, seen):
    """Events contain no arguments, messages, results or details."""
    fault = Fault(code="RATE_LIMITED", message="s3cret", details={"s3cret": 1}, suggestions=("s3cret",))
    recover(Script(fault, "s3cret"), "s3cret", token="s3cret")
    assert b"s3cret" not in msgspec.json.encode(seen)


def test_the_default_hook_logs(clock, caplog):
    """Events are logged at INFO to amends.recovery, with their fields on the record."""
    caplog.set_level(logging.INFO, "amends.recovery")
    recover(Script(RateLimitedError(retry_after=1.5), "x"), operation=READ)
    record = caplog.records[0]
    assert record.getMessage() == "retry read: RATE_LIMITED after attempt 1 (hint, 1.5 s)"
    assert record.amends["reason"] == "hint"
    with pytest.raises(FaultError):
        recover(Script(Fault(code="NOT_FOUND")))
    assert caplog.records[-1].getMessage() == "gave-up operation: NOT_FOUND after attempt 1 (correctable)"


def test_nothing_is_formatted_below_info(clock, caplog):
    """If INFO is disabled, no log message is formatted."""
    caplog.set_level(logging.WARNING, "amends.recovery")
    recover(Script(RateLimitedError(retry_after=1.5), "x"))
    assert caplog.records == []


def test_hooks_can_be_set_added_and_removed(clock):
    """`set_hooks` replaces all hooks; without arguments no event is sent."""
    one, two = [], []
    set_hooks(one.append)
    add_hook(two.append)
    add_hook(two.append)
    recover(Script(RateLimitedError(retry_after=1), "x"))
    assert len(one) == len(two) == 2
    remove_hook(two.append)
    remove_hook(two.append)
    recover(Script(RateLimitedError(retry_after=1), "x"))
    assert (len(one), len(two)) == (4, 2)
    set_hooks()
    recover(Script(RateLimitedError(retry_after=1), "x"))
    assert len(one) == 4


def test_a_hook_may_cover_the_wait(clock):
    """A context manager that a hook returns is open during the wait."""
    order = []

    @contextmanager
    def covering():
        order.append(clock.now())
        yield
        order.append(clock.now())

    set_hooks(lambda event: covering() if event.kind == "retry" else None)
    recover(Script(RateLimitedError(retry_after=7), "x"))
    assert order[1] - order[0] == 7


def test_a_hook_that_fails_changes_nothing(clock, caplog):
    """An exception of a hook is logged, and the operation goes on."""

    def broken(event):
        raise RuntimeError

    set_hooks(broken)
    assert recover(Script(RateLimitedError(retry_after=1), "x")) == "x"
    assert "hook failed" in caplog.text


def test_a_hook_of_one_call(clock, seen):
    """`on_event` gets the events of its own operation only, before the hooks of the process."""
    own = []
    recover(Script(RateLimitedError(retry_after=1), "x"), on_event=own.append)
    recover(Script(RateLimitedError(retry_after=1), "x"))
    assert [event.kind for event in own] == ["retry", "recovered"]
    assert seen[:2] == own
    assert len(seen) == 4
    set_hooks()
    recover(Script(RateLimitedError(retry_after=1), "x"), on_event=own.append)
    assert len(own) == 4


def test_hooks_of_a_block():
    """`only_hooks` replaces the hooks in a block, and the others are back after it."""
    seen, kept = [], []
    with FakeClock(), only_hooks(kept.append):
        with only_hooks(seen.append):
            recover(Script(ServiceUnavailableError("later", retry_after=1), 1), operation=READ)
        assert [event.kind for event in seen] == ["retry", "recovered"]
        assert kept == []
        recover(Script(ServiceUnavailableError("later", retry_after=1), 1), operation=READ)
    assert [event.kind for event in kept] == ["retry", "recovered"]


def test_a_url_that_cannot_be_written_is_empty():
    """An object of another library may raise anything."""

    class Broken:
        def __str__(self):
            raise RuntimeError("secret")

    assert plain_url(Broken()) == ""
