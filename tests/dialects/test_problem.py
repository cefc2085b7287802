"""Problem details (S1), read and written by the rules of M1."""

import pytest
from tests.each import each

from amends.core.enums import Actor, Executed, Recovery
from amends.core.fault import Fault, Origin
from amends.core.vocabularies.http import VOCABULARY
from amends.dialects import problem
from amends.dialects.problem import MAX_LEVELS, decode, encode, milliseconds

WAIT = {"retry_after_ms": 5000}
TIPS = {"suggestions": ["Provide a value for 'amount'"]}
PARTS = {"errors": [{"detail": "Item 0"}]}


@pytest.mark.parametrize(
    ("document", "recovery"),
    [
        # our extra member `recovery`, if valid
        ({"status": 422, "is_retriable": True, "recovery": "terminal"}, "terminal"),
        ({"status": 503, "recovery": "uncertain"}, "uncertain"),
        ({"status": 503, "recovery": "sometimes"}, "transient"),
        ({"status": 503, "recovery": ["terminal"]}, "transient"),
        # is_retriable false
        ({"status": 422, "is_retriable": False}, "correctable"),
        ({"status": 403, "is_retriable": False}, "terminal"),
        ({"status": 503, "is_retriable": False}, "terminal"),
        ({"status": 503, "is_retriable": False, **TIPS}, "correctable"),
        ({"status": 403, "is_retriable": False, **PARTS}, "correctable"),
        ({"is_retriable": False}, "terminal"),
        ({"is_retriable": False, **TIPS}, "correctable"),
        # is_retriable true
        ({"status": 503, "is_retriable": True}, "transient"),
        ({"status": 403, "is_retriable": True}, "transient"),
        ({"is_retriable": True}, "transient"),
        ({"status": 422, "is_retriable": True, **WAIT}, "transient"),
        ({"status": 422, "is_retriable": True, **WAIT, **TIPS}, "transient"),
        ({"status": 503, "is_retriable": True, **TIPS}, "correctable"),
        ({"status": 422, "is_retriable": True}, "uncertain"),
        ({"status": 422, "is_retriable": True, "retry_after_ms": 0}, "uncertain"),
        ({"status": 422, "is_retriable": True, "retry_after_ms": 0, **TIPS}, "correctable"),
        ({"status": 422, "is_retriable": True, "retry_after_seconds": 3}, "transient"),
        # absent or of the wrong type: the status row
        ({"status": 429}, "transient"),
        ({"status": 500}, "uncertain"),
        ({"status": 403, **TIPS}, "terminal"),
        ({"status": 429, "is_retriable": "false"}, "transient"),
        ({"status": 429, "is_retriable": 0}, "transient"),
        ({"status": 429, "is_retriable": None}, "transient"),
        # no status at all
        (TIPS, "correctable"),
        ({"errors": [{"status": 503}, {"status": 429}]}, "transient"),
        ({"errors": [{"status": 503}, {"status": 403}]}, "terminal"),
        ({"errors": [{"status": 503}, {"status": 422}]}, "correctable"),
        ({"title": "Something"}, "terminal"),
        ({"errors": []}, "terminal"),
    ],
)
def test_recovery_by_the_first_rule_that_applies(document, recovery):
    """M1: the recovery follows from the first rule for problems that applies."""
    assert decode(document).recovery == recovery


@each("status", range(400, 600))
def test_a_status_alone(status):
    """M1: a problem with only a status has the code, recovery, effect and actor of the status row."""
    fault, row = decode({"status": status}), VOCABULARY.status_row(status)
    assert (fault.code, fault.recovery, fault.executed, fault.actor) == (
        row.code,
        row.recovery,
        row.executed,
        row.actor,
    )
    assert (fault.status, fault.vocabulary) == (status, "http")


def test_a_nested_problem_takes_its_parents_status():
    """M1: a nested problem without a status has its parent's, unless that is 207; at any depth."""
    fault = decode({"status": 422, "errors": [{"detail": "a", "errors": [{"detail": "b"}]}]})
    assert (fault.errors[0].status, fault.errors[0].errors[0].status) == (422, 422)
    assert decode({"status": 207, "errors": [{"detail": "a"}]}).errors[0].status is None
    assert decode({"status": 422, "errors": [{"status": 503}]}).errors[0].status == 503


