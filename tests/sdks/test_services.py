"""SDKs of other services: stripe, twilio, slack-sdk, PyGithub, elasticsearch; and plain HTTP clients."""

import asyncio

import pytest

from tests.sdks import clients
from tests.sdks.checks import PROSE, difference, raised, wrong
from tests.sdks.server import Answer, serving

DATE = {"Date": "Mon, 06 Jul 2026 10:00:00 GMT"}


def stripe(status, kind, code=None, param=None, **headers):
    error = {"type": kind, "message": PROSE, "doc_url": "https://stripe.com/docs/error-codes/x"}
    error |= {"code": code} if code else {}
    error |= {"param": param} if param else {}
    return Answer(
        status,
        {"error": error},
        {"Request-Id": "req_S", **{k.replace("_", "-"): v for k, v in headers.items()}},
    )


INVALID = "invalid_request_error"
STRIPE = [
    ("declined", stripe(402, "card_error", "card_declined"), "card", {"word": "card_declined", "trace_id": "req_S", "doc_uri": "https://stripe.com/docs/error-codes/x"}),
    ("funds", stripe(402, "card_error", "card_declined"), "card"),
    ("expired card", stripe(402, "card_error", "expired_card", "exp_month"), "card", {"field": "exp_month"}),
    ("rate", stripe(429, INVALID, "rate_limit"), "throttle"),
    ("lock", stripe(429, INVALID, "lock_timeout"), None, {"recovery": "transient", "executed": "no"}),
    ("key in use", stripe(409, INVALID, "idempotency_key_in_use"), "again"),
    ("key of another request", stripe(400, "idempotency_error"), None, {"recovery": "correctable", "executed": "no"}),
    ("key", stripe(401, INVALID), "credentials"),
    ("expired key", stripe(401, INVALID, "api_key_expired"), "credentials"),
    ("permission", stripe(403, INVALID, "more_permissions_required"), None, {"code": "PERMISSION_DENIED"}),
    ("missing", stripe(404, INVALID, "resource_missing", "id"), "missing", {"field": "id", "word": "resource_missing"}),
    ("missing parameter", stripe(400, INVALID, "parameter_missing", "currency"), "invalid", {"field": "currency"}),
    ("too small", stripe(400, INVALID, "amount_too_small", "amount"), "invalid", {"field": "amount"}),
    ("internal", stripe(500, "api_error"), "internal"),
    ("should retry", stripe(500, "api_error", stripe_should_retry="true"), None, {"recovery": "transient", "executed": "maybe"}),
    ("should not retry", stripe(503, "api_error", stripe_should_retry="false"), None, {"action": "verify"}),
    ("no JSON", Answer(502, "<html>hunter2</html>", {"Content-Type": "text/html"}), "unavailable"),
]  # fmt: skip


def twilio(status, code, **headers):
    return Answer(
        status,
        {
            "code": code,
            "message": PROSE,
            "more_info": f"https://www.twilio.com/docs/errors/{code}",
            "status": status,
        },
        headers,
    )


TWILIO = [
    ("rate", twilio(429, 20429), "throttle", {"word": "20429"}),
    ("key", twilio(401, 20003), "credentials", {"word": "20003"}),
    ("number", twilio(400, 21211), "invalid", {"word": "21211"}),
    ("missing", twilio(404, 20404), "missing"),
    ("unsubscribed", twilio(400, 21610), None, {"executed": "no", "recovery": ("correctable", "terminal")}),
    ("suspended", twilio(403, 20005), "permission"),
    ("queue full", twilio(429, 30001), None, {"recovery": "transient"}),
    ("daily limit of a trial", twilio(429, 63038), "quota"),
    ("internal", twilio(500, 20500), "internal"),
    ("unavailable", twilio(503, 20503), "unavailable"),
    ("no JSON", Answer(503, "<html>hunter2</html>", {"Content-Type": "text/html"}), "unavailable"),
]  # fmt: skip


def slack(word, status=200, body=None, **headers):
    return Answer(
        status,
        {"ok": False, "error": word, **(body or {})},
        {"x-slack-req-id": "SL1", **{k.replace("_", "-"): v for k, v in headers.items()}},
    )


