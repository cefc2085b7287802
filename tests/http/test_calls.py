"""The rules of a request that all client bindings share: keys, repeatability, headers, attempts, and the end."""

import ssl
from inspect import isawaitable

import httpx2
import pytest
from msgspec.structs import replace

from amends import Fault, FaultError, Operation, Policy, Upstream, recover
from amends.errors import RateLimitedError
from amends.http.call_bodies import late_body_error
from amends.http.calls import (
    DEADLINE,
    TRACE,
    Call,
    CallOptions,
    accept_header,
    error_from_response,
    is_effect_unknown,
    mistakes_pass,
    raise_if_mistake,
)
from amends.http.key_support import KEY, KeySupport
from amends.http.request_info import RequestInfo
from amends.http.responses import Settings, error_response
from amends.recovery.effect_context import running_as
from amends.recovery.scope import SCOPE, Scope
from amends.serving.effect_unknown import EFFECT_UNKNOWN, EffectUnknownError
from amends.testing import FakeClock

ORIGIN = "https://shop.example"


def call(
    method="POST",
    *,
    headers=None,
    replayable=True,
    redirected=False,
    key=None,
    path="/pay",
    content=None,
    **options,
):
    options.setdefault("support", KeySupport())
    return Call(
        CallOptions(**options),
        method=method,
        origin=ORIGIN,
        path=path,
        headers=httpx2.Headers(headers or {}),
        replayable=replayable,
        redirected=redirected,
        key=key,
        content=content,
    )


class Inside:
    """Runs the block inside an operation."""

    def __init__(self, operation, until=None):
        self.scope = Scope(operation, until)

    def __enter__(self):
        self.token = SCOPE.set(self.scope)

    def __exit__(self, *_):
        SCOPE.reset(self.token)


def test_which_requests_get_a_key():
    """POST and PATCH get a new key, unless keys are off or the body can be sent only once."""
    assert call("post").key is not None
    assert call("PATCH").key is not None
    assert call("POST").key != call("POST").key
    assert call("PUT").key is None
    assert call("GET").key is None
    assert call(keys=False).key is None
    assert call(replayable=False).key is None
    assert call(headers={KEY: "mine"}).key == "mine"
    assert call("PUT", headers={KEY: "mine"}).key == "mine"
    assert call(headers={KEY: ""}).key != ""
    assert call(headers={KEY: "mine"}, key="other").key == "other"


def test_the_key_of_the_operation_around():
    """The operation's key is sent, but not to an origin that redirected the request, and not by a PUT."""
    with Inside(Operation(key="outer")):
        assert call().key == "outer"
        assert call().operation.repeatable
        assert call(redirected=True).key not in {"outer", None}
        assert call("PUT").key is None
    with Inside(Operation(read_only=True)):
        assert call().key is not None


def test_the_key_of_the_running_effect():
    """A request inside an effect has a key of the effect; it is no promise of the user's."""
    with running_as("effect-1"):
        first = call()
    with running_as("effect-1"):
        again = call(replayable=False)
    assert first.key == again.key
    assert not first.operation.repeatable


@pytest.mark.parametrize(
    ("made", "repeatable"),
    [
        ({}, False),
        ({"keyed": True}, True),
        ({"keyed": False, "headers": {KEY: "k"}}, False),
        ({"headers": {KEY: "k"}}, True),
        ({"headers": {KEY: "k"}, "redirected": True}, False),
        ({"keyed": True, "redirected": True}, False),
        ({"upstream": Upstream("a", keyed=True)}, True),
        ({"upstream": Upstream("a", keyed=False), "headers": {KEY: "k"}}, False),
        ({"upstream": Upstream("a", keyed=True), "keyed": False}, False),
        ({"keyed": True, "keys": False}, False),
        ({"method": "GET"}, True),
        ({"method": "PUT"}, True),
    ],
)
def test_which_requests_may_be_repeated(made, repeatable):
    """A key makes a request repeatable only if the service is known to honour keys; the user's word comes first."""
    found = call(**made)
    assert found.operation.repeatable is repeatable
    assert (found.operation.key is not None) is (repeatable and found.method == "POST")


