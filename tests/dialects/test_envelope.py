"""The envelope of a command line (S2), read and written by the rules of M1."""

import pytest

from amends.core.enums import Actor, Executed, Recovery
from amends.core.exits import PROFILES
from amends.core.fault import Fault, Origin
from amends.core.vocabulary import row_for
from amends.dialects.envelope import decode, encode, encode_error, error_of
from amends.dialects.problem import MAX_LEVELS


def envelope(error, **more):
    """Return the envelope of a failure."""
    return {"ok": False, "error": error, **more}


@pytest.mark.parametrize(
    ("error", "recovery"),
    [
        # our extra member, if valid
        ({"code": "TIMEOUT", "retryable": True, "recovery": "terminal"}, "terminal"),
        ({"code": "TIMEOUT", "retryable": True, "recovery": "never"}, "transient"),
        ({"code": "TIMEOUT", "retryable": True, "recovery": {}}, "transient"),
        # retryable true, "maybe", false
        ({"code": "VALIDATION_ERROR", "retryable": True}, "transient"),
        ({"code": "VALIDATION_ERROR", "retryable": "maybe"}, "uncertain"),
        ({"code": "VALIDATION_ERROR", "retryable": False}, "correctable"),
        ({"code": "NOT_FOUND", "retryable": False}, "correctable"),
        ({"code": "CONFLICT", "retryable": False}, "correctable"),
        ({"code": "PERMISSION_DENIED", "retryable": False}, "terminal"),
        ({"code": "PERMISSION_DENIED", "retryable": False, "fix_required": "Log in"}, "correctable"),
        ({"code": "TIMEOUT", "retryable": False}, "terminal"),
        ({"code": "TIMEOUT", "retryable": False, "fix_required": 5}, "terminal"),
        ({"code": "NO_SUCH_CODE", "retryable": False}, "terminal"),
        ({"code": "NO_SUCH_CODE", "retryable": False, "fix_required": "x"}, "correctable"),
        ({"retryable": True}, "transient"),
        # absent or of the wrong type: the code's row
        ({"code": "RATE_LIMITED"}, "transient"),
        ({"code": "RATE_LIMITED", "retryable": "true"}, "transient"),
        ({"code": "VALIDATION_ERROR", "retryable": 1}, "correctable"),
        ({"code": "VALIDATION_ERROR", "retryable": None}, "correctable"),
        ({"code": "PERMISSION_DENIED"}, "terminal"),
        ({"code": "INTERNAL_ERROR"}, "uncertain"),
        # neither: uncertain
        ({"code": "NO_SUCH_CODE"}, "uncertain"),
    ],
)
def test_recovery_by_the_first_rule_that_applies(error, recovery):
    """M1: the recovery follows from the first rule for cli that applies."""
    assert decode(envelope(error)).recovery == recovery
    assert decode({"error": error}).recovery == recovery
    assert decode(error).recovery == recovery


@pytest.mark.parametrize(
    ("error", "number", "expected"),
    [
        ({"code": "NO_SUCH_CODE"}, 9, ("NO_SUCH_CODE", "transient", "no")),
        ({"code": "NO_SUCH_CODE"}, 7, ("NO_SUCH_CODE", "transient", "maybe")),
        ({"code": "NO_SUCH_CODE"}, 2, ("NO_SUCH_CODE", "correctable", "no")),
        ({"code": "NO_SUCH_CODE"}, 8, ("NO_SUCH_CODE", "terminal", "no")),
        ({"code": "NO_SUCH_CODE"}, 99, ("NO_SUCH_CODE", "uncertain", "maybe")),
        ({"code": "TIMEOUT"}, 2, ("TIMEOUT", "transient", "maybe")),
        ({"retryable": "maybe"}, 9, ("RATE_LIMITED", "uncertain", "no")),
        ({"retryable": False}, 2, ("VALIDATION_ERROR", "correctable", "no")),
        ({"retryable": False}, 99, ("INTERNAL_ERROR", "terminal", "maybe")),
    ],
)
def test_the_exit_code_decides_if_the_envelope_does_not(error, number, expected):
    """M1: the row of the code is used first, then that of the exit code, then uncertain."""
    fault = decode(envelope(error), exit=PROFILES["v1"].get(number))
    assert (fault.code, fault.recovery, fault.executed) == expected