def test_the_responses_status_takes_precedence():
    """M1: a response with status 502 and status 200 in its body is a 502."""
    fault = decode({"status": 200, "title": "Fine"}, status=502)
    assert (fault.status, fault.recovery) == (502, Recovery.TRANSIENT)


@pytest.mark.parametrize(
    ("document", "wait", "expected"),
    [
        (WAIT, None, 5.0),
        (WAIT, 9.0, 5.0),
        ({"retry_after_ms": 1, "retry_after_seconds": 9}, None, 0.001),
        ({"retry_after_seconds": 60}, 9.0, 60),
        ({"retry_after_ms": 0, "retry_after_seconds": 60}, None, 60),
        ({"retry_after_ms": 0}, 9.0, 9.0),
        ({"retry_after_ms": 0}, None, None),
        ({"retry_after_ms": -5}, 9.0, 9.0),
        ({"retry_after_ms": "5000"}, None, None),
        ({"retry_after_ms": True}, None, None),
        ({"retry_after_ms": float("nan")}, None, None),
        ({"retry_after_ms": float("inf")}, None, None),
        ({"retry_after_ms": 10**400}, None, None),
        ({"retry_after_ms": 250.5}, None, 0.2505),
        ({}, 9.0, 9.0),
    ],
)
def test_precedence_of_waits(document, wait, expected):
    """P3, design 8, M1: milliseconds are used first, then seconds, then the header; 0 is no wait."""
    assert decode({"status": 429, **document}, wait=wait).retry_after == expected


def test_a_408_with_an_intent_is_a_cancellation():
    """P11, M5: a 408 with an intent is CANCELLED; without one it is TIMEOUT."""
    intent = {"operation": "create_invoice", "recovery": "Poll"}
    fault = decode({"status": 408, "is_retriable": True, "intent": intent})
    assert (fault.code, fault.intent, fault.executed) == ("CANCELLED", intent, Executed.MAYBE)
    assert decode({"status": 408}).code == "TIMEOUT"
    assert decode({"status": 408, "intent": "x"}).code == "TIMEOUT"


@pytest.mark.parametrize(
    ("document", "code", "executed"),
    [
        ({"status": 429}, "RATE_LIMITED", "no"),
        ({"status": 500, "code": "RATE_LIMITED"}, "RATE_LIMITED", "maybe"),
        ({"status": 409, "code": "RATE_LIMITED"}, "RATE_LIMITED", "no"),
        ({"title": "x", "code": "RATE_LIMITED"}, "RATE_LIMITED", "no"),
        ({"status": 207, "errors": []}, "PARTIAL_FAILURE", "yes"),
        ({"status": 207, "code": "RATE_LIMITED"}, "RATE_LIMITED", "yes"),
        ({"title": "x"}, "UNKNOWN", "maybe"),
        ({"title": "x", "code": "CONFLICT"}, "CONFLICT", "no"),
        ({"title": "x", "code": "MINE"}, "MINE", "maybe"),
        ({"status": 422, "code": "MINE"}, "MINE", "no"),
        ({"status": 422, "code": "M" * 64}, "M" * 64, "no"),
        ({"status": 422, "code": "M" * 65}, "VALIDATION_ERROR", "no"),
        ({"status": 422, "code": ""}, "VALIDATION_ERROR", "no"),
        ({"status": 302, "title": "x"}, "UNKNOWN", "maybe"),
    ],
)
def test_code_and_effect(document, code, executed):
    """Design 8: the code is the member `code`, else that of the status row. M3: a 207 had its effect, RATE_LIMITED none where the status allows it."""
    fault = decode(document)
    assert (fault.code, fault.executed) == (code, executed)


@pytest.mark.parametrize("status", ["429", 429.5, True, None, [], 99, 600, 10**400, float("nan"), -1])
def test_an_invalid_status_is_ignored(status):
    """P8: a status of the wrong type or range is ignored."""
    assert decode({"status": status, "title": "x"}).status is None


