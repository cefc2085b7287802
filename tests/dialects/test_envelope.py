"""A command line's envelope (S2): M1's rules row by row, reading and writing."""

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
        ({"code": "NOBODY_KNOWS", "retryable": False}, "terminal"),
        ({"code": "NOBODY_KNOWS", "retryable": False, "fix_required": "x"}, "correctable"),
        ({"retryable": True}, "transient"),
        # absent or of the wrong type: the code's row
        ({"code": "RATE_LIMITED"}, "transient"),
        ({"code": "RATE_LIMITED", "retryable": "true"}, "transient"),
        ({"code": "VALIDATION_ERROR", "retryable": 1}, "correctable"),
        ({"code": "VALIDATION_ERROR", "retryable": None}, "correctable"),
        ({"code": "PERMISSION_DENIED"}, "terminal"),
        ({"code": "INTERNAL_ERROR"}, "uncertain"),
        # neither: uncertain
        ({"code": "NOBODY_KNOWS"}, "uncertain"),
    ],
)
def test_recovery_by_the_first_rule_that_applies(error, recovery):
    """M1, cli."""
    assert decode(envelope(error)).recovery == recovery
    assert decode({"error": error}).recovery == recovery
    assert decode(error).recovery == recovery


@pytest.mark.parametrize(
    ("error", "number", "expected"),
    [
        ({"code": "NOBODY_KNOWS"}, 9, ("NOBODY_KNOWS", "transient", "no")),
        ({"code": "NOBODY_KNOWS"}, 7, ("NOBODY_KNOWS", "transient", "maybe")),
        ({"code": "NOBODY_KNOWS"}, 2, ("NOBODY_KNOWS", "correctable", "no")),
        ({"code": "NOBODY_KNOWS"}, 8, ("NOBODY_KNOWS", "terminal", "no")),
        ({"code": "NOBODY_KNOWS"}, 99, ("NOBODY_KNOWS", "uncertain", "maybe")),
        ({"code": "TIMEOUT"}, 2, ("TIMEOUT", "transient", "maybe")),
        ({"retryable": "maybe"}, 9, ("RATE_LIMITED", "uncertain", "no")),
        ({"retryable": False}, 2, ("VALIDATION_ERROR", "correctable", "no")),
        ({"retryable": False}, 99, ("INTERNAL_ERROR", "terminal", "maybe")),
    ],
)
def test_the_exit_row_decides_if_the_envelope_does_not(error, number, expected):
    """M1: the code's row, then the exit code's, then uncertain."""
    fault = decode(envelope(error), exit=PROFILES["s2"].get(number))
    assert (fault.code, fault.recovery, fault.executed) == expected


def test_s2s_example_is_read():
    """C1 to C5, C10: the example with all of its hints, and meta."""
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
    """C3, A9: bounds apply when recovery acts; a value that is not a number is absent."""
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
def test_suggestions_and_fix_required(error, expected):
    """C5: `fix_required` is the first suggestion, unless the error has our `suggestions`."""
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
def test_an_error_has_a_code_or_a_verdict(data):
    """null, strings and lists are not errors."""
    assert decode(data) is None
    assert error_of(data) is None


@pytest.mark.parametrize(("length", "found"), [(1, True), (64, True), (65, False)])
def test_the_length_of_a_code(length, found):
    """A7's limit applies here too."""
    assert (decode({"code": "X" * length}) is not None) is found


def test_a_failure_in_validation_had_no_effect():
    """M3: the command's body did not run; the newer table says so with `phase`."""
    assert decode(envelope({"code": "INTERNAL_ERROR", "phase": "validation"})).executed is Executed.NO
    assert decode(envelope({"code": "INTERNAL_ERROR", "phase": "execution"})).executed is Executed.MAYBE


