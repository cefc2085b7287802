"""ARCPError with the constructor that S5 specifies, and its fifteen subclasses."""

import copy
import pickle

import pytest

from amends.core.enums import Recovery
from amends.core.vocabulary import vocabulary
from amends.dialects.arcp import decode, encode
from amends.errors import arcp
from amends.errors.arcp import ARCPError, PermissionDeniedError, is_retryable_by_default
from amends.errors.base import FaultError, class_for, class_name

CODES = tuple(vocabulary("arcp").rows)


def test_the_constructor_of_the_base_class():
    """Design 3: the signature is ARCPError(code, message, *, details=None, retryable=None)."""
    error = ARCPError("INVALID_REQUEST", "url is required", details={"field": "url"})
    assert (error.code, error.vocabulary, str(error)) == ("INVALID_REQUEST", "arcp", "url is required")
    assert (error.retryable, error.details) == (False, {"field": "url"})


def test_the_first_argument_of_a_subclass_is_the_message():
    """S5 shows `new PermissionDeniedError("net.fetch denied", { details })`."""
    error = PermissionDeniedError("net.fetch denied", details={"capability": "net.fetch"})
    assert encode(error.fault) == {
        "code": "PERMISSION_DENIED",
        "message": "net.fetch denied",
        "retryable": False,
        "details": {"capability": "net.fetch"},
    }


@pytest.mark.parametrize("code", CODES)
def test_every_class_is_an_arcp_error(code):
    """R1, R5: every class is a subclass of ARCPError and FaultError, and `from_fault` returns it."""
    cls = getattr(arcp, class_name(code))
    assert issubclass(cls, ARCPError)
    assert issubclass(cls, FaultError)
    assert isinstance(FaultError.from_fault(cls().fault), cls)


@pytest.mark.parametrize("code", CODES)
def test_default_retryability(code):
    """R1, R5: the defaults are those of S5's table; an unknown code is not retryable."""
    expected = code in {"TIMEOUT", "INTERNAL_ERROR", "HEARTBEAT_LOST"}
    assert is_retryable_by_default(code) is expected
    assert ARCPError(code, "x").retryable is expected
    assert not is_retryable_by_default("NO_SUCH_CODE")


@pytest.mark.parametrize("code", [*CODES, "NO_SUCH_CODE"])
@pytest.mark.parametrize("retryable", [True, False])
def test_retryable_overrides_the_default(code, retryable):
    """R1: `retryable` sets the recovery class, and a reader of the encoded error gets the same one."""
    error = ARCPError(code, "x", retryable=retryable)
    assert error.retryable is retryable
    again = decode(encode(error.fault))
    assert again.recovery is error.fault.recovery
    assert again.retryable is retryable


def test_recovery_takes_precedence_over_retryable():
    """If both are given, `recovery` is used."""
    assert ARCPError("TIMEOUT", retryable=True, recovery="terminal").fault.recovery is Recovery.TERMINAL


def test_the_code_can_differ_from_the_class():
    """`code` replaces the code of the class, for example with a newer code of a peer."""
    assert PermissionDeniedError("x", code="LEASE_EXPIRED").code == "LEASE_EXPIRED"


def test_an_unknown_code_is_an_arcp_error():
    """R5: a code without a class of its own gets ARCPError."""
    assert class_for("arcp", "NO_SUCH_CODE") is ARCPError


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_copy_and_pickle(again):
    """House style mistake 9: copies are equal for both constructors."""
    for error in (
        ARCPError("TIMEOUT", "late", details={"a": 1}),
        PermissionDeniedError("no", retryable=True),
    ):
        other = again(error)
        assert (type(other), other.fault, other.code) == (type(error), error.fault, error.code)


def test_details_can_be_added_when_re_raising():
    """R10: assigned details are encoded, as in `err.details = { ...err.details, jobId }`."""
    error = ARCPError("TIMEOUT", "late")
    error.details = {**(error.details or {}), "jobId": "j"}
    assert encode(error.fault)["details"] == {"jobId": "j"}
