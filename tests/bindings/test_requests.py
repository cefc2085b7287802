"""requests: the adapter recovers like the httpx transports."""

import gzip

import pytest
import requests

from amends import FaultError, Operation, Policy, recover
from amends.bindings.requests import Adapter
from amends.errors import RateLimitedError
from amends.testing import FakeClock
from tests.http.flaky import answer_too_late, break_off, effect_unknown, run_once_per_key


@pytest.fixture
def call():
    def call(method, url, *, options=None, **more):
        with requests.Session() as session:
            session.mount("http://", Adapter(**(options or {})))
            return session.request(method, url, timeout=more.pop("timeout", 5), **more)

    return call


PROBLEM = {"title": "t", "status": 503, "detail": "d", "is_retriable": True}


def test_waits_repeats_and_keys(flaky, call):
    """P9: a POST waits as asked and is repeated unchanged, with one key for all attempts."""
    flaky.script["/a"] = [
        (429, {}, {**PROBLEM, "retry_after_ms": 1500}),
        (503, {"retry-after": "2"}, None),
        200,
    ]
    with FakeClock() as clock:
        assert call("POST", f"{flaky.url}/a", json={"n": 1}, options={"keyed": True}).json() == {"fine": True}
    assert clock.waits == [1.5, 2.0]
    assert len({headers["idempotency-key"] for _, headers, _ in flaky.calls["/a"]}) == 1
    assert {body for _, _, body in flaky.calls["/a"]} == {b'{"n": 1}'}
    assert "application/problem+json" in flaky.calls["/a"][0][1]["accept"]


def test_raises_or_returns(flaky, call):
    """A failure raises a typed error with its response, or returns the response; also with `stream=True`."""
    flaky.script["/a"] = [
        (422, {}, {"title": "No", "status": 422, "detail": "amount", "suggestions": ["Add it"]})
    ]
    for stream in (False, True):
        with pytest.raises(FaultError) as caught:
            call("GET", f"{flaky.url}/a", stream=stream)
        assert caught.value.fault.suggestions == ("Add it",)
        assert caught.value.response.json()["detail"] == "amount"
        returned = call("GET", f"{flaky.url}/a", stream=stream, options={"raises": "nothing"})
        assert returned.json()["detail"] == "amount"
    with pytest.raises(requests.ConnectionError):
        call("GET", "http://127.0.0.1:9/", options={"raises": "nothing", "policy": Policy(attempts=1)})


def test_a_returned_failure_is_a_usable_response(flaky):
    """A failed response that is returned can be read in every way, and its cookies reach the session."""
    packed = gzip.compress(b'{"detail": "amount"}')
    flaky.script["/a"] = [(404, {"content-encoding": "gzip", "set-cookie": "seen=1"}, packed)]
    with requests.Session() as session:
        session.mount("http://", Adapter(raises="nothing"))
        response = session.get(f"{flaky.url}/a")
        assert response.json() == {"detail": "amount"}
        assert b"".join(response.iter_content(3)) == response.content
        assert session.cookies["seen"] == "1"
    flaky.script["/b"] = [(404, {}, b"x" * 3_000_000)]
    with requests.Session() as session, pytest.raises(FaultError) as caught:
        session.mount("http://", Adapter())
        session.get(f"{flaky.url}/b")
    assert 1_000_000 < len(caught.value.response.content) < 3_000_000


def test_lost_responses_and_streams(flaky, call):
    """A lost response is repeated under its key with one effect; a stream is sent once."""
    flaky.script["/a"] = [answer_too_late, run_once_per_key]
    with FakeClock():
        assert (
            call("POST", f"{flaky.url}/a", json={}, timeout=0.3, options={"keyed": True}).status_code == 201
        )
    assert list(flaky.effects.values()) == [1]
    flaky.script["/b"] = [(429, {"retry-after": "1"}, None), 200]
    with FakeClock(), pytest.raises(RateLimitedError):
        call("POST", f"{flaky.url}/b", data=iter([b"one"]))
    assert [body for _, _, body in flaky.calls["/b"]] == [b"one"]


def test_large_bodies_and_deadlines(flaky, call):
    """A body that is too large is not parsed; the request carries the operation's key and deadline."""
    flaky.script["/a"] = [(400, {}, b'{"code":"MINE","detail":"' + b"x" * 3_000_000 + b'"}')]
    with pytest.raises(FaultError) as caught:
        call("GET", f"{flaky.url}/a")
    assert caught.value.code == "BAD_REQUEST"
    operation = Operation(name="order", key="order-17")
    recover(lambda: call("POST", f"{flaky.url}/b"), operation=operation, policy=Policy(deadline=30))
    assert flaky.calls["/b"][0][1]["idempotency-key"] == "order-17"
    assert float(flaky.calls["/b"][0][1]["request-timeout"]) <= 30


def test_a_key_in_doubt_is_verified(flaky, call):
    """Design 8: after EFFECT_UNKNOWN, `verify` returns False (send again), a response, or None (raise)."""
    flaky.script["/a"] = [effect_unknown, run_once_per_key]
    call("POST", f"{flaky.url}/a", options={"verify": lambda fault: False})
    first, second = (headers["idempotency-key"] for _, headers, _ in flaky.calls["/a"])
    assert first != second
    flaky.script["/b"] = [effect_unknown]
    with pytest.raises(FaultError) as caught:
        call("POST", f"{flaky.url}/b", options={"verify": lambda fault: None})
    assert caught.value.decision.action == "verify"
    assert len(flaky.calls["/b"]) == 1
    mine = requests.Response()
    assert call("POST", f"{flaky.url}/b", options={"verify": lambda fault: mine}) is mine


def test_a_body_that_breaks_off(flaky, call):
    """An incomplete body is not parsed; the error comes from the status."""
    flaky.script["/a"] = [break_off]
    with pytest.raises(FaultError) as caught:
        call("GET", f"{flaky.url}/a")
    assert (caught.value.code, caught.value.fault.status) == ("CONFLICT", 409)
    assert len(flaky.calls["/a"]) == 1