def test_a_whole_float_is_a_status():
    """429.0 is read as 429, because some JSON writers have no integers."""
    assert decode({"status": 429.0}).status == 429


@each(
    "name",
    [
        *("type", "title", "detail", "instance", "doc_uri", "trace_id", "retry_strategy", "field"),
        *("user_message", "suggestions", "errors", "intent", "details", "max_retries", "attempt"),
        *("max_attempts", "actor"),
    ],
)
@each("value", [5, True, 1.5, "x", [], {}, None, [5], {"a": 1}])
def test_wrong_types_are_ignored_and_never_emitted(name, value):
    """P8: a member of the wrong type is not written again."""
    fault = decode({"status": 500, "title": "t", name: value})
    again = encode(fault)
    assert encode(decode(again)) == again
    kinds = {
        **dict.fromkeys(("suggestions", "errors"), list),
        **dict.fromkeys(("intent", "details"), dict),
        **dict.fromkeys(("max_retries", "attempt", "max_attempts"), int),
    }
    assert isinstance(again.get(name, None), kinds.get(name, str) | None)


def test_suggestions_keep_their_order_and_only_strings():
    """P6: suggestions keep their order; values that are not strings are skipped."""
    assert decode({"title": "x", "suggestions": ["b", 5, None, "a", ["c"]]}).suggestions == ("b", "a")


@pytest.mark.parametrize("value", [None, 5, "x", [], [{"status": 500}], {}, {"code": "X"}, {"message": "x"}])
def test_values_that_are_no_problem(value):
    """A value that is not an object, or has none of S1's members, gives None."""
    assert decode(value) is None


def test_the_number_of_nested_problems_is_limited():
    """At most MAX_PARTS (10,000) nested problems are read over all levels."""
    branch = {"status": 422, "errors": [{"status": 422}] * 3000}
    fault = decode({"status": 422, "errors": [branch] * 10})
    count = sum(1 + len(child.errors) for child in fault.errors)
    assert count == problem.MAX_PARTS


@pytest.mark.parametrize("errors", ["x", 5, {"code": "X"}, True])
def test_errors_of_the_wrong_type_are_ignored(errors):
    """P8: `errors` of the wrong type is ignored."""
    assert decode({"status": 422, "errors": errors}).errors == ()


def test_the_depth_of_nested_problems_is_limited():
    """Nested problems below MAX_LEVELS are skipped, and the rest is read."""
    value: dict = {"status": 422}
    for _ in range(MAX_LEVELS + 20):
        value = {"status": 422, "errors": [value]}
    fault, levels = decode(value), 0
    while fault.errors:
        (fault,) = fault.errors
        levels += 1
    assert levels == MAX_LEVELS


def test_too_deep_is_no_problem():
    """M6: a document with 10,000 levels is read as no problem."""
    value = {"status": 422}
    for _ in range(10_000):
        value = {"status": 422, "errors": [value]}
    assert decode(value) is None


@pytest.mark.parametrize(
    ("recovery", "is_retriable"),
    [("transient", True), ("uncertain", True), ("correctable", False), ("terminal", False)],
)
def test_is_retriable(recovery, is_retriable):
    """P2, M2: `is_retriable` is true for transient and uncertain faults; `recovery` is written too."""
    written = encode(Fault(code="X", recovery=recovery))
    assert (written["is_retriable"], written["recovery"]) == (is_retriable, recovery)


def test_title_status_and_detail_are_always_written():
    """P1: title, status and detail are written for a bare code and for nested problems."""
    written = encode(Fault(code="TIMEOUT", errors=(Fault(code="BUDGET_TOO_LOW", vocabulary="adcp"),)))
    for document in (written, *written["errors"]):
        assert isinstance(document["title"], str)
        assert isinstance(document["detail"], str)
        assert 400 <= document["status"] <= 599
    assert written["status"] == 504
    assert "type" not in written
    assert problem.MEDIA_TYPE == "application/problem+json"


