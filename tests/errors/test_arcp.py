"""ARCP's errors: a base class with S5's constructor, and fifteen classes that take the message first."""

import copy
import pickle

import pytest

from amends.core.enums import Recovery
from amends.core.vocabulary import vocabulary
from amends.dialects.arcp import decode, encode
from amends.errors import arcp
from amends.errors.arcp import ARCPError, PermissionDeniedError, is_retryable_by_default
from amends.errors.base import FaultError
from amends.errors.classes import class_for, class_name

CODES = tuple(vocabulary("arcp").rows)


def test_s5s_constructor():
    """Design 3: ARCPError(code, message, *, details=None, retryable=None)."""
    error = ARCPError("INVALID_REQUEST", "url is required", details={"field": "url"})
    assert (error.code, error.vocabulary, str(error)) == ("INVALID_REQUEST", "arcp", "url is required")
    assert (error.retryable, error.details) == (False, {"field": "url"})


def test_the_message_comes_first_in_the_classes():
    """S5: new PermissionDeniedError("net.fetch denied", { details })."""
    error = PermissionDeniedError("net.fetch denied", details={"capability": "net.fetch"})
    assert encode(error.fault) == {
        "code": "PERMISSION_DENIED",
        "message": "net.fetch denied",
        "retryable": False,
        "details": {"capability": "net.fetch"},
    }


@pytest.mark.parametrize("code", CODES)
def test_all_are_arcp_errors(code):
    """R1, R5: every class is a subclass of ARCPError and FaultError."""
    cls = getattr(arcp, class_name(code))
    assert issubclass(cls, ARCPError)
    assert issubclass(cls, FaultError)
    assert isinstance(FaultError.from_fault(cls().fault), cls)


@pytest.mark.parametrize("code", CODES)
def test_the_tables_default(code):
    """R1, R5: the last column of S5's table."""
    expected = code in {"TIMEOUT", "INTERNAL_ERROR", "HEARTBEAT_LOST"}
    assert is_retryable_by_default(code) is expected
    assert ARCPError(code, "x").retryable is expected
    assert not is_retryable_by_default("NOBODY_KNOWS")


@pytest.mark.parametrize("code", [*CODES, "NOBODY_KNOWS"])
@pytest.mark.parametrize("retryable", [True, False])
def test_an_override_is_kept(code, retryable):
    """R1: an error can override the default, and a reader sees it."""
    error = ARCPError(code, "x", retryable=retryable)
    assert error.retryable is retryable
    again = decode(encode(error.fault))
    assert again.recovery is error.fault.recovery
    assert again.retryable is retryable


def test_a_recovery_takes_precedence_over_retryable():
    """`recovery` is more precise than `retryable`."""
    assert ARCPError("TIMEOUT", retryable=True, recovery="terminal").fault.recovery is Recovery.TERMINAL


def test_a_class_may_carry_another_code():
    """A peer's newer code can be raised with the nearest class."""
    assert PermissionDeniedError("x", code="LEASE_EXPIRED").code == "LEASE_EXPIRED"


def test_unknown_codes_use_the_base_class():
    """R5: the client raises an ARCPError for every terminal failure."""
    assert class_for("arcp", "NOBODY_KNOWS") is ARCPError


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_it_survives_pickling_and_copying(again):
    """House style mistake 9: with either constructor."""
    for error in (
        ARCPError("TIMEOUT", "late", details={"a": 1}),
        PermissionDeniedError("no", retryable=True),
    ):
        other = again(error)
        assert (type(other), other.fault, other.code) == (type(error), error.fault, error.code)


def test_details_can_be_extended():
    """R10: err.details = { ...err.details, jobId }."""
    error = ARCPError("TIMEOUT", "late")
    error.details = {**(error.details or {}), "jobId": "j"}
    assert encode(error.fault)["details"] == {"jobId": "j"}
