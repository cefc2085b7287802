"""Tests of the events of recovery: they contain names and numbers, never values."""

import logging

import msgspec
import pytest

from amends import Fault, FaultError, Operation, recover
from amends.core.decision import REASONS
from amends.errors import RateLimitedError, ServiceUnavailableError
from amends.recovery import Event
from amends.testing import Script

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