def test_a_proof_makes_a_waiting_request_repeatable():
    """The operation of a request asks again at every failure whether the service has proved that it honours keys."""
    support = KeySupport()
    found = call(support=support, headers={"Content-Length": "10"})
    other = call(support=support)
    assert not found.operation.repeatable
    found.answered(500, httpx2.Headers({KEY: found.key}))
    assert not other.operation.repeatable
    found.answered(200, httpx2.Headers({KEY: found.key}))
    assert other.operation.repeatable
    assert not found.operation.repeatable
    assert call(support=support).operation.key is not None
    # It sent the key back before; a success without the key disproves it, a failure does not.
    found.answered(300, httpx2.Headers())
    found.answered(199, httpx2.Headers())
    assert support.proved(ORIGIN, "/pay", other.key)
    found.answered(200, httpx2.Headers())
    assert not support.proved(ORIGIN, "/pay", other.key)


def test_a_proof_holds_for_the_size_of_the_request():
    """The size of a body is that of its header; one that is no number counts as none."""
    assert call(headers={"Content-Length": "2000000"}).size == 2_000_000
    assert call(headers={"Content-Length": "x"}).size == 0
    assert call().size == 0
    support = KeySupport()
    found = call(support=support)
    found.answered(200, httpx2.Headers({KEY: found.key}))
    assert not call(support=support, headers={"Content-Length": "2000000"}).operation.repeatable


def test_the_operation_around_decides_over_the_method():
    """A POST inside a read-only or idempotent operation may be repeated."""
    for outer in (Operation(read_only=True), Operation(idempotent=True)):
        with Inside(outer):
            found = call().operation
        assert found.repeatable
        assert (found.read_only, found.idempotent) == (outer.read_only, outer.idempotent)
    assert found.name == "POST shop.example"
    assert found.url == f"{ORIGIN}/pay"


def test_routes_that_compute_are_read_only():
    """A chat with a model is repeatable without a key, if its body can be read and names nothing that acts."""

    def operation(path, body=b'{"messages": []}', **options):
        return call(path=path, content=lambda: (f"{ORIGIN}{path}", body), **options).operation

    chat = "/v1/chat/completions"
    assert operation(chat, vendor="openai").read_only
    assert operation(chat, upstream=Upstream("a", vendor="openai")).read_only
    assert not operation("/v1/files", vendor="openai").read_only
    assert not operation(chat, b'{"tools": [{"type": "mcp"}]}', vendor="openai").read_only
    assert not call(vendor="openai", path=chat).operation.read_only
    with pytest.raises(LookupError):
        call(vendor="no-such-vendor")


def test_the_headers_of_an_attempt():
    """Accept, key, trace and deadline are added; each attempt has a new span of the same trace."""
    with FakeClock() as clock:
        found = call(headers={KEY: "k", "Accept": "text/csv"})
        assert (found.made, found.left) == (0, None)
        first = found.attempt_headers()
        assert first[KEY] == "k"
        assert first["Accept"].startswith("text/csv, ")
        assert DEADLINE not in first
        with Inside(Operation(), until=clock.now() + 5):
            second = found.attempt_headers()
        assert (found.made, second[DEADLINE]) == (2, "5.000")
        assert first[TRACE].split("-")[1] == second[TRACE].split("-")[1] == found.operation.trace_id
        assert first[TRACE] != second[TRACE]
        clock.advance(2)
        assert found.left == 3
        assert found.elapsed.total_seconds() == 2
        clock.advance(9)
        assert found.left == 0
    given = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    own = call(headers={TRACE: given}, keys=False)
    assert TRACE not in own.attempt_headers()
    assert KEY not in own.attempt_headers()
    assert own.operation.trace_id == "a" * 32


def test_headers_of_the_transport_go_to_its_first_origin_only():
    """Credentials are asked for at every attempt, and are not sent to an origin that was called later."""
    options = CallOptions(headers=lambda: {"Authorization": "a"}, pinned=[])

    def to(origin):
        return Call(options, method="GET", origin=origin, path="/", headers=httpx2.Headers(), replayable=True)

    assert to(ORIGIN).attempt_headers()["Authorization"] == "a"
    assert "Authorization" not in to("https://other.example").attempt_headers()
    assert to(ORIGIN).attempt_headers()["Authorization"] == "a"


