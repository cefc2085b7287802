"""The error of an agent task (S3): M1's rules row by row, reading and writing."""

import logging

import pytest

from amends.core.enums import Actor, Executed, Recovery
from amends.core.fault import Fault, Origin
from amends.core.vocabularies.task import VOCABULARY
from amends.dialects.task import decode, encode


@pytest.mark.parametrize("code", VOCABULARY.rows)
@pytest.mark.parametrize("recoverable", [True, False, None, "true", 1, 0])
def test_recovery_of_every_code(code, recoverable):
    """M1, task: false is terminal; true or absent is the row's."""
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
    """M1: uncertain if recoverable, else terminal."""
    fault = decode(error)
    assert (fault.recovery, fault.executed) == (recovery, Executed.MAYBE)


@pytest.mark.parametrize(
    "data", [None, 5, "x", [], {}, {"code": 5}, {"code": ""}, {"code": "X" * 65}, {"message": "x"}]
)
def test_values_that_are_not_errors(data):
    """T1: an error is an object with a code."""
    assert decode(data) is None


def test_s3s_example():
    """T1, T3: all members are read, and written again unchanged."""
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
    """M6: nothing is found in a value nested too deep."""
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


def test_unknown_members_are_kept_only_in_this_dialect():
    """T1: four members. Unknown members of a received task error are kept; those of another dialect are not written."""
    fault = Fault(code="TIMEOUT", extensions={"a": 1}, retry_after=5, title="t", details={})
    assert set(encode(fault)) == {"code", "message", "details", "recoverable"}
    passed_on = {"code": "TIMEOUT", "message": "", "recoverable": True, "vendor": 1}
    assert encode(decode(passed_on)) == passed_on
    foreign = Fault(code="TIMEOUT", extensions={"a": 1}, origin=Origin("adcp"))
    assert set(encode(foreign)) == {"code", "message", "recoverable"}


def test_a_leak_is_logged_and_left(caplog):
    """Design 6: details are written as raised; the warning names the kind of leak and does not quote it."""
    leak = "db01.internal.corp refused 10.0.0.5:5432"
    fault = Fault(code="TIMEOUT", message=leak, details={"where": leak})
    with caplog.at_level(logging.WARNING, logger="amends"):
        written = encode(fault)
    assert (written["message"], written["details"]) == (leak, {"where": leak})
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "db01" not in caplog.text
    assert "TIMEOUT" in caplog.text


def test_received_errors_are_not_logged(caplog):
    """Design 6: the warning is about faults made here."""
    with caplog.at_level(logging.WARNING, logger="amends"):
        encode(decode({"code": "TIMEOUT", "message": "10.0.0.5:5432 refused"}))
        encode(Fault(code="TIMEOUT", message="It took too long", details={"agent": "a"}))
        encode(Fault(code="TIMEOUT", message=""))
    assert not caplog.records
