"""SDKs of model services: every kind of failure, by the exception that the SDK raises for it."""

import asyncio
import json

import pytest

from tests.sdks import clients
from tests.sdks.checks import PROSE, difference, raised, wrong
from tests.sdks.server import Answer, serving

SSE = {"Content-Type": "text/event-stream"}
DATE = {"Date": "Mon, 06 Jul 2026 10:00:00 GMT"}


def openai(status, code, kind="invalid_request_error", param=None, **headers):
    body = {"error": {"message": PROSE, "type": kind, "param": param, "code": code}}
    return Answer(
        status, body, {"x-request-id": "req_1", **{k.replace("_", "-"): v for k, v in headers.items()}}
    )


OPENAI = [
    ("quota", openai(429, "insufficient_quota", "insufficient_quota"), "quota", {"word": "insufficient_quota", "trace_id": "req_1", "actor": "user"}),
    ("hard limit", openai(400, "billing_hard_limit_reached"), "quota", {"word": "billing_hard_limit_reached"}),
    ("billing", openai(429, "billing_not_active", "billing_not_active"), "quota", {}),
    ("throttle in ms", openai(429, "rate_limit_exceeded", "requests", retry_after_ms="1500"), "throttle", {"retry_after": 1.5}),
    ("the exhausted of two limits", openai(429, "rate_limit_exceeded", "tokens", x_ratelimit_remaining_requests="59", x_ratelimit_reset_requests="1s", x_ratelimit_remaining_tokens="0", x_ratelimit_reset_tokens="6m0s"), "throttle", {"retry_after": 360.0, "action": "escalate"}),
    ("overload", openai(503, None, "server_error"), "unavailable"),
    ("slow down", openai(503, "slow_down", "server_error"), "overload"),
    ("context", openai(400, "context_length_exceeded", param="messages"), "context", {"field": "messages", "word": "context_length_exceeded"}),
    ("one request above the limit", openai(429, "request_too_large", "tokens"), "context"),
    ("content", openai(400, "content_policy_violation"), "content"),
    ("prompt blocked", openai(400, "content_filter", param="prompt"), "content", {"field": "prompt"}),
    ("key", openai(401, "invalid_api_key"), "credentials", {"word": "invalid_api_key"}),
    ("expired", openai(401, "token_expired"), "credentials"),
    ("region", openai(403, "unsupported_country_region_territory", "request_forbidden"), "permission"),
    ("scope", openai(403, "missing_scope"), None, {"code": "PERMISSION_DENIED"}),
    ("deactivated", openai(401, "account_deactivated"), "permission"),
    ("model", openai(404, "model_not_found", param="model"), "missing", {"field": "model"}),
    ("field", openai(400, "invalid_value", param="messages[0].role"), "invalid", {"field": "messages[0].role"}),
    ("missing field", openai(400, "missing_required_parameter", param="model"), "invalid", {"field": "model"}),
    ("unsupported", openai(400, "unsupported_parameter", param="temperature"), "invalid", {"field": "temperature", "word": "unsupported_parameter"}),
    ("conflict", openai(409, "conflict"), "openai conflict"),
    ("unprocessable", openai(422, None), "invalid"),
    ("internal", openai(500, None, "server_error"), "internal"),
    ("html of a proxy", Answer(502, "<html><body>hunter2 Bad Gateway</body></html>", {"Content-Type": "text/html"}), "unavailable"),
    ("no body", Answer(429, None, {"retry-after": "9"}), "throttle", {"retry_after": 9.0}),
]  # fmt: skip


def azure_openai(status, code, inner=None, **headers):
    error = {"message": PROSE, "code": code, "status": status, "param": "prompt", "type": None}
    if inner:
        error["innererror"] = {"code": inner}
    return Answer(
        status, {"error": error}, {"apim-request-id": "r", **{k.replace("_", "-"): v for k, v in headers.items()}}
    )  # fmt: skip


AZURE_OPENAI = [
    ("filter", azure_openai(400, "content_filter", "ResponsibleAIPolicyViolation"), "content", {"field": "prompt"}),
    ("throttle", azure_openai(429, "429", retry_after="17"), "throttle", {"retry_after": 17.0}),
    ("deployment", azure_openai(404, "DeploymentNotFound"), "missing", {"word": "DeploymentNotFound"}),
    ("quota of the subscription", azure_openai(403, "InsufficientQuota"), "quota"),
    ("token", azure_openai(401, "401"), "credentials"),
    ("retry-after in ms", azure_openai(429, "RateLimitReached", retry_after_ms="2500"), "throttle", {"retry_after": 2.5}),
]  # fmt: skip


