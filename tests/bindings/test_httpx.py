"""httpx2 and httpx, sync and async: all four recover in the same way against a real server."""

import asyncio
import gzip

import httpx
import httpx2
import pytest

from amends import FaultError, Operation, Policy, Upstream, encode, recover
from amends.bindings.httpx import AsyncTransport, Transport
from amends.errors import RateLimitedError, ServiceUnavailableError
from amends.http.calls import accept_header
from amends.testing import FakeClock
from tests.http.flaky import answer_too_late, effect_unknown, run_once_per_key


class Sync:
    def __init__(self, module):
        self.module = module

    def call(self, method, url, *, client=None, **options):
        with self.module.Client(
            transport=Transport(**options), timeout=(client or {}).pop("timeout", 5)
        ) as session:
            return session.request(method, url, **(client or {}))


class Async(Sync):
    def call(self, method, url, *, client=None, **options):
        async def run():
            timeout = (client or {}).pop("timeout", 5)
            async with self.module.AsyncClient(
                transport=AsyncTransport(**options), timeout=timeout
            ) as session:
                return await session.request(method, url, **(client or {}))

        return asyncio.run(run())


@pytest.fixture(
    params=[(Sync, httpx2), (Sync, httpx), (Async, httpx2), (Async, httpx)],
    ids=["httpx2", "httpx", "httpx2-async", "httpx-async"],
)
def caller(request):
    kind, module = request.param
    return kind(module)


PROBLEM = {"title": "t", "status": 503, "detail": "d", "is_retriable": True}


def test_waits_as_asked_and_repeats_unchanged(caller, flaky, clock):
    """P9: a retriable failure with a wait is repeated unchanged after the wait; the last response is returned (P3)."""
    flaky.script["/a"] = [
        (429, {"retry-after": "9"}, {**PROBLEM, "retry_after_ms": 1500}),
        (503, {"retry-after": "2"}, None),
        200,
    ]
    response = caller.call("GET", f"{flaky.url}/a")
    assert isinstance(response, caller.module.Response)
    assert response.json() == {"fine": True}
    assert clock.waits == [1.5, 2.0]
    assert len(flaky.calls["/a"]) == 3


def test_what_cannot_be_retried_is_raised_with_everything(caller, flaky, clock):
    """P9: a failure that is not retriable raises a typed error with fault, response and decision, after one call."""
    flaky.script["/a"] = [
        (
            422,
            {},
            {
                "title": "No",
                "status": 422,
                "detail": "amount",
                "is_retriable": False,
                "suggestions": ["Add it"],
            },
        )
    ]
    with pytest.raises(FaultError) as caught:
        caller.call("POST", f"{flaky.url}/a", client={"json": {}})
    error = caught.value
    assert (error.fault.title, error.fault.suggestions, error.decision.action) == ("No", ("Add it",), "fix")
    assert error.response.status_code == 422
    assert error.response.json()["detail"] == "amount"
    assert len(flaky.calls["/a"]) == 1
    assert clock.waits == []


def test_the_last_response_can_be_returned(caller, flaky, clock):
    """`raises="nothing"` returns the last response after recovery, or raises the library's exception."""
    flaky.script["/a"] = [(503, {}, PROBLEM)]
    response = caller.call("GET", f"{flaky.url}/a", raises="nothing", policy=Policy(attempts=2))
    assert response.status_code == 503
    assert response.json() == PROBLEM
    assert len(flaky.calls["/a"]) == 2
    with pytest.raises(caller.module.ConnectError):
        caller.call("GET", "http://127.0.0.1:9/", raises="nothing", policy=Policy(attempts=1))


def test_unsafe_methods_carry_one_key(caller, flaky, clock):
    """POST and PATCH carry a key, the same on every attempt; other methods and `keys=False` carry none."""
    for method in ("POST", "PATCH", "PUT", "GET"):
        flaky.script[f"/{method}"] = [(429, {}, None), 200]
        caller.call(method, f"{flaky.url}/{method}")
        keys = {headers.get("idempotency-key") for _, headers, _ in flaky.calls[f"/{method}"]}
        assert len(keys) == 1
        assert (keys != {None}) == (method in {"POST", "PATCH"})
    caller.call("POST", f"{flaky.url}/x", keys=False)
    assert "idempotency-key" not in flaky.calls["/x"][0][1]
    caller.call("POST", f"{flaky.url}/own", client={"headers": {"Idempotency-Key": "mine"}})
    assert flaky.calls["/own"][0][1]["idempotency-key"] == "mine"