SLACK = [
    ("rate", slack("ratelimited", 429, Retry_After="31"), "throttle", {"retry_after": 31.0, "word": "ratelimited", "trace_id": "SL1"}),
    ("rate inside 200", slack("rate_limited"), "throttle"),
    ("token", slack("invalid_auth"), "credentials", {"word": "invalid_auth"}),
    ("expired", slack("token_expired"), "credentials"),
    ("revoked", slack("token_revoked"), "credentials"),
    ("inactive", slack("account_inactive"), None, {"code": ("UNAUTHENTICATED", "PERMISSION_DENIED")}),
    ("scope", slack("missing_scope", body={"needed": "chat:write", "provided": "x"}), None, {"code": "PERMISSION_DENIED"}),
    ("channel", slack("channel_not_found"), "missing"),
    ("not in channel", slack("not_in_channel"), None, {"recovery": ("correctable", "terminal"), "executed": "no"}),
    ("too long", slack("msg_too_long"), "context"),
    ("archived", slack("is_archived"), None, {"recovery": ("correctable", "terminal"), "executed": "no"}),
    ("fatal", slack("fatal_error"), "unavailable"),
    ("internal", slack("internal_error"), "unavailable"),
    ("arguments", slack("invalid_arguments", body={"response_metadata": {"messages": ["[ERROR] hunter2"]}}), "invalid"),
    ("no JSON", Answer(503, "hunter2 upstream connect error", {"Content-Type": "text/plain"}), "unavailable"),
    ("request time-out", slack("request_timeout"), None, {"recovery": "transient"}),
]  # fmt: skip


def github(status, page="rest", errors=None, **headers):
    body = {"message": PROSE, "documentation_url": f"https://docs.github.com/{page}", "status": str(status)}
    body |= {"errors": errors} if errors else {}
    return Answer(
        status, body, {"x-github-request-id": "GH1", **{k.replace("_", "-"): v for k, v in headers.items()}}
    )


LIMITS = "rest/overview/rate-limits-for-the-rest-api"
SECONDARY = "rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"
GITHUB = [
    ("primary", lambda: github(403, LIMITS, x_ratelimit_remaining="0", x_ratelimit_reset="1783332050", **DATE), "throttle", {"retry_after": 50.0, "trace_id": "GH1"}),
    ("primary 429", lambda: github(429, LIMITS, x_ratelimit_remaining="0", x_ratelimit_reset="1783332050", **DATE), "throttle", {"retry_after": 50.0}),
    ("secondary", lambda: github(403, SECONDARY, retry_after="33"), "throttle", {"retry_after": 33.0}),
    ("secondary without a wait", lambda: github(403, SECONDARY), "throttle", {"retry_after": 60.0}),
    ("token", lambda: github(401), "credentials"),
    ("forbidden", lambda: github(403, "rest/repos/repos", x_ratelimit_remaining="4999", x_ratelimit_reset="1783332000"), "permission"),
    ("missing", lambda: github(404, "rest/repos/repos#get-a-repository"), "missing"),
    ("field", lambda: github(422, errors=[{"resource": "Issue", "field": "title", "code": "missing_field"}]), "invalid", {"field": "title", "word": "missing_field"}),
    ("exists", lambda: github(422, errors=[{"resource": "Label", "field": "name", "code": "already_exists"}]), None, {"recovery": "correctable"}),
    ("conflict", lambda: github(409), "conflict"),
    ("moved", lambda: github(451), None, {"recovery": ("terminal", "correctable")}),
    ("internal", lambda: github(500), "internal"),
    ("bad gateway", lambda: Answer(502, {"message": "Server Error"}), "unavailable"),
    ("scope", lambda: github(403, "rest", x_accepted_oauth_scopes="repo", x_oauth_scopes="gist", x_ratelimit_remaining="10"), None, {"code": "PERMISSION_DENIED"}),
]  # fmt: skip


def elastic(status, kind, **more):
    cause = {"type": kind, "reason": PROSE, **more}
    return Answer(
        status,
        {"error": {"root_cause": [cause], **cause}, "status": status},
        {"X-Elastic-Product": "Elasticsearch"},
    )