def test_upstreams_per_origin():
    """Requests to one origin share an Upstream unless the transport has credentials of its own."""
    assert call("GET").upstream is call("GET").upstream
    refreshing = call("GET", refresh=lambda: None)
    assert refreshing.upstream is not call("GET").upstream
    assert call("GET", headers={}, refresh=None).upstream is call("GET").upstream
    own = CallOptions(headers=dict)
    assert replace(own, pinned=[]).number == own.number != CallOptions().number
    assert call("GET", upstream=None).upstream is None
    mine = Upstream("mine")
    assert call("GET", upstream=mine).upstream is mine


def test_the_options_of_recover():
    """A request whose body is gone gets one attempt and no refresh; time that has passed shortens the deadline."""
    policy = Policy(attempts=4, deadline=10.0)
    found = call(policy=policy, refresh=print, verify=print)
    options = found.recover_options()
    assert (options["policy"], options["refresh"]) == (policy, print)
    assert options["verify"] is not None
    assert options["operation"] is found.operation
    assert found.recover_options(4.0)["policy"].deadline == 4.0
    assert found.recover_options(-1.0)["policy"].deadline == 0.001
    once = call(policy=policy, refresh=print, replayable=False).recover_options()
    assert (once["policy"].attempts, once["policy"].rules, once["refresh"], once["verify"]) == (
        1,
        {},
        None,
        None,
    )
    assert call().recover_options(4.0)["policy"].deadline is None


def test_verify_inside_and_after_recovery():
    """Recovery asks `verify` about any failure except EFFECT_UNKNOWN, which is asked about at the end."""
    asked = []
    found = call(verify=lambda fault: asked.append(fault.code) or "done")
    verify = found.recover_options()["verify"]
    assert verify(Fault(code="TIMEOUT")) == "done"
    assert verify(Fault(code=EFFECT_UNKNOWN)) is None
    assert asked == ["TIMEOUT"]
    assert call(verify=lambda: "bare").recover_options()["verify"](Fault(code="TIMEOUT")) == "bare"


async def awaited(value):
    return await value if isawaitable(value) else value


def unknown():
    return FaultError.from_fault(Fault(code=EFFECT_UNKNOWN, status=409))


@pytest.mark.parametrize(
    ("verified", "expected"), [("paid", "paid"), (0, 0), (False, "sent again"), (None, FaultError)]
)
async def test_resolving_an_unknown_effect(verified, expected):
    """False: the request is sent again with a new key. None: the error is raised. Else: the result of `verify`."""
    sent = []

    async def averify(fault):
        return verified

    async def aresend(options, key):
        return resend(options, key)

    def resend(options, key):
        sent.append((options.verify, key))
        return "sent again"

    error = unknown()

    for resolve in (
        lambda: call(verify=lambda fault: verified).resolve(error, resend),
        lambda: call(verify=averify).aresolve(error, aresend),
    ):
        if expected is FaultError:
            with pytest.raises(FaultError) as raised:
                await awaited(resolve())
            assert raised.value is error
        else:
            assert await awaited(resolve()) == expected
        assert (error.decision.action.value, error.decision.reason) == ("verify", "effect-unknown")
    assert len(sent) == (2 if verified is False else 0)
    assert all(options is None and key for options, key in sent)


async def test_resolving_other_failures():
    """Without `verify`, and after other failures, the call ends as `raises` says; `own` marks the error."""
    verified = []
    for error in (unknown(), FaultError.from_fault(Fault(code="TIMEOUT"))):
        with pytest.raises(FaultError):
            call(own=True).resolve(error, None)
        assert error.own
        with pytest.raises(FaultError):
            await call().aresolve(error, None)
        assert error.own
    timeout = FaultError.from_fault(Fault(code="TIMEOUT"))
    with pytest.raises(FaultError):
        call(verify=verified.append).resolve(timeout, None)
    with pytest.raises(FaultError):
        await call(verify=verified.append).aresolve(timeout, None)
    assert (verified, timeout.own) == ([], False)
    response = httpx2.Response(503)
    failed = error_from_response(503, response.headers, b"", response)
    assert call(raises="nothing").resolve(failed, None) is response
    with pytest.raises(ValueError, match="raises"):
        call(raises="something")


