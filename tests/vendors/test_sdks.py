"""
Exceptions of SDKs: openai against a local server, google-api-core and pydantic-ai with their own classes.

Other SDKs are not installed; stand-ins with the same class names and attributes show what our tables do with them.
"""

import json
from types import SimpleNamespace

import pytest

from amends import from_exception
from tests.foreign import servers
from tests.foreign.faults import raised_fault
from tests.foreign.servers import HOST, serving
from tests.foreign.standins import standin


def body(code, kind="invalid_request_error", param=None):
    """Return an error of OpenAI's format."""
    return {"error": {"message": "acme has secrets", "type": kind, "param": param, "code": code}}


def meaning(fault):
    """Return the facts that decide."""
    return fault.code, fault.recovery.value, fault.executed.value


@pytest.mark.parametrize(
    ("status", "document", "expected"),
    [
        (429, body("insufficient_quota", "insufficient_quota"), ("QUOTA_EXCEEDED", "terminal", "no")),
        (429, body("rate_limit_exceeded", "tokens"), ("RATE_LIMITED", "transient", "no")),
        (400, body("context_length_exceeded", param="messages"), ("CONTEXT_TOO_LONG", "correctable", "no")),
        (400, body("content_policy_violation"), ("CONTENT_REFUSED", "correctable", "no")),
        (529, {"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, ("OVERLOADED", "transient", "no")),
    ],
)  # fmt: skip
def test_openai_with_a_response(status, document, expected):
    """The vendor's word decides; nothing of the text is in the fault."""
    openai = pytest.importorskip("openai")
    with serving(servers.answering(status, {"x-request-id": "r1"}, json.dumps(document).encode())) as port:
        client = openai.OpenAI(base_url=f"http://{HOST}:{port}/v1", api_key="sk-acme", max_retries=0)
        fault = raised_fault(client.models.list)
    assert meaning(fault) == expected
    assert fault.trace_id == "r1"
    assert "secrets" not in repr(fault)


def test_openai_in_the_middle_of_a_stream():
    """During a stream the exception has no response, only the error object of the event."""
    openai = pytest.importorskip("openai")
    events = (
        b'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
        b"data: " + json.dumps(body("rate_limit_exceeded", "tokens")).encode() + b"\n\n"
    )
    with serving(servers.answering(200, {"content-type": "text/event-stream"}, events)) as port:
        client = openai.OpenAI(base_url=f"http://{HOST}:{port}/v1", api_key="sk-acme", max_retries=0)

        def consume():
            list(
                client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": "x"}], stream=True
                )
            )

        fault = raised_fault(consume)
    assert meaning(fault)[:2] == ("RATE_LIMITED", "transient")
    assert fault.details == {"code": "rate_limit_exceeded"}


def test_google_api_core():
    """The reason and the quota of ErrorInfo decide."""
    exceptions = pytest.importorskip("google.api_core.exceptions")
    info = SimpleNamespace(
        reason="RATE_LIMIT_EXCEEDED", domain="d", metadata={"quota_limit": "RequestsPerDay"}
    )
    error = exceptions.ResourceExhausted("acme", error_info=info)
    assert meaning(from_exception(error)) == ("QUOTA_EXCEEDED", "terminal", "no")
    error = exceptions.ResourceExhausted(
        "acme", details=[SimpleNamespace(retry_delay=SimpleNamespace(seconds=7, nanos=0))]
    )
    assert (from_exception(error).code, from_exception(error).retry_after) == ("RATE_LIMITED", 7.0)
    assert meaning(from_exception(exceptions.Aborted("acme"))) == ("CONFLICT", "transient", "no")


def test_pydantic_ai():
    """Its error has a status and a body, and no response."""
    exceptions = pytest.importorskip("pydantic_ai.exceptions")
    error = exceptions.ModelHTTPError(429, "gpt", body("insufficient_quota", "insufficient_quota")["error"])
    assert meaning(from_exception(error)) == ("QUOTA_EXCEEDED", "terminal", "no")
    assert meaning(from_exception(exceptions.UsageLimitExceeded("acme")))[:2] == (
        "QUOTA_EXCEEDED",
        "terminal",
    )


def raised(name, *bases, **attributes):
    """Return an instance of a stand-in with these attributes."""
    error = standin(name, *bases)()
    for attribute, value in attributes.items():
        setattr(error, attribute, value)
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (raised("anthropic.APIStatusError", status_code=529, body={"type": "error", "error": {"type": "overloaded_error"}}),
         ("OVERLOADED", "transient", "no")),
        (raised("anthropic.APIError", body={"type": "error", "error": {"type": "overloaded_error"}}),
         ("OVERLOADED", "transient", "no")),
        (raised("google.genai.errors.ClientError", code=429, status="RESOURCE_EXHAUSTED", details={"error": {"code": 429,
         "status": "RESOURCE_EXHAUSTED", "details": [{"violations": [{"quotaId": "RequestsPerDay"}]}]}}),
         ("QUOTA_EXCEEDED", "terminal", "no")),
        (raised("mistralai.models.sdkerror.SDKError", status_code=429, headers={}, body='{"type":"rate_limited","code":"1300"}'),
         ("RATE_LIMITED", "transient", "no")),
        (raised("cohere.core.api_error.ApiError", status_code=402, headers={}, body={"message": "m"}),
         ("QUOTA_EXCEEDED", "terminal", "no")),
        (raised("stripe.CardError", http_status=402, json_body={"error": {"type": "card_error", "code": "expired_card"}},
         headers={"request-id": "r"}), ("PAYMENT_REQUIRED", "correctable", "no")),
        (raised("slack_sdk.errors.SlackApiError", response=SimpleNamespace(status_code=200, headers={}, data={"ok": False,
         "error": "token_expired"})), ("UNAUTHENTICATED", "correctable", "no")),
        (raised("github.GithubException.RateLimitExceededException", status=403, data={"message": "m"},
         headers={"x-ratelimit-remaining": "0", "x-ratelimit-reset": "60"}), ("RATE_LIMITED", "transient", "no")),
        (raised("kubernetes.client.exceptions.ApiException", status=409, headers={}, body='{"kind":"Status","apiVersion":"v1",'
         '"reason":"AlreadyExists","code":409}'), ("CONFLICT", "correctable", "no")),
        (raised("elasticsearch.ApiError", meta=SimpleNamespace(status=429, headers={}), body={"error": {"root_cause": [],
         "type": "circuit_breaking_exception", "durability": "PERMANENT"}}), ("OVERLOADED", "terminal", "no")),
        (raised("twilio.base.exceptions.TwilioRestException", status=429, code=63038), ("QUOTA_EXCEEDED", "terminal", "no")),
        (raised("azure.core.exceptions.HttpResponseError", status_code=400, error=SimpleNamespace(code="content_filter",
         innererror={"code": "ResponsibleAIPolicyViolation"}, target=None)), ("CONTENT_REFUSED", "correctable", "no")),
        (raised("litellm.exceptions.ContextWindowExceededError", status_code=400, response=None),
         ("CONTEXT_TOO_LONG", "correctable", "no")),
        (raised("litellm.exceptions.RateLimitError", status_code=429), ("RATE_LIMITED", "transient", "no")),
        (raised("botocore.exceptions.EventStreamError", response={"Error": {"Code": "throttlingException"}}),
         ("RATE_LIMITED", "transient", "no")),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)  # fmt: skip
def test_stand_ins(error, expected):
    """Class names and attributes are enough; nothing is imported."""
    assert meaning(from_exception(error)) == expected