def test_nested_errors_are_read_and_bounded():
    """P7, for S2: items that are not errors are left out, and at most 10,000 are read."""
    error = {"code": "X", "errors": [{"code": "TIMEOUT", "errors": [{"retryable": True}]}, {}, 5, "x"]}
    fault = decode(envelope(error))
    assert [child.code for child in fault.errors] == ["TIMEOUT"]
    assert [child.code for child in fault.errors[0].errors] == ["INTERNAL_ERROR"]
    assert len(decode(envelope({"code": "X", "errors": [{"code": "Y"}] * 20_000})).errors) == 10_000


def test_nested_errors_keep_their_trace_and_attempts():
    """P5, C10: nested errors have no meta, so these are members; reading restores them."""
    part = Fault(code="TIMEOUT", vocabulary="cli", trace_id="t", attempt=2, max_attempts=3)
    written = encode(Fault(code="CONFLICT", vocabulary="cli", errors=(part,), trace_id="top"))
    assert written["meta"] == {"trace_id": "top"}
    child = decode(written).errors[0]
    assert (child.trace_id, child.attempt, child.max_attempts) == ("t", 2, 3)


@pytest.mark.parametrize("errors", ["x", 5, {"code": "X"}, True])
def test_nested_errors_must_be_a_list(errors):
    """P8: a member of the wrong type is ignored."""
    assert decode({"code": "X", "errors": errors}).errors == ()


def test_the_depth_of_nested_errors_is_limited():
    """Deeper ones are ignored, the rest is read."""
    value: dict = {"code": "X"}
    for _ in range(MAX_LEVELS + 20):
        value = {"code": "X", "errors": [value]}
    fault, levels = decode(value), 0
    while fault.errors:
        (fault,) = fault.errors
        levels += 1
    assert levels == MAX_LEVELS


def test_too_deep_is_none():
    """M6: nothing is found in a value nested too deep."""
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
    """C2, C5, M2."""
    error = encode_error(Fault(code="CONFLICT", recovery=recovery))
    assert (error["retryable"], error["recovery"], "fix_required" in error) == (retryable, recovery, fix)


def test_fix_required():
    """C5: the first suggestion, else the code's, which a reader does not take for a suggestion of the producer."""
    fault = Fault(code="CONFLICT", suggestions=("Read it again", "Wait"))
    assert encode_error(fault)["fix_required"] == "Read it again"
    bare = Fault(code="CONFLICT")
    assert encode_error(bare)["fix_required"] == row_for("everyday", "CONFLICT").suggestion
    assert decode(encode(bare)).suggestions == ()


def test_a_rate_limit_always_has_a_wait():
    """C3: raised without a wait it gets the default; received without one it is passed on without."""
    assert encode_error(Fault(code="RATE_LIMITED"))["retry_after_ms"] == 5000
    assert encode_error(Fault(code="RATE_LIMITED", retry_after=0.07))["retry_after_ms"] == 70
    assert "retry_after_ms" not in encode_error(decode(envelope({"code": "RATE_LIMITED"})))
    assert "retry_after_ms" not in encode_error(Fault(code="TIMEOUT"))


def test_the_envelope_is_ok_error_meta():
    """C1: and nothing else."""
    written = encode(Fault(code="TIMEOUT", attempt=1, max_attempts=3))
    assert list(written) == ["ok", "error", "meta"]
    assert written["ok"] is False
    assert written["meta"] == {"attempt": 1, "max_attempts": 3}


def test_the_actor_is_received_or_follows_from_the_row():
    """Design 3: a received actor takes precedence."""
    assert decode({"code": "TIMEOUT", "actor": "provider"}).actor is Actor.PROVIDER
    assert decode({"code": "PERMISSION_DENIED", "actor": 5}).actor is Actor.USER
    assert decode({"code": "TIMEOUT", "retryable": False}).actor is Actor.OPERATOR


def test_recovery_of_a_translated_fault_is_explicit():
    """M2: translating never changes the decision."""
    fault = Fault(code="CONFLICT", vocabulary="cli", recovery="transient")
    assert decode(encode(fault)).recovery is Recovery.TRANSIENT
