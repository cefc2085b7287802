"""The error of an agent task (S3): M1's rules row by row, both ways."""

import logging

import pytest

from amends.core.enums import Actor, Executed, Recovery
from amends.core.fault import Fault, Origin
from amends.core.vocabularies.task import VOCABULARY
from amends.dialects.task import decode, encode


@pytest.mark.parametrize("code", VOCABULARY.rows)
@pytest.mark.parametrize("recoverable", [True, False, None, "true", 1, 0])
def test_recovery_of_every_code(code, recoverable):
    """M1, task: false → terminal; true or absent → the code's row."""
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
def test_recovery_of_a_code_nobody_knows(error, recovery):
    """M1: unknown and recoverable is uncertain, unknown and silent is for a person."""
    fault = decode(error)
    assert (fault.recovery, fault.executed) == (recovery, Executed.MAYBE)


@pytest.mark.parametrize(
    "data", [None, 5, "x", [], {}, {"code": 5}, {"code": ""}, {"code": "X" * 65}, {"message": "x"}]
)
def test_what_is_no_error(data):
    """T1: an object with a code."""
    assert decode(data) is None


def test_s3s_example():
    """T1, T3: everything it shows is read, and written again to the letter."""
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
    """P8's rule for every dialect: message and details of the wrong type are not there."""
    fault = decode({"code": "TIMEOUT", "message": 5, "details": "x"})
    assert (fault.message, fault.details) == ("", None)


def test_too_deep_is_none():
    """M6: nested without end holds nothing."""
    value: dict = {}
    for _ in range(10_000):
        value = {"details": value}
    assert decode({"code": "TIMEOUT", **value}) is None


@pytest.mark.parametrize(
    ("recovery", "recoverable"),
    [("transient", True), ("correctable", True), ("uncertain", True), ("terminal", False)],
)
def test_recoverable_is_always_written(recovery, recoverable):
    """M2."""
    assert encode(Fault(code="TIMEOUT", vocabulary="task", recovery=recovery))["recoverable"] is recoverable


def test_the_shape_is_closed():
    """T1: four members; what came in this shape keeps what it had, what came in another does not bring it."""
    fault = Fault(code="TIMEOUT", extensions={"a": 1}, retry_after=5, title="t", details={})
    assert set(encode(fault)) == {"code", "message", "details", "recoverable"}
    passed_on = {"code": "TIMEOUT", "message": "", "recoverable": True, "vendor": 1}
    assert encode(decode(passed_on)) == passed_on
    foreign = Fault(code="TIMEOUT", extensions={"a": 1}, origin=Origin("adcp"))
    assert set(encode(foreign)) == {"code", "message", "recoverable"}


def test_a_leak_is_logged_and_left(caplog):
    """Design 6: what we raise leaves as raised; the warning names the kind and never the text."""
    leak = "db01.internal.corp refused 10.0.0.5:5432"
    fault = Fault(code="TIMEOUT", message=leak, details={"where": leak})
    with caplog.at_level(logging.WARNING, logger="amends"):
        written = encode(fault)
    assert (written["message"], written["details"]) == (leak, {"where": leak})
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "db01" not in caplog.text
    assert "TIMEOUT" in caplog.text


def test_nothing_is_logged_of_what_came_from_outside(caplog):
    """Design 6: only what was made here is ours to warn about."""
    with caplog.at_level(logging.WARNING, logger="amends"):
        encode(decode({"code": "TIMEOUT", "message": "10.0.0.5:5432 refused"}))
        encode(Fault(code="TIMEOUT", message="It took too long", details={"agent": "a"}))
        encode(Fault(code="TIMEOUT", message=""))
    assert not caplog.records
