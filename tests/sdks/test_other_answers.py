"""Further answers and situations: other words, other entry points of the SDKs, other ways of wrapping."""

import asyncio

import pytest

from tests.sdks import clients
from tests.sdks.checks import PROSE, difference, raised, wrong
from tests.sdks.server import Answer, closed_port, serving
from tests.sdks.test_cloud import azure, status
from tests.sdks.test_connections import SHORT
from tests.sdks.test_models import OPENAI, anthropic, google, info, openai, quota
from tests.sdks.test_services import DATE, elastic, github, slack, stripe, twilio
from tests.sdks.test_wrappers import CASES, completion, pydantic_agent

# ---------------------------------------------------------------------------------------------------------- models


def embeddings(url):
    clients.openai_client(url).embeddings.create(model="m", input="x")


def images(url):
    clients.openai_client(url).images.generate(prompt="x")


def raw(url):
    clients.openai_client(url).chat.completions.with_raw_response.create(model="m", messages=clients.CHAT)


def files(url):
    clients.openai_client(url).files.retrieve("f")


def error(status, headers=None, **members):
    return Answer(status, {"error": {"message": PROSE, **members}}, headers)


EMBEDDINGS = [
    ("requests per day", openai(429, "rate_limit_exceeded", "requests", x_ratelimit_remaining_requests="0", x_ratelimit_reset_requests="7m12s"), "throttle", {"retry_after": 432.0, "action": "escalate"}),
    ("too long", openai(400, "string_above_max_length", param="input"), None, {"recovery": "correctable", "field": "input"}),
    ("organisation", openai(401, "invalid_organization"), "credentials"),
    ("project", openai(403, "model_not_found", param="model"), None, {"recovery": ("correctable", "terminal")}),
    ("permissions", openai(403, "insufficient_permissions"), None, {"code": "PERMISSION_DENIED"}),
    ("spend", openai(429, "project_spend_limit_exceeded", "insufficient_quota"), "quota"),
    ("deepseek balance", error(402, type="unknown_error", param=None, code="invalid_request_error"), "quota"),
    ("groq capacity", error(498, type="internal_server_error", code="capacity_exceeded"), "overload"),
    ("groq tokens", error(413, {"retry-after": "12"}, type="tokens", code="rate_limit_exceeded"), None, {"executed": "no", "recovery": ("transient", "correctable")}),
    ("openrouter credit", Answer(402, {"error": {"code": 402, "message": PROSE}}), "quota"),
    ("openrouter moderation", Answer(403, {"error": {"code": 403, "message": PROSE, "metadata": {"reasons": ["x"], "flagged_input": PROSE, "provider_name": "p"}}}), None, {"recovery": ("correctable", "terminal"), "executed": "no"}),
    ("vllm", Answer(400, {"object": "error", "message": PROSE, "type": "BadRequestError", "param": None, "code": 400}), "invalid"),
    ("vllm new", error(400, type="BadRequestError", param="input", code=400), "invalid", {"field": "input"}),
    ("ollama", Answer(404, {"error": {"message": PROSE, "type": "api_error", "param": None, "code": None}}), "missing"),
    ("text", Answer(429, "hunter2 slow down", {"Content-Type": "text/plain", "Retry-After": "4"}), "throttle", {"retry_after": 4.0}),
    ("cloudflare", Answer(524, "<html>hunter2 error code: 524</html>", {"Content-Type": "text/html"}), None, {"recovery": "transient", "executed": "maybe"}),
    ("moderation", openai(400, "moderation_blocked", "image_generation_user_error"), "content"),
    ("function", openai(400, "invalid_function_parameters", param="tools[0].function.parameters"), "invalid", {"field": "tools[0].function.parameters"}),
    ("mb", openai(413, None), "context"),
    ("timeout", openai(408, None), None, {"executed": "maybe"}),
]  # fmt: skip
ANTHROPIC = [
    ("output tokens", anthropic(429, "rate_limit_error", anthropic_ratelimit_output_tokens_remaining="0", anthropic_ratelimit_output_tokens_reset="2026-07-06T10:00:20Z", Date="Mon, 06 Jul 2026 10:00:00 GMT"), "throttle", {"retry_after": 20.0}),
    ("edge", Answer(413, "<html>hunter2 413 Request Entity Too Large</html>", {"Content-Type": "text/html"}), "context"),
    ("edge down", Answer(521, "<html>hunter2</html>", {"Content-Type": "text/html"}), None, {"recovery": "transient", "executed": "no"}),
    ("bedrock words", Answer(429, {"message": PROSE}, {"x-amzn-ErrorType": "ThrottlingException"}), "throttle"),
    ("unavailable", anthropic(503, "api_error"), "unavailable"),
    ("expired", Answer(401, {"type": "error", "error": {"type": "authentication_error", "message": PROSE, "details": {"error_code": "token_expired"}}}), "credentials"),
    ("spend", Answer(429, {"type": "error", "error": {"type": "rate_limit_error", "message": PROSE, "details": {"error_code": "org_spend_limit_exceeded"}}}), "quota"),
    ("retry-after in ms", anthropic(429, "rate_limit_error", retry_after_ms="900"), "throttle", {"retry_after": 0.9}),
]  # fmt: skip


