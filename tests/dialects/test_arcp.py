"""ARCP's error payload (S5): M1's rules row by row, reading and writing."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import json_objects, often

from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault, Origin
from amends.core.vocabularies.arcp import VOCABULARY
from amends.dialects.arcp import decode, encode


@pytest.mark.parametrize("code", VOCABULARY.rows)
@pytest.mark.parametrize("retryable", [True, False, None, "true", 1, 0])
def test_recovery_of_every_code(code, retryable):
    """R1, M1: true is transient; false is the row's, or terminal if that is transient; without it, the row's."""
    row = VOCABULARY.rows[code]
    expected = row.recovery
    if retryable is True:
        expected = Recovery.TRANSIENT
    elif retryable is False and expected is Recovery.TRANSIENT:
        expected = Recovery.TERMINAL
    fault = decode({"code": code, "message": "m", "retryable": retryable})
    assert (fault.recovery, fault.executed) == (expected, row.executed)
    assert fault.actor is row.actor_under(expected)


@pytest.mark.parametrize(
    ("retryable", "recovery"), [(True, "transient"), (False, "terminal"), (None, "terminal")]
)
def test_recovery_of_an_unknown_code(retryable, recovery):
    """M1: terminal unless the payload says retryable."""
    fault = decode({"code": "X", "retryable": retryable})
    assert (fault.recovery, fault.executed) == (recovery, Executed.MAYBE)


def test_a_rate_limit_had_no_effect():
    """M3: RATE_LIMITED in every vocabulary, though ARCP has no such code."""
    assert decode({"code": "RATE_LIMITED", "retryable": True}).executed is Executed.NO


@pytest.mark.parametrize(
    "data", [None, 5, "x", [], {}, {"code": 5}, {"code": ""}, {"code": "X" * 65}, {"message": "x"}]
)
def test_values_that_are_not_errors(data):
    """R2: an error is an object with a code."""
    assert decode(data) is None


def test_too_deep_is_none():
    """M6: nothing is found in a value nested too deep."""
    value: dict = {}
    for _ in range(10_000):
        value = {"details": value}
    assert decode({"code": "TIMEOUT", **value}) is None


@pytest.mark.parametrize(
    ("code", "recovery", "retryable"),
    [
        ("PERMISSION_DENIED", "transient", True),
        ("TIMEOUT", "correctable", False),
        ("TIMEOUT", "terminal", False),
        ("TIMEOUT", "uncertain", True),
        ("PERMISSION_DENIED", "uncertain", False),
        ("NOBODY_KNOWS", "uncertain", False),
    ],
)
def test_retryable_is_always_written(code, recovery, retryable):
    """M2: uncertain is written as the code's default."""
    assert encode(Fault(code=code, vocabulary="arcp", recovery=recovery))["retryable"] is retryable


@often
@given(st.none() | json_objects())
def test_details_arrive_as_raised(details):
    """R4: unchanged, whatever they contain."""
    fault = Fault(code="PERMISSION_DENIED", vocabulary="arcp", message="no", details=details)
    assert decode(encode(fault)).details == details


def test_unknown_members_are_kept_only_in_this_dialect():
    """R2: four members. Unknown members of a received ARCP error are kept; those of another dialect are not written."""
    fault = Fault(code="TIMEOUT", extensions={"a": 1}, retry_after=5, title="t", details={})
    assert set(encode(fault)) == {"code", "message", "details", "retryable"}
    passed_on = {"code": "TIMEOUT", "message": "", "retryable": True, "vendor": 1}
    assert encode(decode(passed_on)) == passed_on
    foreign = Fault(code="TIMEOUT", extensions={"a": 1}, origin=Origin("adcp"))
    assert set(encode(foreign)) == {"code", "message", "retryable"}


def test_a_leak_is_logged_and_left(caplog):
    """R4, design 6: details are written as raised; the warning names the kind of leak and does not quote it."""
    details = {"host": "db01.internal.corp", "target": "s3://other/"}
    fault = Fault(code="PERMISSION_DENIED", vocabulary="arcp", message="net.fetch denied", details=details)
    with caplog.at_level(logging.WARNING, logger="amends"):
        assert encode(fault)["details"] == details
    assert len(caplog.records) == 1
    assert "db01" not in caplog.text
    caplog.clear()
    encode(decode(encode(fault)))
    assert len(caplog.records) == 1, "only the one made here, again"


def test_received_errors_are_not_logged(caplog):
    """Design 6: the warning is about faults made here."""
    with caplog.at_level(logging.WARNING, logger="amends"):
        encode(
            decode({"code": "TIMEOUT", "message": "10.0.0.5:5432 refused", "details": {"a": "/etc/passwd"}})
        )
    assert not caplog.records