ELASTIC = [
    ("rejected", elastic(429, "es_rejected_execution_exception"), None, {"recovery": "transient", "executed": "no", "word": "es_rejected_execution_exception"}),
    ("breaker", elastic(429, "circuit_breaking_exception", durability="TRANSIENT"), None, {"recovery": "transient", "executed": "no"}),
    ("breaker for good", elastic(429, "circuit_breaking_exception", durability="PERMANENT"), "permanent"),
    ("index", elastic(404, "index_not_found_exception", index="i"), "missing", {"word": "index_not_found_exception"}),
    ("version", elastic(409, "version_conflict_engine_exception"), None, {"code": "CONFLICT", "executed": "no"}),
    ("key", elastic(401, "security_exception"), "credentials"),
    ("denied", elastic(403, "security_exception"), "permission"),
    ("parse", elastic(400, "parsing_exception"), "invalid"),
    ("shards", elastic(503, "search_phase_execution_exception"), "unavailable"),
    ("read-only", elastic(429, "cluster_block_exception"), None, {"executed": "no"}),
    ("disk", elastic(403, "cluster_block_exception"), None, {"executed": "no"}),
    ("master", elastic(503, "master_not_discovered_exception"), "unavailable"),
    ("internal", elastic(500, "null_pointer_exception"), "internal"),
    ("timeout", elastic(504, "timeout_exception"), "timeout"),
    ("too large", Answer(413, None, {"X-Elastic-Product": "Elasticsearch"}), "context"),
]  # fmt: skip
PROBLEM = {"type": "https://x.example/e", "title": "T", "status": 422, "detail": "d", "errors": [{"pointer": "/a", "detail": "d"}]}  # fmt: skip
HTTP = [
    ("retry after a date", Answer(429, None, {"Retry-After": "Mon, 06 Jul 2026 10:00:30 GMT", **DATE}), "throttle", {"retry_after": 30.0}),
    ("draft 7", Answer(429, None, {"RateLimit": "limit=10, remaining=0, reset=44"}), "throttle", {"retry_after": 44.0}),
    ("draft 9", Answer(429, None, {"RateLimit": '"api";r=0;t=55'}), "throttle", {"retry_after": 55.0}),
    ("epoch", lambda: Answer(429, None, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1783332040", **DATE}), "throttle", {"retry_after": 40.0}),
    ("402", Answer(402, None), None, {"recovery": ("terminal", "correctable")}),
    ("401", Answer(401, None, {"WWW-Authenticate": 'Bearer error="invalid_token"'}), "credentials"),
    ("403", Answer(403, None), "permission"),
    ("404", Answer(404, None), "missing"),
    ("409", Answer(409, None), "conflict"),
    ("409 with a wait", Answer(409, None, {"Retry-After": "2"}), None, {"code": "CONFLICT"}),
    ("423", Answer(423, None), None, {"executed": "no"}),
    ("425", Answer(425, None), None, {"executed": "no", "recovery": "transient"}),
    ("500", Answer(500, None), "internal"),
    ("502", Answer(502, None), "unavailable"),
    ("503", Answer(503, None, {"Retry-After": "8"}), "unavailable", {"retry_after": 8.0}),
    ("504", Answer(504, None), "timeout"),
    ("521", Answer(521, None), None, {"executed": "no", "recovery": "transient"}),
    ("526", Answer(526, None), "permanent"),
    ("529", Answer(529, None), "overload", {"executed": "no"}),
]  # fmt: skip


def aiohttp_raising(url):
    import aiohttp

    async def call():
        async with aiohttp.ClientSession(raise_for_status=True) as session, session.post(url) as response:
            await response.read()

    asyncio.run(call())


def slack_async(url):
    from slack_sdk.web.async_client import AsyncWebClient

    async def call():
        client = AsyncWebClient(token="t", base_url=f"{url}/api/", retry_handlers=[])
        await client.chat_postMessage(channel="c", text="x")

    asyncio.run(call())


def elastic_async(url):
    from elasticsearch import AsyncElasticsearch

    async def call():
        async with AsyncElasticsearch(url, max_retries=0) as client:
            await client.search(index="i")

    asyncio.run(call())


def urllib(url):
    from urllib.request import Request, urlopen

    urlopen(Request(url, data=b"{}", method="POST"), timeout=5)


def urllib3_retries(url):
    import urllib3

    urllib3.PoolManager().request(
        "GET",
        url,
        retries=urllib3.Retry(0, status_forcelist=range(400, 600), respect_retry_after_header=False),
    )


def requests_retries(url):
    import requests
    import urllib3

    retry = urllib3.Retry(0, status_forcelist=range(400, 600), respect_retry_after_header=False)
    with requests.Session() as session:
        session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retry))
        session.get(url, timeout=5)