def rest(status, reason, domain="usageLimits"):
    errors = [{"domain": domain, "reason": reason, "message": PROSE}]
    return Answer(status, {"error": {"code": status, "message": PROSE, "errors": errors}})


GOOGLE = [
    ("rate", rest(403, "rateLimitExceeded"), "throttle"),
    ("user rate", rest(403, "userRateLimitExceeded"), "throttle"),
    ("daily", rest(403, "dailyLimitExceeded"), "quota"),
    ("quota", rest(403, "quotaExceeded"), "quota"),
    ("storage", rest(403, "storageQuotaExceeded"), "quota"),
    ("permission", rest(403, "insufficientPermissions", "global"), None, {"code": "PERMISSION_DENIED"}),
    ("token", rest(401, "authError", "global"), "credentials"),
    ("condition", rest(412, "conditionNotMet", "global"), None, {"recovery": "correctable"}),
    ("backend", rest(503, "backendError", "global"), "unavailable"),
    ("missing", rest(404, "notFound", "global"), "missing"),
    ("required", rest(400, "required", "global"), "invalid"),
    ("duplicate", rest(409, "duplicate", "global"), "conflict"),
    ("not enabled", google(403, "PERMISSION_DENIED", info("API_KEY_SERVICE_BLOCKED")), "permission"),
    ("per month", google(429, "RESOURCE_EXHAUSTED", quota("TokensPerMonthPerProject")), "quota"),
    ("location", google(400, "FAILED_PRECONDITION", info("USER_LOCATION_UNSUPPORTED")), None, {"executed": "no"}),
    ("snake", Answer(429, {"error": {"code": 429, "message": PROSE, "status": "RESOURCE_EXHAUSTED", "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retry_delay": {"seconds": 11}}]}}), "throttle", {"retry_after": 11.0}),
]  # fmt: skip
MISTRAL = [
    ("context", Answer(400, {"object": "error", "message": {"detail": PROSE}, "type": "invalid_request_prompt_too_long", "param": None, "code": "3051"}), None, {"recovery": "correctable"}),
    ("message list", Answer(422, {"object": "error", "message": {"detail": [{"type": "extra_forbidden", "loc": ["body", "x"], "msg": PROSE}]}, "type": "invalid_request_error", "param": None, "code": None}), "invalid"),
    ("quota", Answer(403, {"object": "error", "message": PROSE, "type": "insufficient_quota", "code": "1400"}), "quota"),
    ("overload", Answer(529, {"message": PROSE}), "overload"),
]  # fmt: skip
COHERE = [
    (
        "token",
        Answer(498, {"message": PROSE, "id": "x"}),
        None,
        {"executed": "no", "recovery": "correctable"},
    ),
    (
        "not implemented",
        Answer(501, {"message": PROSE}),
        None,
        {"recovery": ("terminal", "correctable", "uncertain")},
    ),
    ("overload", Answer(529, {"message": PROSE}), "overload"),
    ("too large", Answer(413, {"message": PROSE}), "context"),
]

# ---------------------------------------------------------------------------------------------------------- clouds


def query(status, word, kind="Sender"):
    body = f"<ErrorResponse xmlns='http://x'><Error><Type>{kind}</Type><Code>{word}</Code><Message>{PROSE}</Message></Error><RequestId>Q1</RequestId></ErrorResponse>"
    return Answer(status, body)


def sts(url):
    clients.botocore_client("sts", url).get_caller_identity()


def sqs(url):
    clients.botocore_client("sqs", url).send_message(QueueUrl=f"{url}/q", MessageBody="x")


