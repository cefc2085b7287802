"""A request with an Idempotency-Key: its key, caller and fingerprint, and what a failure means for the key."""

import doctest
import logging
from types import SimpleNamespace

import pytest

from amends import Fault, FaultError
from amends.core.enums import Executed
from amends.errors import ConflictError
from amends.http import idempotency_request
from amends.http.idempotency_request import (
    after_failure,
    caller_of,
    ended_early_fault,
    fault_of_raised,
    fingerprint,
    kept_headers,
    not_stored_fault,
    parse_key,
    store_down_fault,
    too_large_fault,
    verified_response,
    warn_unkeyed,
)
from amends.http.responses import RawResponse


def test_its_examples():
    """The examples in the docstrings hold."""
    assert doctest.testmod(idempotency_request).failed == 0


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ([], None),
        (["a"], "a"),
        ([" a "], "a"),
        (['"a"'], "a"),
        (['"a,b"'], "a,b"),
        (['"'], '"'),
        (["a" * 255], "a" * 255),
    ],
)
def test_keys(values, key):
    """A key is taken out of its quotes."""
    assert parse_key(values) == key


@pytest.mark.parametrize(
    "values", [[""], ['""'], ["a" * 256], ["ä"], ["a\x01"], ["a", "b"], ["a,b"], ['"a","b"']]
)
def test_invalid_keys(values):
    """Several keys and keys that are not 1 to 255 visible characters are refused with 400."""
    with pytest.raises(FaultError) as refused:
        parse_key(values)
    fault = refused.value.fault
    assert (fault.code, fault.status, fault.field) == ("BAD_REQUEST", 400, "Idempotency-Key")


def test_callers():
    """Credentials, cookies and headers that name a user tell callers apart; tokens of one request do not."""
    nobody = caller_of([])
    same = [("User-Agent", "a"), ("X-CSRF-Token", "a"), ("Idempotency-Key", "a"), ("X-Signature", "a")]
    assert {caller_of([each]) for each in same} == {nobody}
    other = [
        ("Authorization", "a"),
        ("Cookie", "a=1"),
        ("X-User-Id", "a"),
        ("X-Tenant", "a"),
        ("X-Tenant", "b"),
    ]
    assert len({nobody, *(caller_of([each]) for each in other)}) == len(other) + 1
    assert caller_of([("Cookie", "a=1; b=2")]) == caller_of([("cookie", "b=2;a=1")])
    assert caller_of([("X-Tenant", "a; b")]) != caller_of([("X-Tenant", "b; a")])
    assert caller_of(other[:2]) == caller_of(other[1::-1])
    assert caller_of([], "more") != nobody


def test_fingerprints():
    """Method, path, query and body count, each with its length; a streamed body does not."""
    base = fingerprint("POST", "/a", b"q", b"body")
    others = [("PUT", "/a", b"q", b"body"), ("POST", "/b", b"q", b"body"), ("POST", "/a", b"", b"body")]
    others += [("POST", "/a", b"q", b""), ("POST", "/aq", b"", b"body"), ("POST", "/a", b"q", None)]
    assert len({base, *(fingerprint(*each) for each in others)}) == 7
    streamed = fingerprint("POST", "/a", b"q", None)
    assert streamed.endswith(":")
    assert base.partition(":")[0] == streamed.partition(":")[0]


@pytest.mark.parametrize(
    ("fault", "status", "meaning"),
    [
        (Fault(code="RATE_LIMITED"), 429, "release"),
        (Fault(code="TIMEOUT"), 504, "doubt"),
        (Fault(code="INTERNAL_ERROR"), 500, "doubt"),
        (Fault(code="CONFLICT", executed=Executed.YES), 409, "keep"),
        (None, 503, "doubt"),
        (None, 400, "release"),
    ],
)
def test_what_a_failure_means_for_the_key(fault, status, meaning):
    """A request without an effect releases its key; one that may succeed later is in doubt; others are kept."""
    assert after_failure(fault, status) == meaning


def test_a_problem_document_says_what_happened():
    """A fault is read from the body only if the body is a problem document."""
    body = b'{"type": "x", "status": 503, "code": "SERVICE_UNAVAILABLE", "executed": "no"}'
    assert after_failure(None, 503, "application/problem+json; charset=utf-8", body) == "release"
    assert after_failure(None, 503, "application/json", body) == "doubt"
    assert after_failure(Fault(code="TIMEOUT"), 503, "application/problem+json", body) == "doubt"


def test_raised_exceptions():
    """Only exceptions with a meaning of their own say something about the effect; groups of one are unwrapped."""
    assert fault_of_raised(None, "POST") is None
    assert fault_of_raised(KeyError("a"), "POST") is None
    assert fault_of_raised(ConflictError(), "POST").code == "CONFLICT"
    assert fault_of_raised(ExceptionGroup("", [ConflictError()]), "POST").code == "CONFLICT"


def test_the_faults_of_the_middleware():
    """Requests that did not run say so; one whose response is lost had its effect."""
    faults = [store_down_fault(), ended_early_fault(), too_large_fault(), not_stored_fault()]
    assert [(each.status, each.executed.value) for each in faults] == [
        (None, "no"),
        (400, "no"),
        (413, "no"),
        (409, "yes"),
    ]
    assert store_down_fault().retry_after == 5.0
    assert not_stored_fault().suggestions


def test_headers_that_are_stored():
    """Headers of one response, such as its date and cookies, are not replayed."""
    given = [("Date", "x"), ("Set-Cookie", "x"), ("Content-Type", "text/plain"), ("Idempotency-Key", "x")]
    assert kept_headers(given) == (("Content-Type", "text/plain"),)


def test_what_verify_may_return():
    """None, booleans and responses of any framework are understood; anything else is an error that says so."""
    for plain in (None, True, False, RawResponse(200, [], b"")):
        assert verified_response(plain) is plain
    assert verified_response((201, b"x")) == RawResponse(201, [], b"x")
    assert verified_response((201, "ä")) == RawResponse(201, [], "ä".encode())
    assert verified_response((201, {"a": 1})) == RawResponse(
        201, [("content-type", "application/json")], b'{"a":1}'
    )
    headers = {"x-a": "1"}
    flask = SimpleNamespace(status_code=202, headers=headers, get_data=lambda: b"flask")
    for name in ("body", "content"):
        found = verified_response(SimpleNamespace(status_code=202, headers=headers, **{name: b"x"}))
        assert found == RawResponse(202, [("x-a", "1")], b"x")
    assert verified_response(flask) == RawResponse(202, [("x-a", "1")], b"flask")
    for wrong in ("a", ("200", b""), (1, 2, 3), SimpleNamespace(status_code="200", headers={}, body=b"x")):
        with pytest.raises(TypeError, match="verify returns"):
            verified_response(wrong)


def test_a_request_without_its_key_is_logged(caplog):
    """The log names the request and the limit."""
    with caplog.at_level(logging.WARNING):
        warn_unkeyed("POST", "/a\nb", 10)
    (record,) = caplog.records
    assert "POST /a" in record.getMessage()
    assert "10 bytes" in record.getMessage()
    assert "\n" not in record.getMessage()


@pytest.mark.parametrize("key", ['"a,b""', "a,b", '"a","b"', "", '""', "a" * 256, "ä", "a\tb"])
def test_keys_that_are_not_valid(key):
    """The error names the header."""
    with pytest.raises(FaultError) as refused:
        parse_key([key])
    assert (refused.value.fault.status, refused.value.fault.field) == (400, "Idempotency-Key")