def test_a_lost_response_is_repeated_with_its_key_and_never_without(caller, flaky):
    """A POST that may have had its effect is repeated under a key that counts; otherwise the decision is `verify`."""
    flaky.script["/a"] = [answer_too_late, run_once_per_key]
    with FakeClock():
        response = caller.call("POST", f"{flaky.url}/a", client={"json": {}, "timeout": 0.3}, keyed=True)
    assert response.status_code == 201
    assert list(flaky.effects.values()) == [1]
    flaky.script["/b"] = [answer_too_late, run_once_per_key]
    with FakeClock(), pytest.raises(FaultError) as caught:
        caller.call("POST", f"{flaky.url}/b", client={"json": {}, "timeout": 0.3}, keys=False)
    assert caught.value.decision.action == "verify"
    # On a busy machine the request may time out before it arrives.
    assert len(flaky.calls["/b"]) <= 1


def test_a_read_only_operation_around_the_call_repeats_it(caller, flaky, clock):
    """A POST is repeated by an outer `recover` whose operation is declared read-only."""
    flaky.script["/search"] = [500, 200]
    search = Operation(name="search", read_only=True)
    url = f"{flaky.url}/search"
    response = recover(lambda: caller.call("POST", url, keys=False), operation=search)
    assert response.status_code == 200
    assert len(flaky.calls["/search"]) == 2


def test_a_stream_is_sent_once(caller, flaky, clock):
    """A request whose body can be read only once is not repeated."""
    flaky.script["/a"] = [(429, {"retry-after": "1"}, None), 200]

    def parts():
        yield b"one"

    async def aparts():
        yield b"one"

    body = aparts() if isinstance(caller, Async) else parts()
    with pytest.raises(RateLimitedError) as caught:
        caller.call("PUT", f"{flaky.url}/a", client={"content": body}, refresh=lambda: True)
    assert [content for _, _, content in flaky.calls["/a"]] == [b"one"]
    assert caught.value.decision.reason == "attempts"


def test_accept_asks_for_problems(caller, flaky):
    """`Accept` contains problem+json and what the caller asked for."""
    caller.call("GET", f"{flaky.url}/a")
    caller.call("GET", f"{flaky.url}/a", client={"headers": {"accept": "text/csv"}})
    first, second = (headers["accept"] for _, headers, _ in flaky.calls["/a"])
    assert first == accept_header(None)
    assert second == "text/csv, application/problem+json;q=0.9"


def test_verdicts_and_connection_failures(caller, flaky, clock):
    """`x-should-retry: false` is obeyed; a POST without a key is repeated if it was not sent."""
    flaky.script["/a"] = [(503, {"x-should-retry": "false"}, None)]
    with pytest.raises(ServiceUnavailableError):
        caller.call("GET", f"{flaky.url}/a")
    assert len(flaky.calls["/a"]) == 1
    with pytest.raises(FaultError) as caught:
        caller.call("POST", "http://127.0.0.1:9/", keys=False, policy=Policy(attempts=3))
    assert len(caught.value.history) == 3
    assert isinstance(caught.value.__cause__, caller.module.ConnectError)


def test_credentials_are_renewed_once(caller, flaky, clock):
    """After a 401 `refresh` is called, and the next attempt has the new headers."""
    token = ["old"]

    async def guarded(flaky, request):
        from starlette.responses import Response

        return Response(status_code=200 if request.headers["authorization"] == "new" else 401)

    flaky.script["/a"] = [guarded]
    response = caller.call(
        "GET",
        f"{flaky.url}/a",
        headers=lambda: {"Authorization": token[0]},
        refresh=lambda: token.__setitem__(0, "new"),
    )
    assert response.status_code == 200
    assert len(flaky.calls["/a"]) == 2


def test_one_hint_holds_for_all_of_an_upstream(caller, flaky, clock):
    """A shared `Upstream` keeps the wait of a response: the next attempt waits before it is sent."""
    upstream = Upstream("shop")
    flaky.script["/a"] = [(429, {"retry-after": "30"}, None), 200]
    caller.call("GET", f"{flaky.url}/a", upstream=upstream)
    assert upstream.snapshot().calls == 2
    assert clock.waited >= 30


def test_bodies_are_bounded_and_unpacked(caller, flaky, clock):
    """A compressed problem is read; a body that is too large or broken is not parsed, but returned complete."""
    import json

    packed = gzip.compress(json.dumps({**PROBLEM, "code": "MINE"}).encode())
    flaky.script["/a"] = [(400, {"content-encoding": "gzip"}, packed)]
    with pytest.raises(FaultError) as caught:
        caller.call("GET", f"{flaky.url}/a")
    assert caught.value.code == "MINE"
    flaky.script["/b"] = [(400, {"content-encoding": "gzip"}, b"this is not gzip")]
    with pytest.raises(FaultError) as caught:
        caller.call("GET", f"{flaky.url}/b")
    assert caught.value.code == "BAD_REQUEST"
    flaky.script["/c"] = [(400, {}, b'{"code":"MINE","detail":"' + b"x" * 3_000_000 + b'"}')]
    with pytest.raises(FaultError) as caught:
        caller.call("GET", f"{flaky.url}/c")
    assert caught.value.code == "BAD_REQUEST"
    whole = caller.call("GET", f"{flaky.url}/c", raises="nothing")
    assert len(whole.content) > 3_000_000