def function(url):
    clients.botocore_client("lambda", url).invoke(FunctionName="f")


STS = [
    ("expired", query(403, "ExpiredToken"), "credentials"),
    ("key", query(403, "InvalidClientTokenId"), "credentials"),
    ("signature", query(403, "SignatureDoesNotMatch"), None, {"recovery": "correctable"}),
    ("denied", query(403, "AccessDenied"), "permission"),
    ("throttling", query(400, "Throttling"), "throttle", {"trace_id": "Q1"}),
    ("service", query(503, "ServiceUnavailable", "Receiver"), "unavailable"),
    ("opt in", query(403, "OptInRequired"), "permission"),
]
SQS = [
    ("queue", Answer(400, {"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": PROSE}, {"x-amzn-query-error": "AWS.SimpleQueueService.NonExistentQueue;Sender"}), "missing"),
    ("over limit", Answer(403, {"__type": "com.amazonaws.sqs#OverLimit", "message": PROSE}), None, {"executed": "no"}),
    ("throttled", Answer(403, {"__type": "com.amazonaws.sqs#RequestThrottled", "message": PROSE}), "throttle"),
    ("kms", Answer(400, {"__type": "com.amazonaws.sqs#KmsThrottled", "message": PROSE}), "throttle"),
    ("content", Answer(400, {"__type": "com.amazonaws.sqs#InvalidMessageContents", "message": PROSE}), "invalid"),
]  # fmt: skip
LAMBDA = [
    ("throttled", Answer(429, {"Type": "User", "message": PROSE, "Reason": "ReservedFunctionConcurrentInvocationLimitExceeded"}, {"x-amzn-ErrorType": "TooManyRequestsException", "Retry-After": "3"}), "throttle", {"retry_after": 3.0}),
    ("not ready", Answer(502, {"Type": "User", "message": PROSE}, {"x-amzn-ErrorType": "ResourceNotReadyException"}), None, {"recovery": "transient"}),
    ("conflict", Answer(409, {"Type": "User", "message": PROSE}, {"x-amzn-ErrorType": "ResourceConflictException"}), None, {"code": "CONFLICT"}),
    ("too large", Answer(413, {"Type": "User", "message": PROSE}, {"x-amzn-ErrorType": "RequestTooLargeException"}), "context"),
    ("ec2 throttled", Answer(502, {"Type": "Server", "message": PROSE}, {"x-amzn-ErrorType": "EC2ThrottledException"}), None, {"recovery": "transient"}),
    ("function", Answer(404, {"Type": "User", "message": PROSE}, {"x-amzn-ErrorType": "ResourceNotFoundException"}), "missing"),
]  # fmt: skip


def ec2(status, word):
    return Answer(status, f"<?xml version='1.0'?><Response><Errors><Error><Code>{word}</Code><Message>{PROSE}</Message></Error></Errors><RequestID>E1</RequestID></Response>")  # fmt: skip


