"""ARCP's error payload (S5), read and written by the rules of M1."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each import each
from tests.strategies import json_objects, often

from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault, Origin
from amends.core.vocabularies.arcp import VOCABULARY
from amends.dialects.arcp import decode, encode


@each("code", VOCABULARY.rows)
@each("retryable", [True, False, None, "true", 1, 0])
def test_recovery_of_every_code(code, retryable):
    """R1, M1: true → transient; false → the row's recovery, or terminal if that is transient; absent → the row's."""
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
    """M1: an unknown code is terminal unless `retryable` is true."""
    fault = decode({"code": "X", "retryable": retryable})
    assert (fault.recovery, fault.executed) == (recovery, Executed.MAYBE)


def test_a_rate_limit_had_no_effect():
    """M3: RATE_LIMITED had no effect, although ARCP does not define the code."""
    assert decode({"code": "RATE_LIMITED", "retryable": True}).executed is Executed.NO


@pytest.mark.parametrize(
    "data", [None, 5, "x", [], {}, {"code": 5}, {"code": ""}, {"code": "X" * 65}, {"message": "x"}]
)
def test_values_that_are_no_error(data):
    """R2: an error is an object with a code of 1 to 64 characters; other values give None."""
    assert decode(data) is None


def test_too_deep_is_none():
    """M6: a document with 10,000 levels is read as no error."""
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
        ("NO_SUCH_CODE", "uncertain", False),
    ],
)
def test_retryable_is_always_written(code, recovery, retryable):
    """M2: `retryable` follows from the recovery; for uncertain it is the default of the code."""
    assert encode(Fault(code=code, vocabulary="arcp", recovery=recovery))["retryable"] is retryable


@often
@given(st.none() | json_objects())
def test_details_arrive_as_raised(details):
    """R4: any details are equal after writing and reading."""
    fault = Fault(code="PERMISSION_DENIED", vocabulary="arcp", message="no", details=details)
    assert decode(encode(fault)).details == details


def test_the_shape_is_closed():
    """R2: four members are written; unknown members are kept only if the error was received as ARCP."""
    fault = Fault(code="TIMEOUT", extensions={"a": 1}, retry_after=5, title="t", details={})
    assert set(encode(fault)) == {"code", "message", "details", "retryable"}
    passed_on = {"code": "TIMEOUT", "message": "", "retryable": True, "vendor": 1}
    assert encode(decode(passed_on)) == passed_on
    foreign = Fault(code="TIMEOUT", extensions={"a": 1}, origin=Origin("adcp"))
    assert set(encode(foreign)) == {"code", "message", "retryable"}


def test_a_leak_in_details_is_logged_and_not_redacted(caplog):
    """R4, design 6: details are sent as raised; the warning names the kind of leak, not the text."""
    details = {"host": "db01.internal.corp", "target": "s3://other/"}
    fault = Fault(code="PERMISSION_DENIED", vocabulary="arcp", message="net.fetch denied", details=details)
    with caplog.at_level(logging.WARNING, logger="amends"):
        assert encode(fault)["details"] == details
    assert len(caplog.records) == 1
    assert "db01" not in caplog.text
    caplog.clear()
    encode(decode(encode(fault)))
    assert len(caplog.records) == 1, "only the error that was raised here is logged"


def test_received_errors_are_not_logged(caplog):
    """Design 6: leaks in received errors are not logged."""
    with caplog.at_level(logging.WARNING, logger="amends"):
        encode(
            decode({"code": "TIMEOUT", "message": "10.0.0.5:5432 refused", "details": {"a": "/etc/passwd"}})
        )
    assert not caplog.records
