"""Tests of recovery's log: which level an event has, and what its message names."""

import logging

import httpx2
import pytest
import requests

from amends import FaultError, Operation, Policy, Upstream, recover
from amends.bindings.httpx import Transport
from amends.errors import RateLimitedError, ServiceUnavailableError
from amends.testing import Script

URL = "http://ada:s3cret@127.0.0.1:1/v1/orders?token=s3cret#s3cret"
PLAIN = "http://127.0.0.1:1/v1/orders"


@pytest.fixture
def logged(caplog, clock):
    """Recovery's log at INFO and above."""
    caplog.set_level(logging.INFO, "amends.recovery")
    return caplog


def test_long_waits_and_give_ups_are_warnings(logged):
    """A wait of more than 2 s and a give-up are WARNING; short waits and recoveries are INFO."""
    recover(Script(RateLimitedError(retry_after=2), RateLimitedError(retry_after=2.1), "x"))
    assert [record.levelname for record in logged.records] == ["INFO", "WARNING", "INFO"]
    with pytest.raises(FaultError):
        recover(Script(ServiceUnavailableError()))
    assert (logged.records[-1].levelname, logged.records[-1].amends["kind"]) == ("WARNING", "gave-up")
    with pytest.raises(FaultError):
        recover(Script(RateLimitedError(retry_after=3600), repeat=True))
    assert logged.records[-1].amends["reason"] == "wait-too-long"


def test_the_message_names_the_request(logged):
    """Method, URL without user and query, attempt, wait, reason and trace id; from the exceptions of HTTP libraries."""
    failing = {
        "httpx2": lambda: httpx2.get(URL, trust_env=False),
        "requests": lambda: requests.get(URL, timeout=5, proxies={"no_proxy": "*"}),
    }
    for call in failing.values():
        with pytest.raises(FaultError):
            recover(call, policy=Policy(attempts=2))
        retry, gave_up = logged.records[-2:]
        assert retry.getMessage() == f"retry GET {PLAIN}: SERVICE_UNAVAILABLE after attempt 1 (backoff, 1 s)"
        assert gave_up.getMessage() == f"gave-up GET {PLAIN}: SERVICE_UNAVAILABLE after attempt 2 (attempts)"
        assert (gave_up.amends["method"], gave_up.amends["url"]) == ("GET", PLAIN)
    recover(
        Script(RateLimitedError(retry_after=9, trace_id="abc123", status=429), "x"),
        operation=Operation(name="search", method="GET", url=URL),
    )
    assert logged.records[-2].getMessage() == (
        f"retry search GET {PLAIN}: RATE_LIMITED 429 after attempt 1 (hint, 9 s, trace id abc123)"
    )
    assert "s3cret" not in "".join(record.getMessage() for record in logged.records)


def test_the_http_clients_log_their_trace_id(logged):
    """The id that the client sends is logged, also if no answer arrives."""
    with httpx2.Client(transport=Transport(policy=Policy(attempts=2))) as client, pytest.raises(FaultError):
        client.get("http://127.0.0.1:1/v1/orders?token=s3cret")
    message = logged.records[-1].getMessage()
    assert message.startswith(
        f"gave-up GET {PLAIN}: SERVICE_UNAVAILABLE after attempt 2 (attempts, trace id "
    )
    assert len(logged.records[-1].amends["trace_id"]) == 32
    assert logged.records[-1].amends["trace_id"] == logged.records[-2].amends["trace_id"]


def test_a_long_wait_for_a_turn_is_a_warning(logged, clock, seen):
    """A call that waits because of what other callers received is logged when the wait begins."""
    upstream = Upstream()
    hint = RateLimitedError(retry_after=20).fault
    upstream.failed(hint, clock.now(), clock.now(), 0.0)
    began = clock.now()
    times = []
    assert recover(Script("x"), upstream=upstream, on_event=lambda event: times.append(clock.now())) == "x"
    assert [(event.kind, event.code, event.reason) for event in seen] == [
        ("queued", "RATE_LIMITED", "queued")
    ]
    assert times == [began]
    assert logged.records[-1].levelname == "WARNING"
    assert logged.records[-1].getMessage() == "queued operation: RATE_LIMITED after attempt 0 (queued, 20 s)"


def test_a_retry_that_waits_for_its_hint_is_logged_once(logged, clock, seen):
    """The wait is in the event of the retry already."""
    assert recover(Script(RateLimitedError(retry_after=20), "x"), upstream=Upstream()) == "x"
    assert [event.kind for event in seen] == ["retry", "recovered"]