def test_the_operation_around_gives_key_and_deadline(flaky):
    """Inside `recover` the request carries the operation's key and the time left."""
    with httpx2.Client(transport=Transport()) as session:
        operation = Operation(name="order", key="order-17")
        recover(lambda: session.post(f"{flaky.url}/a"), operation=operation, policy=Policy(deadline=30))
    headers = flaky.calls["/a"][0][1]
    assert headers["idempotency-key"] == "order-17"
    assert 0 < float(headers["request-timeout"]) <= 30


def test_a_key_in_doubt_is_verified(caller, flaky, clock):
    """Design 8: after EFFECT_UNKNOWN nothing is repeated unless `verify` returns False."""
    flaky.script["/a"] = [effect_unknown]
    with pytest.raises(FaultError) as caught:
        caller.call("POST", f"{flaky.url}/a")
    assert caught.value.code == "EFFECT_UNKNOWN"
    assert caught.value.decision.action == "verify"
    assert len(flaky.calls["/a"]) == 1
    flaky.script["/b"] = [effect_unknown, run_once_per_key]
    assert caller.call("POST", f"{flaky.url}/b", verify=lambda fault: False).status_code == 201
    first, second = (headers["idempotency-key"] for _, headers, _ in flaky.calls["/b"])
    assert first != second
    mine = caller.module.Response(200, content=b"verified")
    assert caller.call("POST", f"{flaky.url}/a", verify=lambda fault: mine).content == b"verified"
    with pytest.raises(FaultError) as caught:
        caller.call("POST", f"{flaky.url}/a", verify=lambda fault: None)
    assert caught.value.code == "EFFECT_UNKNOWN"
    if isinstance(caller, Async):

        async def verify(fault):
            return mine

        assert caller.call("POST", f"{flaky.url}/a", verify=verify).content == b"verified"


def test_a_post_that_only_reads_is_repeated(flaky, clock):
    """Inside a read-only operation the transport repeats a POST without a key; outside it does not."""
    flaky.script["/search"] = [(500, {}, None), 200]
    search = Operation(name="search", read_only=True)
    with httpx2.Client(transport=Transport(keys=False)) as session:
        # The outer call makes one attempt, so that only the transport repeats.
        once = Policy(attempts=1, deadline=30)
        found = recover(lambda: session.post(f"{flaky.url}/search"), operation=search, policy=once)
        assert found.status_code == 200
        flaky.script["/buy"] = [(500, {}, None), 200]
        with pytest.raises(FaultError):
            session.post(f"{flaky.url}/buy")
    assert [len(flaky.calls[path]) for path in ("/search", "/buy")] == [2, 1]
    assert "idempotency-key" not in flaky.calls["/search"][0][1]


async def test_inner_transports_are_closed(flaky):
    """A transport works without a client, and closes the inner transport that it was given."""
    with Transport():
        pass
    async with AsyncTransport():
        pass
    with Transport() as bare:
        assert httpx2.Client(transport=bare).get(flaky.url).status_code == 200
    async with AsyncTransport() as bare:
        assert (await httpx2.AsyncClient(transport=bare).get(flaky.url)).status_code == 200
    closed = []

    class Inner(httpx2.HTTPTransport):
        def close(self):
            closed.append("sync")
            super().close()

    class AsyncInner(httpx2.AsyncHTTPTransport):
        async def aclose(self):
            closed.append("async")
            await super().aclose()

    Transport().close()
    Transport(Inner()).close()
    await AsyncTransport().aclose()
    await AsyncTransport(AsyncInner()).aclose()
    assert closed == ["sync", "async"]


def test_options_are_checked():
    """An invalid value of `raises` raises ValueError."""
    with pytest.raises(ValueError):
        Transport(raises="ignore")


class SeatTaken(FaultError):
    """The seat is taken"""

    code = "TEST_SEAT_TAKEN"
    recovery = "correctable"
    status = 409


def test_an_own_code_is_raised_as_its_own_class(flaky, caller):
    """A client that imports the server's error classes receives the same class."""
    flaky.script["/seats"] = [(409, {}, encode(SeatTaken("12A is taken").fault, "problem"))]
    with pytest.raises(SeatTaken) as caught:
        caller.call("GET", flaky.url + "/seats")
    assert caught.value.fault.status == 409
    assert caught.value.response.status_code == 409


def test_the_upstream_learns_what_an_answer_still_allows():
    """`RateLimit` of successful and failed answers is reported to an Upstream that paces its calls."""
    reported = []

    class Pacing(Upstream):
        def note_limits(self, found, now, sent, *, ok=True):
            reported.extend((limit.remaining, limit.reset, ok) for limit in found)

    answers = httpx2.MockTransport(
        lambda request: httpx2.Response(200, headers={"RateLimit": '"default";r=50;t=30'})
    )
    with httpx2.Client(transport=Transport(answers, upstream=Pacing())) as client:
        client.get("https://example.com/")
    assert reported == [(50, 30.0, True)]