def test_the_faults_own_values_take_precedence():
    """P1: the row of the code supplies only missing members."""
    written = encode(Fault(code="TIMEOUT", title="", status=408, message="late", type="https://e.com/t"))
    assert (written["title"], written["status"], written["detail"]) == ("", 408, "late")
    assert written["type"] == "https://e.com/t"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.07, 70), (0.0001, 1), (1, 1000), (2.5, 2500), (0, 0), (-1, None), (None, None), (0.1 + 0.2, 300)],
)
def test_milliseconds_are_whole_and_rounded_up(seconds, expected):
    """P3: milliseconds are rounded up, but 0.07 s is 70 despite the float's error."""
    assert milliseconds(seconds) == expected


@pytest.mark.parametrize("seconds", [0, -5, None])
def test_no_wait_is_not_written(seconds):
    """P3, M1: no `retry_after_ms` is written for a wait of 0, a negative wait and None."""
    assert "retry_after_ms" not in encode(Fault(code="TIMEOUT", retry_after=seconds))


def test_raised_faults_are_redacted():
    """A19: all texts are redacted, in nested problems too; URL members and `intent` are not."""
    leak = "db01.internal.corp refused 10.0.0.5:5432"
    part = Fault(code="CONFLICT", message=leak)
    fault = Fault(
        code="TIMEOUT",
        message=leak,
        title=leak,
        user_message=leak,
        suggestions=(leak, "Wait"),
        details={"where": leak, "policy_url": "https://db01.internal.corp/policy"},
        extensions={"note": leak},
        errors=(part,),
        intent={"resource_id": "/var/lib/jobs/5", "recovery": leak},
        type="https://errors.example.com/timeout",
        instance="/orders/5",
        doc_uri="https://docs.example.com/timeout",
    )
    written = encode(fault)
    shown = repr({name: value for name, value in written.items() if name != "intent"}).replace(
        "https://db01.internal.corp/policy", ""
    )
    assert "db01" not in shown
    assert "10.0.0.5" not in shown
    assert written["intent"] == fault.intent
    assert written["details"]["policy_url"] == "https://db01.internal.corp/policy"
    assert (written["type"], written["instance"], written["doc_uri"]) == (
        fault.type,
        fault.instance,
        fault.doc_uri,
    )
    assert written["suggestions"][1] == "Wait"


def test_a_received_problem_is_passed_on_unchanged():
    """Design 6: a received problem is written with the same members."""
    document = {
        "title": "no",
        "status": 503,
        "detail": "db01.internal.corp refused 10.0.0.5:5432",
        "is_retriable": True,
        "balance": 30,
    }
    written = encode(decode(document))
    assert {name: written[name] for name in document} == document


def test_a_fault_from_another_dialect_is_redacted():
    """Design 6: a fault received in another dialect is redacted when it is written as a problem."""
    fault = Fault(code="TIMEOUT", message="10.0.0.5:5432 is down", vocabulary="task", origin=Origin("task"))
    assert "10.0.0.5" not in encode(fault)["detail"]


def test_the_actor_is_read_or_follows_from_the_row():
    """Design 3: a valid `actor` member is used; otherwise the actor follows from status and recovery."""
    assert decode({"status": 503, "actor": "provider"}).actor is Actor.PROVIDER
    assert decode({"status": 503, "actor": "nobody"}).actor is VOCABULARY.status_row(503).actor
    assert decode({"status": 503, "is_retriable": False}).actor is Actor.OPERATOR


def test_errors_by_field_are_kept():
    """ASP.NET lists errors under the names of fields and calls the trace `traceId`."""
    errors = {"Email": ["The Email field is required."], "Age": ["Too young."]}
    fault = problem.decode({"title": "Invalid", "status": 400, "errors": errors, "traceId": "00-0d6c-01"})
    assert (fault.field, fault.details, fault.trace_id) == ("Email", {"errors": errors}, "00-0d6c-01")


def test_an_empty_object_of_errors_says_nothing():
    for errors in ({}, {1: ["x"]}):
        fault = problem.decode({"title": "Invalid", "status": 400, "errors": errors})
        assert (fault.field, fault.details) == (None, None)
