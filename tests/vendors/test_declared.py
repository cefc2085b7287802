"""Shapes that are read only if the client says which service it calls."""

import pytest

from amends import extract

CASES = [
    ("alphavantage", 200, {"Note": "…"}, ("RATE_LIMITED", "transient", None)),
    ("alphavantage", 200, {"Information": "…"}, ("QUOTA_EXCEEDED", "terminal", None)),
    ("alphavantage", 200, {"Error Message": "…"}, ("VALIDATION_ERROR", "correctable", None)),
    ("discord", 202, {"message": "…", "code": 110000, "retry_after": 2}, ("NOT_READY", "transient", 2.0)),
    ("aws", 200, {"throttlingException": {"message": "…"}}, ("RATE_LIMITED", "transient", None)),
]


@pytest.mark.parametrize(("vendor", "status", "body", "expected"), CASES)
def test_a_failure_of_a_named_service(vendor, status, body, expected):
    """With the name it is a failure; without it, it is an answer like any other."""
    answer = {"status": status, "headers": {}, "body": body}
    fault = extract(answer, vendor=vendor, in_success=True)
    assert (fault.code, fault.recovery, fault.retry_after) == expected
    assert extract(answer, in_success=True) is None
    assert extract(answer, vendor=vendor) is None


def test_a_function_that_failed():
    """Lambda answers 200 with what the function raised; only a header says so."""
    answer = {
        "status": 200,
        "headers": {"X-Amz-Function-Error": "Unhandled", "x-amzn-RequestId": "la2"},
        "body": {"errorMessage": "…", "errorType": "Runtime.ExitError"},
    }
    fault = extract(answer, in_success=True)
    assert (fault.code, fault.executed, fault.trace_id) == ("INTERNAL_ERROR", "maybe", "la2")
    assert fault.details == {"code": "Runtime.ExitError"}


def test_the_results_of_a_batch_of_model_calls():
    """Each line is a part: OpenAI's with a status, Anthropic's with an error."""
    lines = (
        '{"custom_id":"a","response":{"status_code":200,"body":{"id":"x"}},"error":null}\n'
        '{"custom_id":"b","response":{"status_code":429,"body":{"error":{"code":"insufficient_quota",'
        '"type":"insufficient_quota","message":"…"}}},"error":null}\n'
    )
    fault = extract({"status": 200, "headers": {}, "body": lines}, vendor="openai", in_success=True)
    assert fault.code == "PARTIAL_FAILURE"
    assert [part.code for part in fault.errors] == ["QUOTA_EXCEEDED"]
    failed = '{"custom_id":"c","result":{"type":"errored","error":{"type":"error","error":{"type":"overloaded_error","message":"…"}}}}'
    fault = extract({"status": 200, "headers": {}, "body": failed}, vendor="anthropic", in_success=True)
    assert fault.code == "OVERLOADED"