EC2 = [
    ("rate", ec2(503, "RequestLimitExceeded"), "throttle"),
    ("capacity", ec2(500, "InsufficientInstanceCapacity"), None, {"recovery": "transient"}),
    ("limit", ec2(400, "VcpuLimitExceeded"), "quota"),
    ("instances", ec2(400, "InstanceLimitExceeded"), "quota"),
    ("unauthorized", ec2(403, "UnauthorizedOperation"), "permission"),
    ("missing", ec2(400, "InvalidInstanceID.NotFound"), "missing"),
    ("state", ec2(400, "IncorrectInstanceState"), None, {"recovery": "correctable"}),
    ("parameter", ec2(400, "InvalidParameterValue"), "invalid"),
    ("dry run", ec2(412, "DryRunOperation"), None, {"executed": "no"}),
    ("auth", ec2(401, "AuthFailure"), "credentials"),
]
AZURE = [
    ("retry with", azure(449, "RetryWith"), "again"),
    ("request rate", azure(429, "RequestRateTooLarge", x_ms_retry_after_ms="42"), "throttle", {"retry_after": 0.042}),
    ("not registered", azure(409, "MissingSubscriptionRegistration"), None, {"executed": "no"}),
    ("disabled", azure(409, "ReadOnlyDisabledSubscription"), None, {"recovery": "terminal"}),
    ("policy", azure(403, "RequestDisallowedByPolicy"), None, {"code": "PERMISSION_DENIED"}),
    ("locked", azure(409, "ScopeLocked"), None, {"executed": "no"}),
    ("token", azure(401, "InvalidAuthenticationToken"), "credentials"),
    ("mismatch", azure(403, "AuthorizationPermissionMismatch"), "permission"),
    ("operation timed out", azure(500, "OperationTimedOut"), None, {"executed": "maybe", "recovery": "transient"}),
    ("subscription throttled", azure(429, "SubscriptionRequestsThrottled", retry_after="300"), None, {"code": "RATE_LIMITED", "retry_after": 300.0}),
    ("blob condition", azure(409, "BlobAlreadyExists"), "conflict"),
    ("resource group", azure(404, "ResourceGroupNotFound"), "missing"),
]  # fmt: skip
KUBERNETES = [
    ("eviction", status(429, "TooManyRequests", causes=[{"reason": "DisruptionBudget", "message": PROSE}]), "throttle"),
    ("bad", status(400, "BadRequest"), "invalid"),
    ("method", status(405, "MethodNotAllowed"), None, {"recovery": ("correctable", "terminal")}),
    ("media", status(415, "UnsupportedMediaType"), None, {"recovery": "correctable"}),
    ("large", status(413, "RequestEntityTooLarge"), "context"),
    ("two causes", status(422, "Invalid", causes=[{"reason": "FieldValueInvalid", "message": PROSE, "field": "metadata.name"}, {"reason": "FieldValueRequired", "field": "spec"}]), "invalid", {"field": "metadata.name"}),
    ("store", status(507, "StoreReadError"), None, {"executed": ("no", "maybe")}),
]  # fmt: skip
# -------------------------------------------------------------------------------------------------------- services
STRIPE = [
    ("exists", stripe(400, "invalid_request_error", "resource_already_exists", "id"), None, {"recovery": "correctable", "field": "id"}),
    ("state", stripe(400, "invalid_request_error", "payment_intent_unexpected_state"), None, {"recovery": "correctable"}),
    ("funds", stripe(402, "card_error", "insufficient_funds"), "card"),
    ("authentication", stripe(402, "card_error", "authentication_required"), None, {"recovery": "correctable"}),
    ("secret key", stripe(401, "invalid_request_error", "secret_key_required"), "credentials"),
    ("platform key", stripe(401, "invalid_request_error", "platform_api_key_expired"), "credentials"),
    ("closed", stripe(400, "invalid_request_error", "account_closed"), None, {"recovery": ("correctable", "terminal")}),
    ("processing", stripe(402, "card_error", "processing_error"), None, {"executed": "no"}),
    ("number", stripe(402, "card_error", "incorrect_number", "number"), "card", {"field": "number"}),
    ("refunded", stripe(400, "invalid_request_error", "charge_already_refunded"), None, {"recovery": "correctable"}),
    ("livemode", stripe(404, "invalid_request_error", "livemode_mismatch"), None, {"recovery": "correctable"}),
    ("connect", stripe(403, "invalid_request_error", "account_invalid"), None, {"executed": "no", "action": ("fix", "escalate")}),
]  # fmt: skip
TWILIO = [
    ("queue", twilio(400, 30005), None, {"executed": ("no", "maybe")}),
    ("region", twilio(400, 21408), None, {"recovery": ("correctable", "terminal")}),
    ("funds", twilio(402, 20008), None, {"recovery": ("terminal", "correctable")}),
    ("body", twilio(400, 21617), None, {"recovery": "correctable"}),
    ("from", twilio(400, 21606), "invalid"),
    ("concurrency", twilio(429, 20429), "throttle"),
    ("gone", twilio(410, 20410), None, {"recovery": "correctable"}),
    ("conflict", twilio(409, 20409), "conflict"),
]
SLACK = [
    ("posting", slack("cant_post"), None, {"executed": "no"}),
    ("restricted", slack("restricted_action"), None, {"code": "PERMISSION_DENIED"}),
    ("blocks", slack("invalid_blocks"), "invalid"),
    ("authed", slack("not_authed"), "credentials"),
    ("org", slack("org_login_required"), None, {"code": ("UNAUTHENTICATED", "PERMISSION_DENIED")}),
    ("message", slack("message_not_found"), "missing"),
    ("unavailable", slack("service_unavailable"), "overload"),
    ("access", slack("access_denied"), "permission"),
    ("limited", slack("accesslimited"), None, {"executed": "no"}),
    ("attachments", slack("too_many_attachments"), None, {"recovery": "correctable"}),
    ("user", slack("user_not_found"), "missing"),
    ("ekm", slack("ekm_access_denied"), "permission"),
    ("token type", slack("not_allowed_token_type"), None, {"executed": "no"}),
    ("method", slack("unknown_method"), None, {"recovery": "correctable"}),
    ("team", slack("team_access_not_granted"), "permission"),
]
GITHUB = [
    ("integration", lambda: github(403, "rest/issues/issues#create-an-issue", x_accepted_github_permissions="issues=write", x_ratelimit_remaining="4000"), "permission"),
    ("secondary 429", lambda: github(429, "rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits", retry_after="60"), "throttle", {"retry_after": 60.0}),
    ("abuse", lambda: github(403, "free-pro-team@latest/rest/overview/resources-in-the-rest-api#abuse-rate-limits", retry_after="30"), "throttle", {"retry_after": 30.0}),
    ("custom", lambda: github(422, errors=[{"resource": "PullRequest", "code": "custom", "message": PROSE}]), "invalid"),
    ("empty", lambda: github(409, "rest/repos/contents"), "conflict"),
    ("moved", lambda: github(410, "v3/issues"), None, {"recovery": "correctable"}),
    ("sso", lambda: github(403, "articles/authenticating-to-a-github-organization-with-saml-single-sign-on/", x_github_sso="required; url=https://x", x_ratelimit_remaining="4000"), None, {"code": ("PERMISSION_DENIED", "UNAUTHENTICATED")}),
    ("unavailable", lambda: Answer(503, "<html>hunter2 Unicorn!</html>", {"Content-Type": "text/html"}), "unavailable"),
    ("graphql primary", lambda: github(403, "graphql/overview/rate-limits-and-query-limits-for-the-graphql-api", x_ratelimit_remaining="0", x_ratelimit_reset="1783332030", **DATE), "throttle", {"retry_after": 30.0}),
]  # fmt: skip
ELASTIC = [
    ("mapping", elastic(400, "document_parsing_exception"), "invalid"),
    ("exists", elastic(400, "resource_already_exists_exception"), None, {"recovery": "correctable"}),
    ("closed", elastic(400, "index_closed_exception"), None, {"recovery": "correctable"}),
    ("shards", elastic(503, "no_shard_available_action_exception"), "unavailable"),
    ("clauses", elastic(400, "too_many_clauses"), None, {"recovery": "correctable"}),
    ("found", Answer(404, {"_index": "i", "_id": "1", "found": False}, {"X-Elastic-Product": "Elasticsearch"}), "missing"),
    ("process", elastic(503, "process_cluster_event_timeout_exception"), None, {"recovery": "transient", "executed": "maybe"}),
    ("licence", elastic(403, "security_exception", license_expired_feature="x"), "permission"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "cases"),
    [
        (embeddings, EMBEDDINGS),
        (images, OPENAI[:4]),
        (raw, OPENAI[4:8]),
        (files, OPENAI[8:12]),
        (clients.anthropic, ANTHROPIC),
        (clients.google_api_core, GOOGLE),
        (clients.google_genai, GOOGLE[:6]),
        (clients.mistralai, MISTRAL),
        (clients.cohere, COHERE),
        (sts, STS),
        (sqs, SQS),
        (function, LAMBDA),
        (clients.ec2, EC2),
        (clients.azure_core, AZURE),
        (clients.kubernetes, KUBERNETES),
        (clients.stripe, STRIPE),
        (clients.twilio, TWILIO),
        (clients.slack_sdk, SLACK),
        (clients.pygithub, GITHUB),
        (clients.elasticsearch, ELASTIC),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_responses(call, cases):
    """As in the first set."""
    with serving(Answer(500)) as server:

        def ask(answer):
            server.script = [answer() if callable(answer) else answer]
            call(server.url)

        assert wrong(cases, ask) == {}


# ------------------------------------------------------------------------------------------------------- wrappers


def own_exception(url):
    class AgentError(Exception):
        pass

    try:
        clients.openai(url)
    except Exception as error:
        raise AgentError(PROSE) from error


def twice_wrapped(url):
    try:
        own_exception(url)
    except Exception as error:
        raise RuntimeError(PROSE) from error


def litellm_embedding(url):
    import litellm

    litellm.embedding("openai/m", ["x"], api_base=f"{url}/v1", api_key="k", max_retries=0, num_retries=0)


def litellm_groq(url):
    import litellm

    litellm.completion(
        "groq/m", clients.CHAT, api_base=f"{url}/v1", api_key="k", max_retries=0, num_retries=0
    )


def litellm_mistral(url):
    import litellm

    litellm.completion("mistral/m", clients.CHAT, api_base=f"{url}/v1", api_key="k", max_retries=0, num_retries=0)  # fmt: skip


def agents_responses(url):
    import agents
    import openai as sdk

    client = sdk.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
    model = agents.OpenAIResponsesModel(model="m", openai_client=client)
    agents.set_tracing_disabled(disabled=True)
    asyncio.run(agents.Runner.run(agents.Agent("a", model=model), "x"))


def agents_sync_tool(url):
    import agents

    try:
        agents_responses(url)
    except Exception as error:
        raise agents.exceptions.ModelBehaviorError(PROSE) from error


def pydantic_responses(url):
    import openai as sdk
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = sdk.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
    Agent(OpenAIResponsesModel("m", provider=OpenAIProvider(openai_client=client))).run_sync("x")


def pydantic_tool(url):
    agent = pydantic_agent(url)

    @agent.tool_plain
    def fetch() -> str:
        clients.openai(url)
        return ""

    agent.run_sync("x")


def langgraph_async(url):
    from langchain_openai import ChatOpenAI
    from langgraph.graph import START, StateGraph

    async def node(state):
        import openai as sdk

        # langchain-openai keeps one async client for all event loops; here every call has a loop of its own.
        client = sdk.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
        await ChatOpenAI(model="m", api_key="k", async_client=client.chat.completions).ainvoke("x")

    graph = StateGraph(dict)
    graph.add_node("call", node)
    graph.add_edge(START, "call")
    asyncio.run(graph.compile().ainvoke({}))


def langchain_chain(url):
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="m", base_url=f"{url}/v1", api_key="k", max_retries=0)
    (ChatPromptTemplate.from_template("{x}") | model | StrOutputParser()).batch([{"x": "a"}])


def langchain_structured(url):
    from langchain_openai import ChatOpenAI
    from pydantic import BaseModel

    class Reply(BaseModel):
        text: str

    model = ChatOpenAI(model="m", base_url=f"{url}/v1", api_key="k", max_retries=0)
    model.with_structured_output(Reply).invoke("x")


def instructor_async(url):
    import instructor
    import openai as sdk
    from pydantic import BaseModel

    class Reply(BaseModel):
        text: str

    client = instructor.from_openai(sdk.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0))
    asyncio.run(client.chat.completions.create(model="m", messages=clients.CHAT, response_model=Reply, max_retries=2))  # fmt: skip