@pytest.mark.parametrize(
    ("call", "cases"),
    [
        (clients.stripe, STRIPE),
        (clients.twilio, TWILIO),
        (clients.slack_sdk, SLACK),
        (slack_async, SLACK),
        (clients.pygithub, GITHUB),
        (clients.elasticsearch, ELASTIC),
        (elastic_async, ELASTIC[:4]),
        (clients.httpx, HTTP),
        (clients.requests, HTTP),
        (aiohttp_raising, HTTP),
        (urllib, HTTP),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_responses(call, cases):
    """Code, recovery, effect, wait, field, code word and action are those of the answer; no prose is kept."""
    with serving(Answer(500)) as server:

        def ask(answer):
            server.script = [answer() if callable(answer) else answer]
            call(server.url)

        assert wrong(cases, ask) == {}


def webhook(url):
    import stripe as sdk

    sdk.Webhook.construct_event("{}", "t=1,v1=x", "whsec_x")


def slack_size(url):
    from slack_sdk.models.blocks import SectionBlock

    SectionBlock().validate_json()


def github_attribute(url):
    import github

    with serving(Answer(200, {"full_name": {"not": "a text"}, "url": "u"})) as server:
        found = github.Github(base_url=server.url, retry=None).get_repo("o/r")
        print(found.full_name)


def bulk(url):
    from elasticsearch import Elasticsearch, helpers

    items = [{"index": {"_index": "i", "_id": "1", "status": 429, "error": {"type": "es_rejected_execution_exception", "reason": PROSE}}}]  # fmt: skip
    answer = Answer(200, {"took": 1, "errors": True, "items": items}, {"X-Elastic-Product": "Elasticsearch"})
    with serving(answer) as server:
        helpers.bulk(Elasticsearch(server.url, max_retries=0), [{"_index": "i", "_id": "1", "a": 1}])


def unsupported(url):
    from elasticsearch import Elasticsearch

    with serving(Answer(200, {"a": 1})) as server:
        Elasticsearch(server.url, max_retries=0).info()


def urllib3_status(url):
    with serving(Answer(503)) as server:
        urllib3_retries(server.url)


def requests_status(url):
    with serving(Answer(429)) as server:
        requests_retries(server.url)


def requests_json(url):
    import requests

    with serving(Answer(200, "<html>hunter2")) as server:
        requests.get(server.url, timeout=5).json()


def httpx_redirects(url):
    import httpx

    with serving(Answer(302, None, {"Location": "/"})) as server:
        httpx.get(server.url, follow_redirects=True)


def httpx_url(url):
    import httpx

    httpx.get("http://")


def requests_url(url):
    import requests

    requests.get("no-scheme", timeout=5)


def unknown_host(url):
    import requests

    requests.get("http://no-such-host.invalid/", timeout=5)


def httpx_unknown_host(url):
    import httpx

    httpx.get("http://no-such-host.invalid/")


def aiohttp_unknown_host(url):
    aiohttp_raising("http://no-such-host.invalid/")


OTHERS = [
    ("signature of a webhook", webhook, None, {"recovery": "correctable", "executed": "no"}),
    ("slack object", slack_size, None, {"recovery": "correctable", "executed": "no"}),
    ("github attribute", github_attribute, None, {"executed": "maybe"}),
    ("bulk", bulk, None, {"recovery": "transient", "executed": "no"}),
    ("not Elasticsearch", unsupported, None, {"recovery": ("terminal", "uncertain", "correctable")}),
    ("urllib3 status", urllib3_status, "unavailable", {}),
    ("requests status", requests_status, None, {"recovery": "transient"}),
    ("requests JSON", requests_json, None, {"executed": "maybe"}),
    ("redirects", httpx_redirects, None, {"executed": "maybe"}),
    ("httpx URL", httpx_url, "invalid", {}),
    ("requests URL", requests_url, "invalid", {}),
    ("requests host", unknown_host, "refused", {}),
    ("httpx host", httpx_unknown_host, "refused", {}),
    ("aiohttp host", aiohttp_unknown_host, "refused", {}),
]


@pytest.mark.parametrize(("call", "kind", "more"), [case[1:] for case in OTHERS], ids=[case[0] for case in OTHERS])  # fmt: skip
def test_others(call, kind, more):
    """What an SDK refuses by itself, and failures without one answer."""
    error = raised(call, "")
    assert difference(error, kind, **more) == {}, repr(error)
