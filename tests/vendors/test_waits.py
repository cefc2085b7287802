"""Every form in which services write waits, in headers and bodies."""

import pytest

from amends import decide, extract
from tests.each import each
from tests.vendors.wait_forms import FORMS

DATE = {"Date": "Mon, 01 Jan 2024 00:00:00 GMT"}
NOW = 1704067200


def empty(name, reset, **more):
    """Return headers of a limit with nothing left."""
    prefix, _, kind = name.partition("|")
    tail = f"-{kind}" if kind else ""
    return {f"{prefix}-remaining{tail}": "0", f"{prefix}-reset{tail}": reset, **more, **DATE}


HEADERS = [
    ({"Retry-After": "7"}, 7.0),
    ({"Retry-After": "1.5"}, 1.5),
    ({"retry-after-ms": "1500", "Retry-After": "2"}, 1.5),
    ({"x-ms-retry-after-ms": "103"}, 0.103),
    ({"Retry-After": "Mon, 01 Jan 2024 00:01:00 GMT", **DATE}, 60.0),
    ({"Retry-After": "2024-01-01T00:01:00Z", **DATE}, 60.0),
    ({"Retry-After": "2024-01-01T00:01Z", **DATE}, 60.0),
    ({"Retry-After": "6m0s"}, 360.0),
    ({"Retry-After": "34.07s"}, 34.07),
    ({"Retry-After": "PT1M30S"}, 90.0),
    ({"Retry-After": str(NOW + 30), **DATE}, 30.0),
    ({"Retry-After": str((NOW + 30) * 1000), **DATE}, 30.0),
    ({"Retry-After": "86400"}, 86400.0),
    ({"Retry-After": "9999999999999999999"}, 100 * 366 * 86400.0),
    ({"Retry-After": "-5"}, None),
    ({"Retry-After": "soon"}, None),
    ({"grpc-retry-pushback-ms": "250"}, 0.25),
    (empty("x-ratelimit", "12"), 12.0),
    (empty("x-ratelimit", str(NOW + 12)), 12.0),
    (empty("x-ratelimit", f"{NOW + 12}.5"), 12.5),
    (empty("x-ratelimit", str((NOW + 12) * 1000)), 12.0),
    (empty("x-ratelimit", "2024-01-01T00:00:12Z"), 12.0),
    (empty("x-ratelimit", "2024-01-01 00:00:12 UTC"), 12.0),
    (empty("x-ratelimit|tokens", "6m0s"), 360.0),
    (empty("x-ratelimit|requests", "250ms"), 0.25),
    (empty("anthropic-ratelimit-tokens", "2024-01-01T00:00:12Z"), 12.0),
    (empty("x-ratelimit-requests", "5000"), 5000.0),
    ({"ratelimit": "limit=100, remaining=0, reset=30"}, 30.0),
    ({"ratelimit": f"limit=100, remaining=0, reset={NOW + 30}", **DATE}, 30.0),
    ({"ratelimit": f'"api";r=0;t={NOW + 30}', **DATE}, 30.0),
    ({"RateLimit": '"api";r=0;t=55'}, 55.0),
    ({"RateLimit": '"api";r=0;t=55', "RateLimit-Policy": '"api";q=100;w=60'}, 55.0),
    ({"RateLimit-Policy": '"api";q=100;w=60', "RateLimit": '"api";r=0;t=55'}, 55.0),
    ({"RateLimit": "limit=100, remaining=0, reset=30", "RateLimit-Policy": "100;w=60"}, 30.0),
    ({"RateLimit": '"burst";r=5;t=1, "day";r=0;t=900'}, 900.0),
    # The exhausted limit counts, not the first one; one with something left says nothing.
    ({**empty("x-ratelimit|tokens", "20"), "x-ratelimit-remaining-requests": "9", "x-ratelimit-reset-requests": "99"}, 20.0),
    ({"x-ratelimit-remaining": "9", "x-ratelimit-reset": "99"}, None),
    ({"x-ratelimit-remaining": "0, 1995", "x-ratelimit-reset": "1, 1419704"}, 1.0),
    ({"x-rate-limit-requests-left": "0", "x-rate-limit-time-reset-ms": "15000"}, 15.0),
    ({"x-contentful-ratelimit-second-remaining": "0", "x-contentful-ratelimit-reset": "1"}, 1.0),
]  # fmt: skip