def tenacity_async(url):
    from tenacity import retry, stop_after_attempt

    @retry(stop=stop_after_attempt(2))
    async def call():
        clients.openai(url)

    asyncio.run(call())


def nested_groups(url):
    raise ExceptionGroup("outer", [ExceptionGroup("inner", [raised(clients.openai, url)])])


def future(url):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        pool.submit(clients.openai, url).result()


def anyio_group(url):
    import anyio

    async def call():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, clients.openai, url)

    anyio.run(call)


BARE = [(name, answer, kind, {"action": "verify", "executed": "maybe"} if kind == "throttle" else {}) for name, answer, kind, *_ in CASES]  # fmt: skip
PLAIN = [(name, answer, kind) for name, answer, kind, *_ in CASES]


@pytest.mark.parametrize(
    ("call", "cases"),
    [
        (own_exception, BARE),
        (twice_wrapped, BARE),
        (litellm_embedding, CASES),
        (litellm_groq, CASES),
        (litellm_mistral, CASES),
        (agents_responses, CASES),
        (agents_sync_tool, CASES),
        (pydantic_responses, CASES),
        (pydantic_tool, CASES),
        (langgraph_async, CASES),
        (langchain_chain, CASES),
        (langchain_structured, CASES),
        (instructor_async, CASES),
        (tenacity_async, CASES),
        (nested_groups, PLAIN),
        (anyio_group, PLAIN),
        (future, CASES),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_wrapped(call, cases):
    """Code, recovery, wait, field and word survive."""
    with serving(Answer(500)) as server:

        def ask(answer):
            server.script = [answer]
            call(server.url)

        assert wrong(cases, ask) == {}


# ---------------------------------------------------------------------------------------------------- connections


def async_openai(url):
    import openai as sdk

    async def call():
        client = sdk.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0, timeout=SHORT)
        await client.chat.completions.create(model="m", messages=clients.CHAT)

    asyncio.run(call())


def retried_openai(url):
    import openai as sdk

    client = sdk.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=1, timeout=SHORT)
    client.chat.completions.create(model="m", messages=clients.CHAT)


