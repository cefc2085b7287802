"""The error of an agent task (S3), read and written by the rules of M1."""

import logging

import pytest
from tests.each import each

from amends.core.enums import Actor, Executed, Recovery
from amends.core.fault import Fault, Origin
from amends.core.vocabularies.task import VOCABULARY
from amends.dialects.task import decode, encode


@each("code", VOCABULARY.rows)
@each("recoverable", [True, False, None, "true", 1, 0])
def test_recovery_of_every_code(code, recoverable):
    """M1: `recoverable` false → terminal; true or absent → the recovery of the code's row."""
    row = VOCABULARY.rows[code]
    expected = Recovery.TERMINAL if recoverable is False else row.recovery
    fault = decode({"code": code, "message": "m", "recoverable": recoverable})
    assert (fault.recovery, fault.executed) == (expected, row.executed)
    assert fault.actor is row.actor_under(expected)


@pytest.mark.parametrize(
    ("error", "recovery"),
    [
        ({"code": "X", "recoverable": True}, "uncertain"),
        ({"code": "X", "recoverable": False}, "terminal"),
        ({"code": "X"}, "terminal"),
        ({"code": "X", "recoverable": "yes"}, "terminal"),
    ],
)
def test_recovery_of_an_unknown_code(error, recovery):
    """M1: an unknown code is uncertain if `recoverable` is true, else terminal."""
    fault = decode(error)
    assert (fault.recovery, fault.executed) == (recovery, Executed.MAYBE)


@pytest.mark.parametrize(
    "data", [None, 5, "x", [], {}, {"code": 5}, {"code": ""}, {"code": "X" * 65}, {"message": "x"}]
)
def test_values_that_are_no_error(data):
    """T1: an error is an object with a code of 1 to 64 characters; other values give None."""
    assert decode(data) is None


def test_the_example_of_s3():
    """T1, T3: S3's example is read completely and written again unchanged."""
    error = {
        "code": "MCP_NOT_CONNECTED",
        "message": "The Notion MCP is not connected. Run setup to configure.",
        "details": {"mcp": "notion", "requiredBy": "content-agent", "capability": "draft_post"},
        "recoverable": True,
    }
    fault = decode(error)
    assert (fault.recovery, fault.executed, fault.actor) == (
        Recovery.CORRECTABLE,
        Executed.NO,
        Actor.USER,
    )
    assert fault.origin == Origin("task", "task")
    assert encode(fault) == error


def test_wrong_types_are_ignored():
    """P8: message and details of the wrong type are ignored."""
    fault = decode({"code": "TIMEOUT", "message": 5, "details": "x"})
    assert (fault.message, fault.details) == ("", None)


def test_too_deep_is_none():
    """M6: a document with 10,000 levels is read as no error."""
    value: dict = {}
    for _ in range(10_000):
        value = {"details": value}
    assert decode({"code": "TIMEOUT", **value}) is None


@pytest.mark.parametrize(
    ("recovery", "recoverable"),
    [("transient", True), ("correctable", True), ("uncertain", True), ("terminal", False)],
)
def test_recoverable_is_always_written(recovery, recoverable):
    """M2: `recoverable` is false for terminal faults only."""
    assert encode(Fault(code="TIMEOUT", vocabulary="task", recovery=recovery))["recoverable"] is recoverable


def test_the_shape_is_closed():
    """T1: four members are written; unknown members are kept only if the error was received as a task error."""
    fault = Fault(code="TIMEOUT", extensions={"a": 1}, retry_after=5, title="t", details={})
    assert set(encode(fault)) == {"code", "message", "details", "recoverable"}
    passed_on = {"code": "TIMEOUT", "message": "", "recoverable": True, "vendor": 1}
    assert encode(decode(passed_on)) == passed_on
    foreign = Fault(code="TIMEOUT", extensions={"a": 1}, origin=Origin("adcp"))
    assert set(encode(foreign)) == {"code", "message", "recoverable"}


def test_a_leak_is_logged_and_not_redacted(caplog):
    """Design 6: a task error is sent as raised; the warning names the kind of leak, not the text."""
    leak = "db01.internal.corp refused 10.0.0.5:5432"
    fault = Fault(code="TIMEOUT", message=leak, details={"where": leak})
    with caplog.at_level(logging.WARNING, logger="amends"):
        written = encode(fault)
    assert (written["message"], written["details"]) == (leak, {"where": leak})
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "db01" not in caplog.text
    assert "TIMEOUT" in caplog.text


def test_received_errors_are_not_logged(caplog):
    """Design 6: leaks in received errors are not logged."""
    with caplog.at_level(logging.WARNING, logger="amends"):
        encode(decode({"code": "TIMEOUT", "message": "10.0.0.5:5432 refused"}))
        encode(Fault(code="TIMEOUT", message="It took too long", details={"agent": "a"}))
        encode(Fault(code="TIMEOUT", message=""))
    assert not caplog.records