INFO = "type.googleapis.com/google.rpc.RetryInfo"
BODIES = [
    ({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [{"@type": INFO, "retryDelay": "34.07s"}]}}, 34.07),
    ({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [{"@type": INFO, "retry_delay": {"seconds": 7, "nanos": 500000000}}]}}, 7.5),
    ({"message": "x", "retry_after": 64.57, "global": False}, 64.57),
    ({"ok": False, "error_code": 429, "parameters": {"retry_after": 35}}, 35.0),
    ({"kind": "Status", "apiVersion": "v1", "reason": "TooManyRequests", "details": {"retryAfterSeconds": 10}}, 10.0),
    ({"error": {"type": "usage_limit_reached", "resets_at": NOW + 3600}}, 3600.0),
    ({"error": {"code": "rate_limit_exceeded", "retryAfter": "2024-01-01T00:00:30Z"}}, 30.0),
    ({"error": "Model is loading", "estimated_time": 20.5}, 20.5),
    ({"error": {"code": "too_many_requests", "retry_after_ms": 250}}, 0.25),
    ({"error": "slow_down", "interval": 10}, 10.0),
    ({"error": {"code": 429, "message": "x", "metadata": {"headers": {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str((NOW + 9) * 1000)}}}, "user_id": "u"}, 9.0),
    ({"code": "resource_exhausted", "message": "x", "details": [{"type": "google.rpc.RetryInfo", "value": "CgIICg"}]}, 10.0),
    ({"rateLimitNext": "2024-01-01T00:00:49Z", "type": "/account-rate-limit-exceeded", "title": "x", "status": 429}, 49.0),
    ({"error": {"code": "rate_limit_exceeded", "availability": {"retry_after": 3}}}, 3.0),
]  # fmt: skip


@pytest.mark.parametrize(("headers", "wait"), HEADERS)
def test_in_headers(headers, wait):
    """An impossible value is dropped, not obeyed."""
    assert extract({"status": 429, "headers": headers, "body": {"error": {"code": "x"}}}).retry_after == wait
    assert extract({"status": 429, "headers": headers}).retry_after == wait


@pytest.mark.parametrize(("body", "wait"), BODIES)
def test_in_bodies(body, wait):
    """Seconds, milliseconds, instants, objects, and headers quoted in the body."""
    assert extract({"status": 429, "headers": DATE, "body": body}).retry_after == pytest.approx(wait)


@each(("name", "status", "headers", "body", "wait", "kind"), FORMS)
def test_a_form(name, status, headers, body, wait, kind):
    """Each family of headers and members, and values that cannot be meant."""
    fault = extract({"status": status, "headers": headers, "body": body}, in_success=status < 400)
    assert fault.retry_after == (wait if wait is None else pytest.approx(wait))
    assert kind == "-" or fault.recovery == {"R": "transient", "Q": "terminal"}[kind]


def test_a_wait_of_an_hour_under_402():
    """Used-up money that returns in an hour or later is not retried; a budget in flight is."""
    for wait, recovery in (("5", "transient"), ("3600", "terminal")):
        fault = extract(
            {"status": 402, "headers": {"Retry-After": wait}, "body": {"error": {"message": "x"}}}
        )
        assert (fault.retry_after, fault.recovery) == (float(wait), recovery)


def test_a_cost_bucket():
    """(needed - available) / restore rate."""
    throttle = {"maximumAvailable": 1000.0, "currentlyAvailable": 252, "restoreRate": 50.0}
    body = {
        "errors": [{"message": "Throttled", "extensions": {"code": "THROTTLED"}}],
        "extensions": {"cost": {"requestedQueryCost": 752, "throttleStatus": throttle}},
    }
    assert extract({"status": 200, "headers": {}, "body": body}, in_success=True).retry_after == 10.0


def test_the_documented_waits():
    """Where the wire is silent: GitHub's secondary limit, Airtable, Cloudflare's API."""
    page = "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"
    for status, body, wait in (
        (403, {"message": "x", "documentation_url": page}, 60.0),
        (429, {"errors": [{"error": "RATE_LIMIT_REACHED", "message": "x"}]}, 30.0),
        (
            429,
            {"success": False, "errors": [{"code": 971, "message": "x"}], "messages": [], "result": None},
            300.0,
        ),
    ):
        assert extract({"status": status, "headers": {}, "body": body}).retry_after == wait


def test_a_negative_pushback_says_do_not_retry():
    """gRPC's own words for it."""
    fault = extract(
        {"status": 200, "headers": {"grpc-status": "14", "grpc-retry-pushback-ms": "-1"}}, in_success=True
    )
    assert fault.recovery == "terminal"


def test_a_wait_of_hours_is_kept_whole():
    """Used-up quota names when it starts again: that is `resume_in`, not an hour."""
    body = {"error": {"type": "usage_limit_reached", "message": "x", "resets_at": NOW + 20_000}}
    fault = extract({"status": 429, "headers": DATE, "body": body})
    decision = decide(fault)
    assert (fault.retry_after, decision.action, decision.resume_in) == (20_000.0, "escalate", 20_000.0)