def httpx_async(url):
    import httpx

    async def call():
        async with httpx.AsyncClient(timeout=SHORT) as client:
            await client.post(url)

    asyncio.run(call())


def elastic_async(url):
    from elasticsearch import AsyncElasticsearch

    async def call():
        async with AsyncElasticsearch(url, max_retries=0, request_timeout=SHORT) as client:
            await client.index(index="i", document={})

    asyncio.run(call())


def websockets_async(url):
    from websockets.asyncio.client import connect

    async def call():
        async with connect(url.replace("http", "ws"), open_timeout=SHORT):
            pass

    asyncio.run(call())


def litellm_async(url):
    import litellm

    asyncio.run(
        litellm.acompletion("anthropic/m", clients.CHAT, api_base=url, api_key="k", max_retries=0, num_retries=0, timeout=SHORT)
    )  # fmt: skip


def stripe_httpx(url):
    import stripe as sdk

    client = sdk.StripeClient("sk_test_x", base_addresses={"api": url}, max_network_retries=0, http_client=sdk.HTTPXClient(timeout=SHORT))  # fmt: skip
    asyncio.run(client.v1.charges.create_async({"amount": 1, "currency": "usd"}))


def bedrock_stream(url):
    import botocore.session
    from botocore.config import Config

    session = botocore.session.get_session()
    session.set_credentials("k", "s")
    config = Config(retries={"total_max_attempts": 1}, connect_timeout=SHORT, read_timeout=SHORT)
    client = session.create_client(
        "bedrock-runtime", region_name="us-east-1", endpoint_url=url, config=config
    )
    text = [{"role": "user", "content": [{"text": "x"}]}]
    list(client.converse_stream(modelId="m", messages=text)["stream"])