def test_the_example_of_s2():
    """C1 to C5, C10: every member of S2's example is read, including `meta`."""
    error = {
        "code": "RATE_LIMITED",
        "message": "API rate limit exceeded",
        "retryable": True,
        "retry_after_ms": 5000,
        "retry_strategy": "exponential_backoff",
        "max_retries": 3,
        "request": "r-1",
    }
    fault = decode(envelope(error, meta={"attempt": 2, "max_attempts": 4, "trace_id": "t"}))
    assert (fault.retry_after, fault.strategy, fault.max_retries) == (5.0, "exponential_backoff", 3)
    assert (fault.attempt, fault.max_attempts, fault.trace_id) == (2, 4, "t")
    assert (fault.extensions, fault.vocabulary) == ({"request": "r-1"}, "cli")
    assert fault.origin == Origin("envelope", "envelope")


@pytest.mark.parametrize(
    ("wait", "expected"),
    [
        (5000, 5.0),
        (0, 0.0),
        (0.5, 0.0005),
        (-1, None),
        (True, None),
        ("5000", None),
        (float("nan"), None),
        (float("inf"), None),
        (10**400, None),
        (86_400_000_000, 86_400_000.0),
    ],
)
def test_waits_are_kept_as_received(wait, expected):
    """C3, A9: any finite wait from 0 is kept, because limits apply when a decision is made; other values are None."""
    assert decode(envelope({"code": "X", "retry_after_ms": wait})).retry_after == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"fix_required": "Correct --email"}, ("Correct --email",)),
        ({"fix_required": "a", "suggestion": "b"}, ("a", "b")),
        ({"suggestion": "b"}, ("b",)),
        ({"fix_required": "a", "suggestions": ["b", 5, "c"]}, ("b", "c")),
        ({"fix_required": "a", "suggestions": []}, ()),
        ({"fix_required": 5, "suggestion": None}, ()),
    ],
)
def test_suggestions(error, expected):
    """C5: `fix_required` is the first suggestion; if `suggestions` is there, only that list is used."""
    assert decode(envelope({"code": "X", **error})).suggestions == expected


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        "x",
        {},
        {"ok": False},
        {"ok": False, "error": None},
        {"ok": False, "error": "boom"},
        {"ok": False, "error": ["boom"]},
        {"ok": False, "error": {}},
        {"ok": False, "error": {"message": "boom"}},
        {"ok": False, "error": {"code": "", "retryable": "yes"}},
        {"ok": False, "error": {"code": "X" * 65}},
        {"ok": True, "code": "X"},
        {"ok": True, "error": None},
        {"error": {"code": 5}},
        {"code": 5},
    ],
)
def test_values_that_are_no_error(data):
    """An error is an object with a valid `code` or `retryable`; other values give None."""
    assert decode(data) is None
    assert error_of(data) is None


@pytest.mark.parametrize(("length", "found"), [(1, True), (64, True), (65, False)])
def test_the_length_of_a_code(length, found):
    """A code has 1 to 64 characters, as in A7."""
    assert (decode({"code": "X" * length}) is not None) is found


def test_a_validation_failure_had_no_effect():
    """M3: an error with `phase` validation happened before the command ran."""
    assert decode(envelope({"code": "INTERNAL_ERROR", "phase": "validation"})).executed is Executed.NO
    assert decode(envelope({"code": "INTERNAL_ERROR", "phase": "execution"})).executed is Executed.MAYBE


def test_nested_errors_are_read_and_bounded():
    """P7: invalid nested errors are skipped, and at most 10,000 are read."""
    error = {"code": "X", "errors": [{"code": "TIMEOUT", "errors": [{"retryable": True}]}, {}, 5, "x"]}
    fault = decode(envelope(error))
    assert [child.code for child in fault.errors] == ["TIMEOUT"]
    assert [child.code for child in fault.errors[0].errors] == ["INTERNAL_ERROR"]
    assert len(decode(envelope({"code": "X", "errors": [{"code": "Y"}] * 20_000})).errors) == 10_000