def test_the_error_of_an_answer():
    """An answer without a readable body has its status; EFFECT_UNKNOWN is never repeated, and proves nothing."""
    found = call()
    error = found.error(503, httpx2.Headers(), None, "response")
    assert (error.fault.status, error.response) == (503, "response")
    assert (found.take_failed(), found.take_failed()) == ("response", None)
    assert not found.operation.repeatable
    answer = error_response(EffectUnknownError().fault, RequestInfo(), Settings())
    headers, problem = httpx2.Headers(answer.headers), answer.body
    error = found.error(409, headers, problem, None)
    assert (error.fault.code, error.fault.max_retries) == (EFFECT_UNKNOWN, 0)
    assert not found.operation.repeatable
    assert is_effect_unknown(error)
    assert not is_effect_unknown(late_body_error())
    assert not found.options.support.proved(ORIGIN, "/pay", "other")


def test_failures_inside_successful_answers():
    """A GraphQL error is a failure; one beside data is a remark; other services are not looked into."""
    json = httpx2.Headers({"content-type": "application/json"})
    failed = b'{"errors": [{"message": "no", "extensions": {"code": "UNAUTHENTICATED"}}]}'
    error = call(path="/graphql").failure_inside(200, json, failed, "response")
    assert error.response == "response"
    assert error.fault.code
    assert call(path="/graphql").failure_inside(200, json, b'{"data": {}}', None) is None
    assert call(path="/rest").failure_inside(200, json, failed, None) is None


def test_limits_in_the_headers_reach_the_upstream():
    """An answer that says how many calls or tokens are left is passed on to the Upstream."""
    upstream = Upstream("a")
    found = call(upstream=upstream)
    found.answered(200, httpx2.Headers())
    assert upstream.snapshot().limits == {}
    found.answered(200, httpx2.Headers({"RateLimit-Remaining": "0", "RateLimit-Reset": "7"}))
    assert list(upstream.snapshot().limits.values()) == [0.0]
    names = {"x-ratelimit-remaining-tokens": "900", "x-ratelimit-reset-tokens": "6s"}
    found.answered(200, httpx2.Headers(names))
    assert upstream.snapshot().limits["tokens"] == 900.0
    call(upstream=None).answered(200, httpx2.Headers({"RateLimit-Remaining": "0", "RateLimit-Reset": "7"}))


async def test_failed_responses_that_are_kept_open():
    """They are closed once, by the next attempt or at the end."""
    closed = []

    async def aclose():
        closed.append("async")

    found = call()
    found.kept_open.append(lambda: closed.append("sync"))
    found.release()
    found.release()
    found.kept_open.append(aclose)
    await found.arelease()
    await found.arelease()
    assert closed == ["sync", "async"]


def test_accept():
    """Problem details are added once."""
    assert accept_header(None) == accept_header("") == accept_header(" */* ")
    given = "application/problem+json;q=0.5"
    assert accept_header(given) == given
    assert accept_header("text/csv").endswith("application/problem+json;q=0.9")


def test_the_operation_is_used_by_recover():
    """A request that is not repeatable is sent once after a failure that may have had an effect."""
    sent = []

    def send():
        sent.append(1)
        raise late_body_error()

    for made, times in [(call(), 1), (call(keyed=True), 3)]:
        sent.clear()
        with FakeClock(), pytest.raises(FaultError):
            recover(send, policy=Policy(attempts=3), operation=made.operation)
        assert len(sent) == times


class MineError(Exception):
    """An exception of a client's library."""


@pytest.mark.parametrize(
    "error", [ValueError("a"), TypeError("a"), KeyError("a"), AssertionError(), MineError()]
)
def test_a_mistake_passes_through_every_handler_of_exceptions(error):
    """`except Exception` around the attempt does not handle it; the block raises it as it is."""
    with pytest.raises(type(error)) as caught, mistakes_pass():
        try:
            raise_if_mistake(error, (MineError,))
        except Exception:
            pytest.fail("the mistake was handled")
    assert caught.value is error


class RefusedError(FaultError, ValueError):
    """An error of the application that is a ValueError too."""


@pytest.mark.parametrize(
    "error",
    [OSError(), ssl.SSLCertVerificationError(), RateLimitedError(), RefusedError("no", code="CONFLICT")],
)
def test_a_failure_is_no_mistake(error):
    """A failed connection, a bad certificate and typed errors are left to recovery."""
    with mistakes_pass():
        raise_if_mistake(error)