@pytest.mark.parametrize(
    "call",
    [async_openai, httpx_async, elastic_async, websockets_async, litellm_async, stripe_httpx, bedrock_stream],
    ids=lambda call: call.__name__,
)
def test_without_an_answer(call):
    """Refused, read time-out, reset."""
    found = {}

    def check(name, url, kind, **more):
        error = raised(call, url)
        if differs := difference(error, kind, **more):
            found[name] = (repr(error)[:200], differs)

    check("refused", f"http://127.0.0.1:{closed_port()}", "refused")
    for name, cut, kind in (("read time-out", -2, "timeout"), ("reset", -1, "lost")):
        with serving(Answer(200, {}, {"X-Elastic-Product": "Elasticsearch"}, cut=cut)) as server:
            more = (
                {"executed": ("no", "maybe"), "action": ("verify", "retry")}
                if call is websockets_async
                else {}
            )
            check(name, server.url, kind, **more)
    assert found == {}


def test_an_sdk_that_retried():
    """`attempt` has the calls that the SDK made, and the earlier ones may have had an effect."""
    error = raised(retried_openai, f"http://127.0.0.1:{closed_port()}")
    assert difference(error, None, code="SERVICE_UNAVAILABLE", attempt=2, executed="maybe") == {}


def test_cancelled():
    """A call that is cancelled, and one whose time runs out."""
    import httpx

    async def call(url, seconds):
        async with httpx.AsyncClient() as client, asyncio.timeout(seconds):
            await client.post(url)

    async def cancel(url):
        task = asyncio.create_task(call(url, 10))
        await asyncio.sleep(0.1)
        task.cancel()
        await task

    with serving(Answer(200, {}, cut=-2)) as server:
        assert difference(raised(lambda: asyncio.run(call(server.url, 0.2))), "timeout") == {}
        assert difference(raised(lambda: asyncio.run(cancel(server.url))), "cancelled") == {}


def test_frameworks_answers():
    """Refusals and cut answers inside frameworks."""
    with serving(completion(None, "length")) as server:
        error = raised(pydantic_agent(server.url, output_type=int).run_sync, "x")
        assert difference(error, None, executed=("maybe", "no")) == {}
