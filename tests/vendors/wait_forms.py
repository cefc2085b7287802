"""
Waits as services write them: (name, status, headers, body, seconds, kind).

Kinds: R, a rate limit, which is transient; Q, a used-up quota, which is terminal; -, either. The names of the headers and
members are those of the services' published references.
"""

import datetime as dt

NOW = 1704067200
DATE = {"Date": "Mon, 01 Jan 2024 00:00:00 GMT"}
FORMS = []


def h(name, headers, wait, kind="R", status=429, body=None):
    """Add a form in headers."""
    FORMS.append(
        (name, status, {**headers, **DATE}, {"error": {"message": "x"}} if body is None else body, wait, kind)
    )


def b(name, body, wait, kind="R", status=429, headers=None):
    """Add a form in a body."""
    FORMS.append((name, status, {**(headers or {}), **DATE}, body, wait, kind))


def iso(seconds):
    """Return the instant after so many seconds."""
    return dt.datetime.fromtimestamp(NOW + seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def limit(prefix, remaining, reset, total=None):
    """Return the headers of a limit."""
    found = {f"{prefix}-Remaining": str(remaining), f"{prefix}-Reset": str(reset)}
    return found if total is None else {**found, f"{prefix}-Limit": str(total)}


h(
    "openai req",
    {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "1s",
        "x-ratelimit-limit-tokens": "150000",
        "x-ratelimit-remaining-tokens": "149984",
        "x-ratelimit-reset-tokens": "6m0s",
    },
    1.0,
)
h(
    "openai tok",
    {
        "x-ratelimit-remaining-requests": "59",
        "x-ratelimit-reset-requests": "8.64s",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "1m12.5s",
    },
    72.5,
)
h("openai ms", {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "17ms"}, 0.017)
h("openai hours", {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "2h30m0s"}, 9000.0)
h("openai days", {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1d2h3m4s"}, 93784.0)
h(
    "openai both",
    {
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "1s",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "9s",
    },
    9.0,
)
h(
    "openai retry-after wins",
    {"retry-after": "3", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1s"},
    3.0,
)
h("openai retry-after-ms", {"retry-after": "1", "retry-after-ms": "612"}, 0.612)
h(
    "openai project tokens",
    {
        "x-ratelimit-remaining-tokens": "12",
        "x-ratelimit-reset-tokens": "20s",
        "x-ratelimit-remaining-project-tokens": "0",
        "x-ratelimit-reset-project-tokens": "4s",
    },
    4.0,
)
h(
    "groq",
    {
        "x-ratelimit-limit-requests": "14400",
        "x-ratelimit-remaining-requests": "14370",
        "x-ratelimit-reset-requests": "2m59.56s",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "7.66s",
    },
    7.66,
)
h(
    "groq ra",
    {"retry-after": "2", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "7.66s"},
    2.0,
)
h(
    "anthropic tokens",
    {
        "anthropic-ratelimit-requests-remaining": "49",
        "anthropic-ratelimit-requests-reset": iso(1),
        "anthropic-ratelimit-tokens-remaining": "0",
        "anthropic-ratelimit-tokens-reset": iso(33),
    },
    33.0,
)
h(
    "anthropic output",
    {
        "anthropic-ratelimit-input-tokens-remaining": "1000",
        "anthropic-ratelimit-input-tokens-reset": iso(60),
        "anthropic-ratelimit-output-tokens-remaining": "0",
        "anthropic-ratelimit-output-tokens-reset": iso(15),
    },
    15.0,
)
h(
    "anthropic priority",
    {
        "anthropic-priority-input-tokens-remaining": "0",
        "anthropic-priority-input-tokens-reset": iso(20),
        "anthropic-priority-input-tokens-limit": "10",
    },
    20.0,
)
h(
    "anthropic unified",
    {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": str(NOW + 1800),
        "anthropic-ratelimit-unified-5h-status": "rejected",
        "anthropic-ratelimit-unified-5h-reset": str(NOW + 1800),
        "anthropic-ratelimit-unified-7d-status": "allowed",
        "anthropic-ratelimit-unified-7d-reset": str(NOW + 300000),
    },
    1800.0,
    "-",
)
h("azure reset secs", {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "30"}, 30.0)
h("azure ms", {"x-ms-retry-after-ms": "8000"}, 8.0)
h("azure cosmos zero", {"x-ms-retry-after-ms": "0"}, 0.0)
h("azure resource graph", {"x-ms-user-quota-remaining": "0", "x-ms-user-quota-resets-after": "00:00:05"}, 5.0)
h("azure arm", {"x-ms-ratelimit-remaining-subscription-reads": "0", "Retry-After": "17"}, 17.0)
h("sharepoint", {"RateLimit-Limit": "1200", "RateLimit-Remaining": "0", "RateLimit-Reset": "5"}, 5.0)
h(
    "dataverse",
    {
        "Retry-After": "14",
        "x-ms-ratelimit-time-remaining-xrm-requests": "1,200.00",
        "x-ms-ratelimit-burst-remaining-xrm-requests": "0",
    },
    14.0,
)
github = {
    "message": "API rate limit exceeded",
    "documentation_url": "https://docs.github.com/rest/overview/resources-in-the-rest-api#rate-limiting",
}
h(
    "github 403",
    {**limit("X-RateLimit", 0, NOW + 600, 60), "x-ratelimit-resource": "core", "x-ratelimit-used": "60"},
    600.0,
    "R",
    403,
    github,
)
h(
    "github secondary ra",
    {**limit("X-RateLimit", 4990, NOW + 600, 5000), "retry-after": "60"},
    60.0,
    "R",
    403,
    {
        "message": "x",
        "documentation_url": "https://docs.github.com/free-pro-team@latest/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits",
    },
)
h(
    "gitlab",
    {
        "RateLimit-Limit": "60",
        "RateLimit-Name": "throttle_authenticated_web",
        "RateLimit-Observed": "67",
        "RateLimit-Remaining": "0",
        "RateLimit-Reset": str(NOW + 40),
        "RateLimit-ResetTime": "Mon, 01 Jan 2024 00:00:40 GMT",
    },
    40.0,
)
h(
    "gitlab resettime only",
    {"RateLimit-Remaining": "0", "RateLimit-ResetTime": "Mon, 01 Jan 2024 00:00:40 GMT"},
    40.0,
)
h("shopify rest", {"Retry-After": "2.0", "X-Shopify-Shop-Api-Call-Limit": "40/40"}, 2.0)
h(
    "hubspot",
    {
        "X-HubSpot-RateLimit-Interval-Milliseconds": "10000",
        "X-HubSpot-RateLimit-Remaining": "0",
        "X-HubSpot-RateLimit-Max": "100",
        "X-HubSpot-RateLimit-Daily": "250000",
        "X-HubSpot-RateLimit-Daily-Remaining": "249937",
    },
    10.0,
)
h(
    "zendesk",
    {"Retry-After": "93", "ratelimit-limit": "700", "ratelimit-remaining": "0", "ratelimit-reset": "41"},
    93.0,
)
h(
    "zendesk endpoint",
    {
        "zendesk-ratelimit-tickets-index": "total=100; remaining=0; resets=47",
        "ratelimit-remaining": "600",
        "ratelimit-reset": "20",
    },
    47.0,
)
h("twitter", limit("x-rate-limit", 0, NOW + 900, 15), 900.0)
h(
    "twitter 24h",
    {
        **limit("x-rate-limit", 14, NOW + 900, 15),
        "x-user-limit-24hour-limit": "25",
        "x-user-limit-24hour-remaining": "0",
        "x-user-limit-24hour-reset": str(NOW + 40000),
    },
    40000.0,
    "-",
)
h(
    "discord",
    {
        "X-RateLimit-Limit": "5",
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-Reset": f"{NOW + 70}.123",
        "X-RateLimit-Reset-After": "64.57",
        "X-RateLimit-Bucket": "abcd",
        "X-RateLimit-Scope": "user",
    },
    64.57,
)
h(
    "discord both",
    {"Retry-After": "65", "X-RateLimit-Reset-After": "64.57"},
    64.57,
    "R",
    429,
    {"message": "You are being rate limited.", "retry_after": 64.57, "global": False},
)
h("reddit", {"x-ratelimit-remaining": "0.0", "x-ratelimit-used": "600", "x-ratelimit-reset": "132"}, 132.0)
h(
    "okta",
    limit("X-Rate-Limit", 0, NOW + 24, 600),
    24.0,
    "R",
    429,
    {
        "errorCode": "E0000047",
        "errorSummary": "API call exceeded rate limit due to too many requests.",
        "errorLink": "E0000047",
        "errorId": "oae",
        "errorCauses": [],
    },
)
h(
    "atlassian",
    {
        **limit("X-RateLimit", 0, iso(30), 100),
        "X-RateLimit-NearLimit": "true",
        "RateLimit-Reason": "jira-burst-based",
    },
    30.0,
)
h("atlassian minute", limit("X-RateLimit", 0, "2024-01-01T00:05Z", 100), 300.0)
h(
    "jira dc",
    {
        "X-RateLimit-Limit": "10",
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-FillRate": "2",
        "X-RateLimit-Interval-Seconds": "10",
        "Retry-After": "5",
    },
    5.0,
)
h(
    "jira beta",
    {
        "Beta-RateLimit": '"global-app-quota";r=0;t=600',
        "Beta-RateLimit-Policy": '"global-app-quota";q=65000;w=3600',
    },
    600.0,
)
h(
    "linear",
    {
        **limit("X-RateLimit-Requests", 0, (NOW + 45) * 1000, 1500),
        **limit("X-RateLimit-Complexity", 200000, (NOW + 3000) * 1000, 250000),
    },
    45.0,
)
h(
    "linear 400",
    {
        **limit("X-RateLimit-Requests", 10, (NOW + 45) * 1000, 1500),
        **limit("X-RateLimit-Complexity", 0, (NOW + 3000) * 1000, 250000),
    },
    3000.0,
    "R",
    400,
    {
        "errors": [
            {"message": "Rate limit exceeded", "extensions": {"code": "RATELIMITED", "type": "ratelimited"}}
        ]
    },
)
h(
    "linear endpoint",
    {
        **limit("X-RateLimit-Requests", 10, (NOW + 45) * 1000, 1500),
        "X-RateLimit-Endpoint-Requests-Remaining": "0",
        "X-RateLimit-Endpoint-Requests-Reset": str((NOW + 8) * 1000),
        "X-RateLimit-Endpoint-Name": "issues",
    },
    8.0,
)
h("figma", {"Retry-After": "60", "X-Figma-Plan-Tier": "starter", "X-Figma-Rate-Limit-Type": "low"}, 60.0)
h(
    "contentful",
    {
        "X-Contentful-RateLimit-Hour-Limit": "36000",
        "X-Contentful-RateLimit-Hour-Remaining": "35999",
        "X-Contentful-RateLimit-Second-Limit": "10",
        "X-Contentful-RateLimit-Second-Remaining": "0",
        "X-Contentful-RateLimit-Reset": "1",
    },
    1.0,
)
h("algolia", limit("X-RateLimit", 0, NOW + 50, 100), 50.0)
h(
    "sentry web",
    {
        "X-Sentry-Rate-Limit-Remaining": "0",
        "X-Sentry-Rate-Limit-Limit": "40",
        "X-Sentry-Rate-Limit-Reset": str(NOW + 3),
        "X-Sentry-Rate-Limit-ConcurrentLimit": "25",
        "X-Sentry-Rate-Limit-ConcurrentRemaining": "24",
    },
    3.0,
)
h(
    "sentry concurrent",
    {
        "X-Sentry-Rate-Limit-Remaining": "39",
        "X-Sentry-Rate-Limit-Limit": "40",
        "X-Sentry-Rate-Limit-Reset": str(NOW + 3),
        "X-Sentry-Rate-Limit-ConcurrentLimit": "25",
        "X-Sentry-Rate-Limit-ConcurrentRemaining": "0",
    },
    None,
)
h("sentry ingest", {"X-Sentry-Rate-Limits": "60:error;transaction:organization:quota_exceeded"}, 60.0, "-")
h("sentry ingest all", {"X-Sentry-Rate-Limits": "60:transaction:key, 2700::organization"}, 2700.0, "-")
h("sentry ingest ra", {"X-Sentry-Rate-Limits": "60:transaction:key", "Retry-After": "60"}, 60.0, "-")
h("cohere trial", {"x-trial-endpoint-call-limit": "40", "x-trial-endpoint-call-remaining": "0"}, None)
h("together", limit("x-ratelimit", 0, 5, 60), 5.0)
h(
    "mistral",
    {**limit("ratelimit", 0, 12, 60), "x-ratelimit-limit-minute": "60", "x-ratelimit-remaining-minute": "0"},
    12.0,
)
h(
    "mistral size",
    {
        "ratelimitbysize-limit": "500000",
        "ratelimitbysize-remaining": "0",
        "ratelimitbysize-reset": "21",
        "ratelimit-remaining": "30",
        "ratelimit-reset": "50",
    },
    21.0,
)
h(
    "kong",
    {
        "RateLimit-Limit": "60",
        "RateLimit-Remaining": "0",
        "RateLimit-Reset": "47",
        "X-RateLimit-Remaining-Minute": "0",
        "X-RateLimit-Remaining-Hour": "900",
    },
    47.0,
)
h(
    "cerebras",
    {
        "x-ratelimit-remaining-requests-day": "900",
        "x-ratelimit-reset-requests-day": "33011.38",
        "x-ratelimit-remaining-tokens-minute": "0",
        "x-ratelimit-reset-tokens-minute": "11.38",
    },
    11.38,
)
h(
    "cerebras day",
    {
        "x-ratelimit-remaining-requests-day": "0",
        "x-ratelimit-reset-requests-day": "33011.38",
        "x-ratelimit-remaining-tokens-minute": "5000",
        "x-ratelimit-reset-tokens-minute": "11.38",
    },
    33011.38,
    "Q",
)
h("fireworks", {"x-ratelimit-over-limit": "yes", "x-ratelimit-remaining-requests": "0"}, None)
h(
    "vercel body",
    {},
    75.0,
    "R",
    429,
    {
        "error": {
            "code": "rate_limited",
            "message": "x",
            "limit": {"remaining": 0, "reset": NOW + 75, "resetMs": (NOW + 75) * 1000, "total": 4},
        }
    },
)
h(
    "docker hub",
    {
        "ratelimit-limit": "100;w=21600",
        "ratelimit-remaining": "0;w=21600",
        "docker-ratelimit-source": "1.2.3.4",
    },
    None,
)
h("draft6", {"RateLimit-Limit": "100, 100;w=60", "RateLimit-Remaining": "0", "RateLimit-Reset": "50"}, 50.0)
h("draft6 left", {"RateLimit-Limit": "100", "RateLimit-Remaining": "3", "RateLimit-Reset": "50"}, None)
h("draft7", {"RateLimit": "limit=100, remaining=0, reset=12", "RateLimit-Policy": "100;w=60"}, 12.0)
h("draft7 left", {"RateLimit": "limit=100, remaining=7, reset=12"}, None)
h("draft7 order", {"RateLimit": "reset=9,remaining=0,limit=100"}, 9.0)
h("draft9 pk", {"RateLimit": '"default";r=0;t=30;pk=:cHsdsRa894==:'}, 30.0)
h("draft9 spaces", {"RateLimit": '"burst"; r=0; t=9'}, 9.0)
h("draft9 comma", {"RateLimit": '"a,b";r=0;t=9'}, 9.0)
h("draft9 second", {"RateLimit": '"daily";r=1000, "min";r=0;t=7'}, 7.0)
h("draft9 left", {"RateLimit": '"api";r=3;t=30'}, None)
h("draft9 not", {"RateLimit": '"api";r=0'}, None)
h("draft9 token", {"RateLimit": "default;r=0;t=10"}, 10.0)
h("draft9 tr order", {"RateLimit": '"api";t=14;r=0'}, 14.0)
h("draft9 list values", {"RateLimit": ['"a";r=5;t=1', '"b";r=0;t=8']}, 8.0)
h("hf", {"RateLimit": '"api";r=0;t=184', "RateLimit-Policy": '"fixed window";"api";q=1000;w=300'}, 184.0)
h(
    "trello",
    {
        "x-rate-limit-api-key-interval-ms": "300000",
        "x-rate-limit-api-key-max": "300",
        "x-rate-limit-api-key-remaining": "0",
        "x-rate-limit-api-token-interval-ms": "10000",
        "x-rate-limit-api-token-max": "100",
        "x-rate-limit-api-token-remaining": "5",
    },
    300.0,
)
h(
    "trello token",
    {
        "x-rate-limit-api-key-interval-ms": "300000",
        "x-rate-limit-api-key-remaining": "20",
        "x-rate-limit-api-token-interval-ms": "10000",
        "x-rate-limit-api-token-remaining": "0",
    },
    10.0,
)
h("twitch", limit("Ratelimit", 0, NOW + 16, 800), 16.0)
h("strava", {"X-RateLimit-Limit": "200,2000", "X-RateLimit-Usage": "201,900"}, None)
h("fitbit", limit("Fitbit-Rate-Limit", 0, 1200, 150), 1200.0)
h(
    "imgur user",
    {
        "X-RateLimit-UserLimit": "500",
        "X-RateLimit-UserRemaining": "0",
        "X-RateLimit-UserReset": str(NOW + 1000),
        "X-RateLimit-ClientLimit": "12500",
        "X-RateLimit-ClientRemaining": "12400",
    },
    1000.0,
)
h(
    "datadog",
    {**limit("X-RateLimit", 0, 7, 100), "X-RateLimit-Period": "10", "X-RateLimit-Name": "query"},
    7.0,
)
h(
    "auth0 quota",
    {"Auth0-Client-Quota-Limit": "b=per_hour;q=100;r=0;t=3000,b=per_day;q=1000;r=600;t=70000"},
    3000.0,
)
h(
    "xero",
    {
        "X-DayLimit-Remaining": "4000",
        "X-MinLimit-Remaining": "0",
        "X-AppMinLimit-Remaining": "9000",
        "X-Rate-Limit-Problem": "minute",
        "Retry-After": "39",
    },
    39.0,
)
h("mailgun", limit("X-RateLimit", 0, (NOW + 5) * 1000, 500), 5.0)
h("vimeo", limit("X-RateLimit", 0, "2024-01-01T00:01:00+00:00", 100), 60.0)
h("vimeo offset", limit("X-RateLimit", 0, "2023-12-31T19:01:00-05:00", 100), 60.0)
h(
    "bybit",
    {
        "X-Bapi-Limit": "100",
        "X-Bapi-Limit-Status": "0",
        "X-Bapi-Limit-Reset-Timestamp": str((NOW + 2) * 1000),
    },
    2.0,
)
h(
    "kucoin",
    {"gw-ratelimit-limit": "4000", "gw-ratelimit-remaining": "0", "gw-ratelimit-reset": "12345"},
    12.345,
)
h("sp-api", {"x-amzn-RateLimit-Limit": "0.5"}, None)
h("amz ms", {"x-amz-retry-after": "1500"}, 1.5)
h(
    "pinterest",
    {
        "x-ratelimit-limit": '100, 100;w=1;name="safety_net_app_id_user_id"',
        "x-ratelimit-remaining": "0",
        "x-ratelimit-reset": "1",
    },
    1.0,
)
h(
    "envoy",
    {
        "x-ratelimit-limit": '10, 10;w=1;name="a", 1000;w=3600;name="b"',
        "x-ratelimit-remaining": "0",
        "x-ratelimit-reset": "2",
        "x-envoy-ratelimited": "true",
    },
    2.0,
)
h("zoom date", {"Retry-After": "2024-01-01T00:05:00Z", "X-RateLimit-Type": "QPS"}, 300.0)
h(
    "docusign",
    {
        **limit("X-RateLimit", 2000, NOW + 3000, 3000),
        "X-BurstLimit-Limit": "500",
        "X-BurstLimit-Remaining": "0",
    },
    None,
)
h(
    "klaviyo",
    {"RateLimit-Limit": "700, 75;w=1, 700;w=60", "RateLimit-Remaining": "0", "RateLimit-Reset": "24"},
    24.0,
)
h(
    "bigcommerce",
    {
        "X-Rate-Limit-Requests-Left": "0",
        "X-Rate-Limit-Requests-Quota": "150",
        "X-Rate-Limit-Time-Reset-Ms": "14700",
        "X-Rate-Limit-Time-Window-Ms": "30000",
    },
    14.7,
)
h("woocommerce", {**limit("RateLimit", 0, NOW + 28, 25), "RateLimit-Retry-After": "28"}, 28.0)
h("fastly", limit("Fastly-RateLimit", 0, NOW + 900, 1000), 900.0)
h(
    "launchdarkly",
    {
        "X-Ratelimit-Global-Remaining": "0",
        "X-Ratelimit-Route-Remaining": "4",
        "X-Ratelimit-Reset": str((NOW + 6) * 1000),
    },
    6.0,
)
h(
    "helpscout",
    {"X-RateLimit-Retry-After": "12", "X-RateLimit-Limit-Minute": "400", "X-RateLimit-Remaining-Minute": "0"},
    12.0,
)
h("traefik", {"X-Retry-In": "1.5s"}, 1.5)
h(
    "nest throttler",
    {
        "X-RateLimit-Limit-short": "3",
        "X-RateLimit-Remaining-short": "0",
        "X-RateLimit-Reset-short": "3",
        "X-RateLimit-Remaining-long": "50",
        "X-RateLimit-Reset-long": "60",
    },
    3.0,
)
h("nest ra", {"Retry-After-short": "3"}, 3.0)
h("bucket4j", {"X-Rate-Limit-Retry-After-Seconds": "12"}, 12.0)
h("bucket4j ms", {"X-Rate-Limit-Retry-After-Milliseconds": "1250"}, 1.25)
h("laravel", {**limit("X-RateLimit", 0, NOW + 47, 60), "Retry-After": "47"}, 47.0)
h(
    "litellm proxy",
    {"llm_provider-x-ratelimit-remaining-tokens": "0", "llm_provider-x-ratelimit-reset-tokens": "5s"},
    5.0,
)
h(
    "helicone",
    {**limit("Helicone-RateLimit", 0, 30, 1000), "Helicone-RateLimit-Policy": "1000;w=60;u=request"},
    30.0,
)
h("mastodon", limit("X-RateLimit", 0, "2024-01-01T00:05:00.123456Z", 300), 300.123456)
h("bluesky", {**limit("RateLimit", 0, NOW + 299, 3000), "RateLimit-Policy": "3000;w=300"}, 299.0)
h("gocardless", limit("RateLimit", 0, "Mon, 01 Jan 2024 00:00:30 GMT", 1000), 30.0)
h(
    "ticketmaster",
    {
        "Rate-Limit": "5000",
        "Rate-Limit-Available": "0",
        "Rate-Limit-Over": "1",
        "Rate-Limit-Reset": str((NOW + 80) * 1000),
    },
    80.0,
)
h(
    "yelp",
    {
        "RateLimit-DailyLimit": "5000",
        "RateLimit-Remaining": "0",
        "RateLimit-ResetTime": "2024-01-02T00:00:00+00:00",
    },
    86400.0,
    "-",
)
h("rocketchat", limit("x-ratelimit", 0, (NOW + 55) * 1000, 10), 55.0)
h("shipstation", limit("X-Rate-Limit", 0, 20, 40), 20.0)
h("walmart", {"x-current-token-count": "0", "x-next-replenishment-time": str((NOW + 60) * 1000)}, 60.0)
h(
    "meta buc",
    {
        "x-business-use-case-usage": '{"123":[{"type":"ads_management","call_count":100,"total_cputime":25,"total_time":25,"estimated_time_to_regain_access":19}]}'
    },
    1140.0,
)
h("meta app usage", {"x-app-usage": '{"call_count":100,"total_time":25,"total_cputime":25}'}, None)
h(
    "trakt",
    {
        "X-Ratelimit": '{"name":"AUTHED_API_POST_LIMIT","period":1,"limit":1,"remaining":0,"until":"2024-01-01T00:00:01Z"}',
        "Retry-After": "1",
    },
    1.0,
)
h("pushback 200", {"grpc-retry-pushback-ms": "1500"}, 1.5)
h("checkr", limit("X-Ratelimit", 0, "2024-01-01 00:10:00 UTC", 1440), 600.0)
h("bytes header", {b"Retry-After": b"11"}, 11.0)
h("list header", {"Retry-After": ["11"]}, 11.0)
h("int header", {"Retry-After": 11}, 11.0)
h("two digits merged", {"Retry-After": "12, 12"}, 12.0)
h("spaces", {"Retry-After": "  12 "}, 12.0)
h("ra plus", {"Retry-After": "+12"}, 12.0)
h("rfc850", {"Retry-After": "Monday, 01-Jan-24 00:00:45 GMT"}, 45.0)
h("asctime", {"Retry-After": "Mon Jan  1 00:00:45 2024"}, 45.0)
h("past date", {"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0)
h("zero", {"Retry-After": "0"}, 0.0)
h("date without Date ms", {"retry-after": "PT2M"}, 120.0)
for label, value in [
    ("nan", "NaN"),
    ("inf", "inf"),
    ("infinity", "Infinity"),
    ("neg", "-1"),
    ("negf", "-0.5"),
    ("neginf", "-Infinity"),
    ("empty", ""),
    ("null", "null"),
    ("none", "None"),
    ("undefined", "undefined"),
    ("under", "1_000"),
    ("prose", "later please"),
    ("hex", "0x10"),
    ("arabic", "\u0661\u0662"),
]:
    h(f"Retry-After {label}", {"Retry-After": value}, None)
CENTURY = 100 * 366 * 86400.0
for label, value in [
    ("century", "99999999999"),
    ("year9999", "Fri, 31 Dec 9999 23:59:59 GMT"),
    ("big", "9" * 400),
    ("maxint", "9223372036854775807"),
    ("uint32", "253402300799"),
]:
    # Too long is too long: it is no reason to take the wait for absent and to call again soon.
    h(f"Retry-After {label}", {"Retry-After": value}, CENTURY)
h("ra bad falls to reset", {**limit("x-ratelimit", 0, 9), "Retry-After": "NaN"}, 9.0)
h("ra-ms bad falls", {"retry-after-ms": "abc", "Retry-After": "4"}, 4.0)
h("ra-ms neg falls", {"retry-after-ms": "-5", "Retry-After": "4"}, 4.0)
h("reset neg", limit("x-ratelimit", 0, -1), None)
h("reset past epoch", limit("x-ratelimit", 0, NOW - 5), 0.0)
h("reset nan", limit("x-ratelimit", 0, "NaN"), None)
h("reset year 9999", limit("x-ratelimit", 0, "253402300799"), CENTURY)
h("reset micro", limit("x-ratelimit", 0, (NOW + 5) * 10**6), 5.0)
h("reset nano", limit("x-ratelimit", 0, (NOW + 5) * 10**9), 5.0)
h("reset empty", limit("x-ratelimit", 0, ""), None)
h("remaining neg", limit("x-ratelimit", -1, 9), 9.0)
h("remaining nan", limit("x-ratelimit", "NaN", 9), 9.0, "-")
h("two groups", {**limit("x-ratelimit-hour", 5, 100), **limit("x-ratelimit-minute", 0, 8)}, 8.0)
h("two fams", {**limit("x-ratelimit", 3, 100), **limit("ratelimit", 0, 8)}, 8.0, "-")
INFO = "type.googleapis.com/google.rpc.RetryInfo"


def rpc(details):
    """Return an error of google.rpc."""
    return {"error": {"code": 429, "message": "x", "status": "RESOURCE_EXHAUSTED", "details": details}}


b("retryinfo s", rpc([{"@type": INFO, "retryDelay": "34s"}]), 34.0)
b("retryinfo nano", rpc([{"@type": INFO, "retryDelay": "1.234567890s"}]), 1.23456789)
b("retryinfo zero", rpc([{"@type": INFO, "retryDelay": "0s"}]), 0.0)
b("retryinfo obj", rpc([{"@type": INFO, "retryDelay": {"seconds": 3, "nanos": 500000000}}]), 3.5)
b("retryinfo objstr", rpc([{"@type": INFO, "retry_delay": {"seconds": "7"}}]), 7.0)
b(
    "retryinfo after quota minute",
    rpc(
        [
            {
                "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                "violations": [
                    {"quotaMetric": "m", "quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}
                ],
            },
            {"@type": INFO, "retryDelay": "20s"},
        ]
    ),
    20.0,
)
b(
    "retryinfo day",
    rpc(
        [
            {
                "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                "violations": [
                    {"quotaMetric": "m", "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}
                ],
            },
            {"@type": INFO, "retryDelay": "20s"},
        ]
    ),
    20.0,
    "Q",
)
b("retryinfo list", [rpc([{"@type": INFO, "retryDelay": "6s"}])], 6.0)
b(
    "connect b64",
    {
        "code": "resource_exhausted",
        "message": "x",
        "details": [{"type": "google.rpc.RetryInfo", "value": "CgIIHg"}],
    },
    30.0,
)
b(
    "connect debug",
    {
        "code": "resource_exhausted",
        "message": "x",
        "details": [{"type": "google.rpc.RetryInfo", "value": "CgIIBQ", "debug": {"retryDelay": "5s"}}],
    },
    5.0,
)
b(
    "connect b64 nanos",
    {
        "code": "unavailable",
        "message": "x",
        "details": [
            {"type": "google.rpc.ErrorInfo", "value": "CgFh"},
            {"type": "google.rpc.RetryInfo", "value": "CgYQgMq17gE="},
        ],
    },
    0.5,
    "-",
    503,
)
b(
    "telegram",
    {
        "ok": False,
        "error_code": 429,
        "description": "Too Many Requests: retry after 35",
        "parameters": {"retry_after": 35},
    },
    35.0,
)
b("matrix", {"errcode": "M_LIMIT_EXCEEDED", "error": "Too many requests", "retry_after_ms": 2000}, 2.0)
b(
    "zulip",
    {
        "code": "RATE_LIMIT_HIT",
        "msg": "API usage exceeded rate limit",
        "result": "error",
        "retry-after": 28.7,
    },
    28.7,
)
b(
    "todoist",
    {
        "error": "Too many requests",
        "error_code": 35,
        "error_extra": {"retry_after": 900, "event_id": "e"},
        "error_tag": "LIMITS_REACHED",
        "http_code": 429,
    },
    900.0,
)
b(
    "monday",
    {
        "errors": [
            {
                "message": "Complexity budget exhausted",
                "extensions": {
                    "code": "COMPLEXITY_BUDGET_EXHAUSTED",
                    "retry_in_seconds": 33,
                    "status_code": 429,
                },
            }
        ]
    },
    33.0,
)
b(
    "monday old",
    {
        "error_message": "x",
        "error_code": "ComplexityException",
        "status_code": 429,
        "error_data": {"retry_in_seconds": 15},
    },
    15.0,
)
b(
    "dropbox",
    {
        "error_summary": "too_many_requests/..",
        "error": {"reason": {".tag": "too_many_requests"}, "retry_after": 300},
    },
    300.0,
)
b(
    "chatgpt",
    {
        "error": {
            "type": "usage_limit_reached",
            "message": "x",
            "plan_type": "plus",
            "resets_in_seconds": 12345,
        }
    },
    12345.0,
    "Q",
)
b(
    "binance ws",
    {
        "id": "1",
        "status": 418,
        "error": {
            "code": -1003,
            "msg": "Way too many requests",
            "data": {"serverTime": NOW * 1000, "retryAfter": (NOW + 90) * 1000},
        },
        "rateLimits": [],
    },
    90.0,
    "R",
    418,
)
b(
    "close",
    {
        "error": {
            "message": "x",
            "rate_limit": 160,
            "rate_limit_type": "key",
            "rate_reset": 0.4,
            "rate_window": 8,
        }
    },
    0.4,
)
b(
    "opencage",
    {
        "rate": {"limit": 2500, "remaining": 0, "reset": NOW + 86400},
        "results": [],
        "status": {"code": 402, "message": "quota exceeded"},
    },
    86400.0,
    "Q",
    402,
)
b(
    "stackexchange",
    {
        "error_id": 502,
        "error_name": "throttle_violation",
        "error_message": "too many requests",
        "backoff": 10,
    },
    10.0,
    "R",
    400,
)
b(
    "stack prose",
    {
        "error_id": 502,
        "error_name": "throttle_violation",
        "error_message": "more requests available in 77000 seconds",
    },
    None,
    "R",
    400,
)
b(
    "buffer",
    {
        "errors": [
            {"message": "x", "extensions": {"code": "RATE_LIMIT_EXCEEDED", "retryAfter": 30, "window": "15m"}}
        ]
    },
    30.0,
)
b("apim prose", {"statusCode": 429, "message": "Rate limit is exceeded. Try again in 22 seconds."}, None)
b(
    "replicate",
    {"title": "Too many", "detail": "Request was throttled.", "status": 429, "retry_after": 6},
    6.0,
)
b(
    "k8s",
    {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "x",
        "reason": "TooManyRequests",
        "details": {"retryAfterSeconds": 1},
        "code": 429,
    },
    1.0,
)
b(
    "cloudflare edge",
    {
        "cloudflare_error": True,
        "error_code": 1015,
        "status": 429,
        "retryable": True,
        "retry_after": 30,
        "title": "x",
    },
    30.0,
)
b(
    "openrouter meta",
    {
        "error": {
            "code": 429,
            "message": "x",
            "metadata": {
                "headers": {
                    "X-RateLimit-Limit": "20",
                    "X-RateLimit-Remaining": "0",
                    "X-RateLimit-Reset": str((NOW + 15) * 1000),
                }
            },
        }
    },
    15.0,
)
b(
    "openrouter meta left",
    {
        "error": {
            "code": 429,
            "message": "x",
            "metadata": {
                "headers": {
                    "X-RateLimit-Limit": "20",
                    "X-RateLimit-Remaining": "4",
                    "X-RateLimit-Reset": str((NOW + 15) * 1000),
                }
            },
        }
    },
    None,
)
b(
    "or meta retry",
    {
        "error": {
            "code": 429,
            "message": "x",
            "metadata": {"provider_name": "p", "headers": {"Retry-After": "8"}},
        }
    },
    8.0,
)
b("hf loading", {"error": "Model x is currently loading", "estimated_time": 43.6}, 43.6, "R", 503)
b("deviceflow", {"error": "slow_down", "error_description": "x", "interval": 10}, 10.0, "R", 400)
b("retry secs", {"error": {"code": "rate_limited", "retry_after_secs": 12}}, 12.0)
b("retry ms2", {"error": {"code": "rate_limited", "retryAfterMilliseconds": 1500}}, 1.5)
b("retry ms3", {"error": {"code": "rate_limited", "retry_after_milliseconds": 1500}}, 1.5)
b("retry iso dur", {"error": {"code": "rate_limited", "retryAfter": "PT30S"}}, 30.0)
b("retry str", {"error": {"code": "rate_limited", "retry_after": "12"}}, 12.0)
b("retry at", {"error": {"code": "rate_limited", "retry_at": iso(25)}}, 25.0)
b("retryAt", {"error": {"code": "rate_limited", "retryAt": iso(25)}}, 25.0)
b("Retry-After body", {"error": {"code": "rate_limited", "message": "x"}, "Retry-After": "13"}, 13.0)
b(
    "rate_limit nested",
    {
        "error": {"code": "rate_limited", "message": "x"},
        "rate_limit": {"limit": 60, "remaining": 0, "reset": NOW + 31},
    },
    31.0,
)
b(
    "rateLimit nested",
    {"error": {"code": "rate_limited", "rateLimit": {"limit": 60, "remaining": 0, "resetAt": iso(31)}}},
    31.0,
)
b(
    "rate_limit left",
    {
        "error": {"code": "rate_limited", "message": "x"},
        "rate_limit": {"limit": 60, "remaining": 8, "reset": NOW + 31},
    },
    None,
)
b("reset_in", {"error": {"code": "rate_limited", "reset_in": 40}}, 40.0)
b("retry nan str", {"error": {"code": "rate_limited", "retry_after": "NaN"}}, None)
b("retry neg", {"error": {"code": "rate_limited", "retry_after": -3}}, None)
b("retry cent", {"error": {"code": "rate_limited", "retry_after": 99999999999}}, CENTURY)
b("retry bool", {"error": {"code": "rate_limited", "retry_after": True}}, None)
b("retry null", {"error": {"code": "rate_limited", "retry_after": None}}, None)
b("retry list", {"error": {"code": "rate_limited", "retry_after": [5]}}, None)
b("retry empty", {"error": {"code": "rate_limited", "retry_after": ""}}, None)
b(
    "retry bad body, header",
    {"error": {"code": "rate_limited", "retry_after": -3}},
    4.0,
    "R",
    429,
    {"Retry-After": "4"},
)
b("retry inf body", b'{"error":{"code":"rate_limited","retry_after":1e999}}', None)
b(
    "expires_in no wait",
    {"error": {"code": "rate_limited", "expires_in": 3600, "ttl": 5, "timeout": 30}},
    None,
)
b(
    "quoted json",
    {
        "error": {
            "message": '{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"'
            + INFO
            + '","retryDelay":"9s"}]}}',
            "code": 429,
        }
    },
    9.0,
)
b("throttle seconds", {"Fault": {"Code": "Throttled"}, "ThrottleSeconds": 7}, 7.0)


def cost(need, available, rate):
    """Return a throttled answer of Shopify."""
    return {
        "errors": [{"message": "Throttled", "extensions": {"code": "THROTTLED"}}],
        "extensions": {
            "cost": {
                "requestedQueryCost": need,
                "actualQueryCost": None,
                "throttleStatus": {
                    "maximumAvailable": 2000.0,
                    "currentlyAvailable": available,
                    "restoreRate": rate,
                },
            }
        },
    }


b("cost", cost(1002, 202, 100.0), 8.0, "R", 200)
b("cost frac", cost(101, 98, 50), 0.06, "R", 200)
b("cost enough", cost(10, 98, 50), 0.0, "R", 200)
b("cost zero rate", cost(101, 98, 0), None, "R", 200)
b("cost impossible", cost(10**15, 0, 0.0001), CENTURY, "R", 200)
b(
    "gh graphql",
    {"errors": [{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}]},
    300.0,
    "R",
    200,
    limit("x-ratelimit", 0, NOW + 300, 5000),
)
b(
    "graphql ext reset",
    {"errors": [{"message": "x", "extensions": {"code": "RATE_LIMITED", "resetAt": iso(12)}}]},
    12.0,
    "R",
    200,
)