def test_nested_errors_keep_their_trace_and_attempts():
    """P5, C10: nested errors have no `meta`, so trace id and attempts are members of the error."""
    part = Fault(code="TIMEOUT", vocabulary="cli", trace_id="t", attempt=2, max_attempts=3)
    written = encode(Fault(code="CONFLICT", vocabulary="cli", errors=(part,), trace_id="top"))
    assert written["meta"] == {"trace_id": "top"}
    child = decode(written).errors[0]
    assert (child.trace_id, child.attempt, child.max_attempts) == ("t", 2, 3)


@pytest.mark.parametrize("errors", ["x", 5, {"code": "X"}, True])
def test_errors_of_the_wrong_type_are_ignored(errors):
    """P8: `errors` of the wrong type is ignored."""
    assert decode({"code": "X", "errors": errors}).errors == ()


def test_the_depth_of_nested_errors_is_limited():
    """Nested errors below MAX_LEVELS are skipped, and the rest is read."""
    value: dict = {"code": "X"}
    for _ in range(MAX_LEVELS + 20):
        value = {"code": "X", "errors": [value]}
    fault, levels = decode(value), 0
    while fault.errors:
        (fault,) = fault.errors
        levels += 1
    assert levels == MAX_LEVELS


def test_too_deep_is_none():
    """M6: a document with 10,000 levels is read as no error."""
    value: dict = {"code": "X"}
    for _ in range(10_000):
        value = {"code": "X", "errors": [value]}
    assert decode(envelope(value)) is None


@pytest.mark.parametrize(
    ("recovery", "retryable", "fix"),
    [
        ("transient", True, False),
        ("correctable", False, True),
        ("terminal", False, False),
        ("uncertain", "maybe", False),
    ],
)
def test_retryable_is_written_in_every_error(recovery, retryable, fix):
    """C2, C5, M2: `retryable` and `recovery` are always written, `fix_required` for correctable errors."""
    error = encode_error(Fault(code="CONFLICT", recovery=recovery))
    assert (error["retryable"], error["recovery"], "fix_required" in error) == (retryable, recovery, fix)


def test_fix_required():
    """C5: `fix_required` is the first suggestion, else the code's, which a reader does not take for the producer's."""
    fault = Fault(code="CONFLICT", suggestions=("Read it again", "Wait"))
    assert encode_error(fault)["fix_required"] == "Read it again"
    bare = Fault(code="CONFLICT")
    assert encode_error(bare)["fix_required"] == row_for("everyday", "CONFLICT").suggestion
    assert decode(encode(bare)).suggestions == ()


def test_a_rate_limit_always_has_a_wait():
    """C3: a rate limit raised without a wait gets the default; a received one without a wait is passed on unchanged."""
    assert encode_error(Fault(code="RATE_LIMITED"))["retry_after_ms"] == 5000
    assert encode_error(Fault(code="RATE_LIMITED", retry_after=0.07))["retry_after_ms"] == 70
    assert "retry_after_ms" not in encode_error(decode(envelope({"code": "RATE_LIMITED"})))
    assert "retry_after_ms" not in encode_error(Fault(code="TIMEOUT"))


def test_the_envelope_is_ok_error_meta():
    """C1: an envelope has the members ok, error and meta."""
    written = encode(Fault(code="TIMEOUT", attempt=1, max_attempts=3))
    assert list(written) == ["ok", "error", "meta"]
    assert written["ok"] is False
    assert written["meta"] == {"attempt": 1, "max_attempts": 3}


def test_the_actor_is_read_or_follows_from_the_row():
    """Design 3: a valid `actor` member is used; otherwise the actor follows from code and recovery."""
    assert decode({"code": "TIMEOUT", "actor": "provider"}).actor is Actor.PROVIDER
    assert decode({"code": "PERMISSION_DENIED", "actor": 5}).actor is Actor.USER
    assert decode({"code": "TIMEOUT", "retryable": False}).actor is Actor.OPERATOR


def test_recovery_of_a_translated_fault_is_explicit():
    """M2: `recovery` is written, so a recovery other than the code's is kept."""
    fault = Fault(code="CONFLICT", vocabulary="cli", recovery="transient")
    assert decode(encode(fault)).recovery is Recovery.TRANSIENT