def anthropic(status, kind, **headers):
    body = {"type": "error", "error": {"type": kind, "message": PROSE}, "request_id": "req_b"}
    return Answer(
        status, body, {"request-id": "req_b", **{k.replace("_", "-"): v for k, v in headers.items()}}
    )


ANTHROPIC = [
    ("credit", anthropic(402, "billing_error"), "quota", {"word": "billing_error", "trace_id": "req_b"}),
    ("throttle", anthropic(429, "rate_limit_error", retry_after="12"), "throttle", {"retry_after": 12.0}),
    ("reset", anthropic(429, "rate_limit_error", anthropic_ratelimit_requests_remaining="9", anthropic_ratelimit_requests_reset="2026-07-06T10:00:01Z", anthropic_ratelimit_input_tokens_remaining="0", anthropic_ratelimit_input_tokens_reset="2026-07-06T10:00:40Z", **DATE), "throttle", {"retry_after": 40.0}),
    ("overload", anthropic(529, "overloaded_error"), "overload", {"executed": "no", "word": "overloaded_error"}),
    ("too large", anthropic(413, "request_too_large"), "context"),
    ("key", anthropic(401, "authentication_error"), "credentials"),
    ("permission", anthropic(403, "permission_error"), "permission"),
    ("model", anthropic(404, "not_found_error"), "missing"),
    ("invalid", anthropic(400, "invalid_request_error"), "invalid"),
    ("internal", anthropic(500, "api_error"), "internal"),
    ("timeout", anthropic(504, "timeout_error"), "timeout"),
    ("do not retry", anthropic(429, "rate_limit_error", x_should_retry="false"), "permanent"),
    ("do retry", anthropic(409, "conflict_error", x_should_retry="true"), None, {"recovery": "transient"}),
]  # fmt: skip


def google(status, name, *details, **headers):
    error = {"code": status, "message": PROSE, "status": name, "details": list(details)}
    return Answer(status, {"error": error}, headers)


def info(reason, **metadata):
    kind = "type.googleapis.com/google.rpc.ErrorInfo"
    return {"@type": kind, "reason": reason, "domain": "googleapis.com", "metadata": metadata}


def quota(name):
    kind = "type.googleapis.com/google.rpc.QuotaFailure"
    return {"@type": kind, "violations": [{"quotaMetric": "m", "quotaId": name}]}


RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.07s"}
FIELD = {
    "@type": "type.googleapis.com/google.rpc.BadRequest",
    "fieldViolations": [{"field": "contents[0].parts", "description": PROSE}],
}
GOOGLE = [
    ("per minute", google(429, "RESOURCE_EXHAUSTED", quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier"), RETRY), "throttle", {"retry_after": 34.07}),
    ("per day", google(429, "RESOURCE_EXHAUSTED", quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), RETRY), "quota"),
    ("unnamed", google(429, "RESOURCE_EXHAUSTED"), "throttle"),
    ("key", google(400, "INVALID_ARGUMENT", info("API_KEY_INVALID")), "credentials", {"word": "API_KEY_INVALID"}),
    ("expired token", google(401, "UNAUTHENTICATED", info("ACCESS_TOKEN_EXPIRED")), "credentials"),
    ("disabled", google(403, "PERMISSION_DENIED", info("SERVICE_DISABLED")), "permission", {"word": "SERVICE_DISABLED"}),
    ("scope", google(403, "PERMISSION_DENIED", info("ACCESS_TOKEN_SCOPE_INSUFFICIENT")), None, {"code": "PERMISSION_DENIED", "recovery": "correctable"}),
    ("billing", google(403, "PERMISSION_DENIED", info("BILLING_DISABLED")), "quota"),
    ("model", google(404, "NOT_FOUND"), "missing"),
    ("field", google(400, "INVALID_ARGUMENT", FIELD), "invalid", {"field": "contents[0].parts"}),
    ("overload", google(503, "UNAVAILABLE"), "unavailable"),
    ("internal", google(500, "INTERNAL"), "internal"),
    ("deadline", google(504, "DEADLINE_EXCEEDED"), "timeout"),
    ("precondition", google(400, "FAILED_PRECONDITION"), None, {"recovery": "correctable"}),
    ("aborted", google(409, "ABORTED"), "again"),
    ("exists", google(409, "ALREADY_EXISTS"), "conflict"),
    ("rate reason", google(429, "RESOURCE_EXHAUSTED", info("RATE_LIMIT_EXCEEDED", quota_limit="DefaultRequestsPerMinutePerProject")), "throttle"),
]  # fmt: skip
DETAIL = {"detail": [{"type": "missing", "loc": ["body", "messages"], "msg": PROSE, "input": {}}]}
MISTRAL = [
    ("throttle", Answer(429, {"object": "error", "message": PROSE, "type": "rate_limited", "param": None, "code": "1300"}, {"retry-after": "6"}), "throttle", {"retry_after": 6.0}),
    ("capacity", Answer(429, {"object": "error", "message": PROSE, "type": "service_tier_capacity_exceeded", "param": None, "code": "3505"}), None, {"recovery": "transient", "executed": "no"}),
    ("field", Answer(422, DETAIL), "invalid", {"field": ("body.messages", "/body/messages", "messages", "/messages")}),
    ("key", Answer(401, {"detail": PROSE}), "credentials"),
    ("model", Answer(400, {"object": "error", "message": PROSE, "type": "invalid_model", "param": None, "code": "1500"}), None, {"recovery": "correctable", "word": ("invalid_model", "1500")}),
    ("payment", Answer(402, {"message": PROSE}), "quota"),
    ("unavailable", Answer(503, {"object": "error", "message": PROSE, "type": "service_unavailable", "code": "3700"}), "unavailable"),
    ("internal", Answer(500, {"object": "error", "message": PROSE, "type": "internal_server_error", "code": "3000"}), "internal"),
    ("missing", Answer(404, {"detail": "Not Found"}), "missing"),
    ("forbidden", Answer(403, {"detail": PROSE}), "permission"),
]  # fmt: skip
COHERE = [
    ("throttle", Answer(429, {"message": PROSE}, {"retry-after": "3"}), "throttle", {"retry_after": 3.0}),
    ("key", Answer(401, {"message": PROSE, "id": "x"}), "credentials"),
    ("invalid", Answer(400, {"message": PROSE}), "invalid"),
    ("payment", Answer(402, {"message": PROSE}), "quota"),
    ("model", Answer(404, {"message": PROSE}), "missing"),
    ("unprocessable", Answer(422, {"message": PROSE}), "invalid"),
    ("internal", Answer(500, {"message": PROSE}), "internal"),
    ("unavailable", Answer(503, {"message": PROSE}), "unavailable"),
    ("forbidden", Answer(403, {"message": PROSE}), "permission"),
    ("client closed", Answer(499, {"message": PROSE}), None, {"executed": "maybe"}),
    ("timeout", Answer(504, {"message": PROSE}), "timeout"),
]  # fmt: skip


def genai_async(url):
    asyncio.run(clients.genai_client(url).aio.models.generate_content(model="m", contents="x"))


def openai_async(url):
    import openai as sdk

    async def call():
        async with sdk.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
            await client.chat.completions.create(model="m", messages=clients.CHAT)

    asyncio.run(call())


def openai_responses(url):
    clients.openai_client(url).responses.create(model="m", input="x")


def openai_azure(url):
    import openai as sdk

    client = sdk.AzureOpenAI(azure_endpoint=url, api_key="k", api_version="2024-10-21", max_retries=0)
    client.chat.completions.create(model="m", messages=clients.CHAT)


def anthropic_async(url):
    import anthropic as sdk

    async def call():
        async with sdk.AsyncAnthropic(base_url=url, api_key="k", max_retries=0) as client:
            await client.messages.create(model="m", max_tokens=5, messages=clients.CHAT)

    asyncio.run(call())


def cohere_v1(url):
    import cohere

    cohere.Client(api_key="k", base_url=url).chat(model="m", message="x", request_options={"max_retries": 0})


def mistral_async(url):
    from mistralai.client import Mistral

    async def call():
        async with Mistral(api_key="k", server_url=url) as client:
            await client.chat.complete_async(model="m", messages=clients.CHAT)

    asyncio.run(call())


@pytest.mark.parametrize(
    ("call", "cases"),
    [
        (clients.openai, OPENAI),
        (openai_responses, OPENAI[:3]),
        (openai_async, OPENAI[3:6]),
        (openai_azure, AZURE_OPENAI),
        (clients.anthropic, ANTHROPIC),
        (anthropic_async, ANTHROPIC[:3]),
        (clients.google_genai, GOOGLE),
        (genai_async, GOOGLE[:2]),
        (clients.google_api_core, GOOGLE),
        (clients.mistralai, MISTRAL),
        (mistral_async, MISTRAL[:3]),
        (clients.cohere, COHERE),
        (cohere_v1, COHERE[:3]),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_responses(call, cases):
    """Code, recovery, effect, wait, field, code word and action are those of the answer; no prose is kept."""
    with serving(Answer(500)) as server:

        def ask(answer):
            server.script = [answer]
            call(server.url)

        assert wrong(cases, ask) == {}


def chunk(**delta):
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def stream(*values, last=""):
    """Return an event stream of values; a tuple is (event, value)."""
    text = ""
    for value in values:
        name, value = value if isinstance(value, tuple) else (None, value)
        text += (f"event: {name}\n" if name else "") + f"data: {json.dumps(value)}\n\n"
    return text + last


def openai_stream(url):
    client = clients.openai_client(url)
    for _ in client.chat.completions.create(model="m", messages=clients.CHAT, stream=True):
        pass


def openai_responses_stream(url):
    for _ in clients.openai_client(url).responses.create(model="m", input="x", stream=True):
        pass


def anthropic_stream(url):
    client = clients.anthropic_client(url)
    with client.messages.stream(model="m", max_tokens=5, messages=clients.CHAT) as events:
        for _ in events:
            pass


def genai_stream(url):
    for _ in clients.genai_client(url).models.generate_content_stream(model="m", contents="x"):
        pass


def mistral_stream(url):
    for _ in clients.mistral_client(url).chat.stream(model="m", messages=clients.CHAT):
        pass


def cohere_stream(url):
    import cohere

    for _ in cohere.ClientV2(api_key="k", base_url=url).chat_stream(model="m", messages=clients.CHAT):
        pass


def failed(code, kind):
    return {"error": {"message": PROSE, "type": kind, "param": None, "code": code}}


PART = {"candidates": [{"content": {"role": "model", "parts": [{"text": "a"}]}}]}
START = ("message_start", {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m", "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}})  # fmt: skip


def claude(kind):
    return ("error", {"type": "error", "error": {"type": kind, "message": PROSE}, "request_id": "req_s"})


LONG = "x" * 9000
STREAMS = [
    ("openai quota", openai_stream, Answer(200, stream(chunk(content="a"), failed("insufficient_quota", "insufficient_quota")), SSE), "quota", {"executed": "maybe"}),
    ("openai overload", openai_stream, Answer(200, stream(chunk(content="a"), failed("server_overloaded", "server_error")), SSE), "overload", {}),
    ("openai event", openai_stream, Answer(200, stream(("error", failed("rate_limit_exceeded", "tokens"))), SSE), "throttle", {"executed": "maybe", "action": "verify"}),
    ("openai numeric", openai_stream, Answer(200, stream(chunk(content="a"), {"error": {"message": PROSE, "code": 502, "metadata": {"provider_name": "p"}}}), SSE), "unavailable", {}),
    ("openai cut", openai_stream, Answer(200, stream(chunk(content="a"), chunk(content=LONG)), SSE, cut=300), "lost", {}),
    ("openai broken", openai_stream, Answer(200, stream(chunk(content="a"), last="data: {broken\n\n"), SSE), None, {"executed": "maybe"}),
    ("responses error", openai_responses_stream, Answer(200, stream(("error", {"type": "error", "error": {"type": "tokens", "code": "rate_limit_exceeded", "message": PROSE, "param": None}})), SSE), "throttle", {"executed": "maybe", "action": "verify"}),
    ("anthropic overload", anthropic_stream, Answer(200, stream(START, claude("overloaded_error")), SSE), "overload", {"word": "overloaded_error", "trace_id": "req_s"}),
    ("anthropic rate", anthropic_stream, Answer(200, stream(START, claude("rate_limit_error")), SSE), "throttle", {"executed": "maybe", "action": "verify"}),
    ("anthropic invalid", anthropic_stream, Answer(200, stream(START, claude("invalid_request_error")), SSE), "invalid", {"executed": "maybe"}),
    ("anthropic cut", anthropic_stream, Answer(200, stream(START) + LONG, SSE, cut=300), "lost", {}),
    ("genai rate", genai_stream, Answer(200, stream(PART, {"error": {"code": 429, "message": PROSE, "status": "RESOURCE_EXHAUSTED", "details": [RETRY]}}), SSE), "throttle", {"retry_after": 34.07}),
    ("genai internal", genai_stream, Answer(200, stream(PART, {"error": {"code": 500, "message": PROSE, "status": "INTERNAL"}}), SSE), "internal", {}),
    ("genai bare", genai_stream, Answer(200, stream(PART) + json.dumps({"error": {"code": 503, "message": PROSE, "status": "UNAVAILABLE"}}), SSE), "unavailable", {}),
    ("genai cut", genai_stream, Answer(200, stream(PART) + LONG, SSE, cut=200), "lost", {}),
    ("mistral broken", mistral_stream, Answer(200, stream(chunk(content="a")) + LONG, SSE, cut=300), "lost", {}),
    ("mistral refused", mistral_stream, Answer(429, {"object": "error", "message": PROSE, "type": "rate_limited", "code": "1300"}, {"retry-after": "5"}), "throttle", {"retry_after": 5.0}),
    ("cohere refused", cohere_stream, Answer(429, {"message": PROSE}, {"retry-after": "5"}), "throttle", {"retry_after": 5.0}),
    ("cohere cut", cohere_stream, Answer(200, stream(("message-start", {"type": "message-start", "id": "1"})) + LONG, SSE, cut=200), "lost", {}),
]  # fmt: skip


@pytest.mark.parametrize(("call", "answer", "kind", "more"), [case[1:] for case in STREAMS], ids=[case[0] for case in STREAMS])  # fmt: skip
def test_streams(call, answer, kind, more):
    """A failure in mid-stream: an error event, a broken event, a connection that is cut.

    The event of a server on another host than the vendor's does not show that nothing happened.
    """
    with serving(answer) as server:
        error = raised(call, server.url)
    assert difference(error, kind, **more) == {}, repr(error)


def completion(**more):
    choice = {"index": 0, "message": {"role": "assistant", "content": "{"}, "finish_reason": "stop", **more}
    return Answer(
        200, {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    )


def openai_parse(url):
    from pydantic import BaseModel

    class Reply(BaseModel):
        text: str

    clients.openai_client(url).chat.completions.parse(model="m", messages=clients.CHAT, response_format=Reply)


def no_key(url):
    import openai as sdk

    sdk.OpenAI(base_url=url, api_key=None)


SUCCESSES = [
    ("length", openai_parse, completion(finish_reason="length"), None, {"recovery": "correctable"}),
    ("filter", openai_parse, completion(finish_reason="content_filter"), "content", {}),
    ("schema", openai_parse, completion(), None, {"executed": ("maybe", "no")}),
    (
        "genai not JSON",
        clients.google_genai,
        Answer(200, "<html>hunter2</html>"),
        None,
        {"executed": "maybe"},
    ),
    ("mistral not JSON", clients.mistralai, Answer(200, "<html>hunter2</html>"), None, {"executed": "maybe"}),
    ("cohere not JSON", clients.cohere, Answer(200, "<html>hunter2</html>"), None, {"executed": "maybe"}),
    ("no key", no_key, Answer(200, {}), None, {"recovery": "correctable", "executed": "no"}),
]


@pytest.mark.parametrize(("call", "answer", "kind", "more"), [case[1:] for case in SUCCESSES], ids=[case[0] for case in SUCCESSES])  # fmt: skip
def test_exceptions_after_a_successful_answer(call, answer, kind, more, monkeypatch):
    """The SDK itself refuses an answer, or a call."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with serving(answer) as server:
        error = raised(call, server.url)
    assert difference(error, kind, **more) == {}, repr(error)
