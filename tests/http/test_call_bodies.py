"""Bodies of answers: limits in bytes and time, breaks, and failures inside the stream of a model."""

import asyncio

import httpx2
import pytest

from amends import FaultError, Operation, Policy, Upstream
from amends.core.enums import Action
from amends.errors import ServiceUnavailableError
from amends.http import call_bodies
from amends.http.call_bodies import (
    ENCODED_LIMIT,
    LIMIT,
    PEEKED,
    SECONDS,
    BodyReading,
    FailedBody,
    WatchedBody,
    broken_body_error,
    in_time,
    service_of,
)
from amends.http.calls import Call, CallOptions
from amends.recovery.scope import SCOPE, Scope
from amends.testing import FakeClock
from amends.vendors import NAMES
from amends.vendors.registry import file_of, vendor_of_host, vendor_of_origin
from amends.vendors.watch import StreamWatch

OUTPUT = b'data: {"choices": [{"delta": {"content": "Hi"}}]}\n\n'
FAILURE = b'data: {"error": {"type": "overloaded_error", "message": "x"}}\n\n'


@pytest.fixture
def clock():
    with FakeClock() as fake:
        yield fake


@pytest.fixture
def five_seconds(clock):
    """An operation with five seconds left."""
    token = SCOPE.set(Scope(Operation(), clock.now() + 5))
    yield clock
    SCOPE.reset(token)


def call(method="GET", **options):
    return Call(
        CallOptions(**options),
        method=method,
        origin="https://shop.example",
        path="/",
        headers=httpx2.Headers(),
        replayable=True,
    )


def begun(**options):
    """Return a call whose first attempt has begun."""
    begun = call(**options)
    begun.attempt_headers()
    return begun


def reading_of(call):
    return BodyReading(call, call.until)


def test_a_failed_body_is_read_up_to_its_limit(clock):
    """A compressed body has a smaller limit; the limit itself may be reached."""
    for encoded, limit in [(False, LIMIT), (True, ENCODED_LIMIT)]:
        body = FailedBody(call(), encoded=encoded)
        assert body.add(b"a" * (limit - 1))
        assert body.add(b"b")
        assert not body.add(b"c")
        assert (body.size, len(b"".join(body.parts)), body.parts[1:]) == (limit + 1, limit + 1, [b"b", b"c"])
        assert not body.complete


async def parts(*parts):
    for part in parts:
        yield part


def test_a_failed_body_is_complete_within_its_bounds(clock):
    """Also an empty one; a larger one is read up to its limit."""
    for large in (False, True):
        source = [b"a" * (LIMIT - 1), b"bc" if large else b"b", b""]
        body, abody = FailedBody(call(), encoded=False), FailedBody(call(), encoded=False)
        body.read(iter(source))
        asyncio.run(abody.aread(parts(*source)))
        assert (body.complete, abody.complete) == (not large, not large)
        assert body.parts == abody.parts == source[: 2 if large else 3]


def test_a_failed_body_is_read_for_a_while(clock):
    """Reading ends after SECONDS."""
    body = FailedBody(call(), encoded=False)
    assert body.left == SECONDS
    clock.advance(SECONDS - 1)
    assert body.add(b"a")
    assert body.left == 1
    clock.advance(1)
    assert not body.add(b"a")
    clock.advance(1)
    assert body.left == 0


def test_the_deadline_is_earlier(five_seconds):
    """The deadline of the operation ends the reading of both kinds of bodies; `slack` makes it earlier."""
    body, reading = FailedBody(begun(), encoded=False), reading_of(begun())
    assert (body.left, reading.left) == (5, 5)
    five_seconds.advance(4)
    reading.check_time()
    assert reading.left == 1
    with pytest.raises(FaultError) as late:
        reading.check_time(slack=1.0)
    assert (late.value.fault.code, late.value.fault.executed) == ("TIMEOUT", "maybe")
    five_seconds.advance(1)
    with pytest.raises(FaultError):
        reading.check_time()
    five_seconds.advance(1)
    assert reading.left == 0


def test_errors_near_the_deadline(five_seconds):
    """An error that ends a read at the deadline, or up to SLACK before it, is a time-out."""
    reading, error = reading_of(begun()), ConnectionError("a")
    five_seconds.advance(5 - 2 * call_bodies.SLACK)
    assert in_time(error, reading) is error
    five_seconds.advance(1.5 * call_bodies.SLACK)
    late = in_time(error, reading)
    assert (late.fault.code, late.__cause__) == ("TIMEOUT", error)


def test_without_a_deadline(clock):
    """Without a deadline a body may take any time."""
    reading = BodyReading(call())
    clock.advance(1e6)
    reading.check_time()
    assert reading.left is None


def test_a_body_that_breaks_off(clock):
    """A streamed body raises a typed error with a decision, and the Upstream learns of the failure."""
    upstream, failed = Upstream("a"), []
    upstream.failed = lambda fault, *_: failed.append(fault)
    reading = BodyReading(call(upstream=upstream, policy=Policy(attempts=3)))
    reading.call.attempt_headers()
    error = ConnectionResetError("a")
    typed = reading.broke(error)
    assert isinstance(typed, FaultError)
    assert typed.__cause__ is error
    assert typed.decision.action is Action.RETRY
    assert failed == [typed.fault]
    own = ServiceUnavailableError()
    assert reading.broke(own) is own
    assert own.__cause__ is None
    assert own.decision is not None


def test_the_decision_about_a_broken_body_counts_the_attempts(clock):
    """When all attempts were used, the decision is to give up."""
    reading = BodyReading(call(upstream=None, policy=Policy(attempts=1)))
    reading.call.attempt_headers()
    assert reading.broke(ConnectionResetError("a")).decision.action is Action.ESCALATE


def test_what_a_broken_body_raises(clock):
    """`raises` decides: the library's exception as it is, or with the fault; a whole body is left to the binding."""
    error = ConnectionResetError("a")
    whole = BodyReading(call(upstream=None))
    whole.whole = True
    assert whole.broke(error) is error
    assert not hasattr(error, "fault")
    assert BodyReading(call(upstream=None, raises="nothing")).broke(error) is error
    assert not hasattr(error, "fault")
    assert BodyReading(call(upstream=None, raises="original")).broke(error) is error
    assert error.fault.code
    assert error.decision is not None


def test_a_broken_body_counts_the_attempts_before():
    """The fault has the number of attempts if there was more than one."""
    error = ConnectionResetError("a")
    once, twice = broken_body_error(error, 1), broken_body_error(error, 2)
    assert (once.fault.attempt, twice.fault.attempt) == (None, 2)
    assert once.__cause__ is error
    own = ServiceUnavailableError()
    assert broken_body_error(own, 3) is own
    assert (own.fault.attempt, own.__cause__) == (3, None)


def watched(raises="fault"):
    return WatchedBody(StreamWatch(), call(upstream=None, raises=raises))


def test_peeking_into_a_stream():
    """Parts are read until the first output, a failure, or PEEKED bytes."""
    body = watched()
    assert body.peeking
    body.add(b": comment\n\n")
    assert body.peeking
    body.add(OUTPUT)
    assert not body.peeking
    assert (body.early(), body.size) == (None, 11 + len(OUTPUT))
    failed = watched()
    failed.add(FAILURE)
    assert not failed.peeking
    assert failed.early().fault.code == "OVERLOADED"
    assert b"".join(failed.parts) == b""
    long = watched()
    long.add(b": " + b"a" * (PEEKED - 3))
    assert long.peeking
    long.add(b"a")
    assert not long.peeking
    assert long.early() is None


def test_a_failure_without_a_line_end():
    """A stream that ends with an unfinished line is looked at when it ends."""
    body = watched()
    body.add(FAILURE.strip())
    assert body.early().fault.code == "OVERLOADED"


async def test_a_failure_after_the_first_output():
    """What comes before the failure is delivered, then the typed error with the number of events is raised."""
    for parts in ([FAILURE], [FAILURE.strip()], [OUTPUT + FAILURE]):
        for mode in ("sync", "async"):
            body, got = watched(), []
            body.add(OUTPUT)
            with pytest.raises(FaultError) as raised:
                if mode == "sync":
                    got.extend(body.rest(iter(parts)))
                else:
                    async for part in body.arest(stream(parts)):
                        got.append(part)
            assert raised.value.fault.code == "OVERLOADED"
            assert raised.value.delivered == 1 + parts[0].count(OUTPUT)


async def test_a_failure_in_the_peeked_part():
    """Output and failure in one part: the failure is raised when the rest is read."""
    body = watched()
    body.add(OUTPUT + FAILURE)
    assert body.early() is None
    assert b"".join(body.parts) == OUTPUT
    with pytest.raises(FaultError):
        list(body.rest(iter([])))
    with pytest.raises(FaultError):
        [part async for part in body.arest(stream([]))]


async def test_nothing_is_raised_if_the_library_reads_the_failure():
    """With raises="nothing" the failure stays in the stream."""
    body = watched("nothing")
    body.add(OUTPUT + FAILURE)
    assert b"".join(body.parts) == OUTPUT + FAILURE
    assert list(body.rest(iter([FAILURE, FAILURE.strip()]))) == [FAILURE, FAILURE.strip()]
    assert [part async for part in body.arest(stream([FAILURE]))] == [FAILURE]


async def stream(parts):
    for part in parts:
        yield part


@pytest.mark.parametrize(
    ("name", "path", "computes"),
    [
        ("openai", "/v1/chat/completions", True),
        ("openai", "/v1/responses", True),
        ("openai", "/v1/responses/resp_1/cancel", False),
        ("openai", "/v1/files", False),
        ("anthropic", "/v1/messages", True),
        ("anthropic", "/v1/messages/batches", False),
        ("google", "/v1beta/models/gemini-2.5-flash:streamGenerateContent", True),
        ("aws", "/model/m/converse-stream", True),
        ("aws", "/2015-03-31/functions/f/invocations", False),
        ("elevenlabs", "/v1/text-to-speech/voice", True),
        ("elasticsearch", "/index/_search", True),
        ("stripe", "/v1/charges", False),
    ],
)
def test_routes_that_only_compute(name, path, computes):
    """Only POST to such a route: a route below or beside it may have an effect."""
    assert service_of(name, "http://localhost", path, "POST").computes is computes
    assert not service_of(name, "http://localhost", path, "DELETE").computes


def test_every_host_names_a_vendor():
    """The names are those of the tables."""
    hosts = {host for name in NAMES for host in file_of(name).get("is", {}).get("hosts", ())}
    assert len(hosts) >= 90
    assert {
        vendor_of_host(host.removeprefix(".").replace("*", "x")) for host in hosts if host[0] != "."
    } <= set(NAMES)


def test_hosts_are_matched_whole():
    """A host that only ends like a vendor's is another one; without TLS nothing is known."""
    assert vendor_of_host("acme.zendesk.com") == "zendesk"
    assert vendor_of_host("bedrock-runtime.us-east-1.amazonaws.com") == "aws"
    assert vendor_of_host("us-central1-aiplatform.googleapis.com") == "google"
    assert vendor_of_host("lambda.us-east-1.amazonaws.com") is None
    assert vendor_of_host("notslack.com") is None
    assert vendor_of_host("") is None
    assert vendor_of_origin("http://api.stripe.com") is None
    assert vendor_of_origin("https://api.stripe.com:8443") is None
    assert vendor_of_origin("https://[") is None


def test_the_header_of_a_key_is_the_vendor_s():
    """PayPal has one of its own."""
    assert (
        service_of(None, "https://api-m.paypal.com", "/v2/checkout/orders", "POST").key_header
        == "PayPal-Request-Id"
    )
    assert service_of(None, "https://api.stripe.com", "/v1/charges", "POST").key_header == "Idempotency-Key"


def test_successful_answers_are_looked_into_by_type_and_size():
    """A download is left alone, and so is a body above the bound."""
    service = service_of("slack", "https://x", "/", "POST")
    refused = b'{"ok": false, "error": "ratelimited"}'
    assert service.failure(200, {"content-type": "application/json"}, refused).code == "RATE_LIMITED"
    assert service.failure(200, {"content-type": "image/png"}, refused) is None
    assert service.failure(200, {}, refused + b" " * 2_000_000) is None
    assert service.failure(204, {}, b"") is None
    assert service_of(None, "https://x", "/", "GET").failure(200, {}, refused) is None
    assert not service_of("kubernetes", "https://x", "/", "GET").inspected


def test_where_a_failure_inside_a_success_is_looked_for():
    """In answers from 200 to 299 of known services, with a body of a known kind."""
    slack = service_of("slack", "https://slack.com", "/api/chat.postMessage", "POST")
    body, headers = b'{"ok": false, "error": "ratelimited"}', {"content-type": "application/json"}
    assert slack.failure(200, headers, body).code == "RATE_LIMITED"
    for status in (199, 300):
        assert slack.failure(status, headers, body) is None
    assert slack.failure(200, {"content-type": "image/png"}, body) is None
    assert slack.failure(200, headers, b"") is None


@pytest.mark.parametrize(
    ("path", "status", "headers", "watched"),
    [
        ("/v1/chat/completions", 200, {"content-type": "text/event-stream"}, True),
        ("/v1/files", 200, {"content-type": "text/event-stream"}, False),
        ("/v1/chat/completions", 202, {"content-type": "text/event-stream"}, False),
        ("/v1/chat/completions", 200, {"content-type": "application/pdf"}, False),
        (
            "/v1/chat/completions",
            200,
            {"content-type": "text/event-stream", "content-encoding": "gzip"},
            False,
        ),
    ],
)
def test_which_answers_are_watched_streams(path, status, headers, watched):
    """Those of routes that only compute, not compressed."""
    service = service_of("openai", "https://api.openai.com", path, "POST")
    assert (service.watch(status, headers) is not None) is watched


def test_the_limits_of_bodies():
    """One MiB; of a compressed body and in search of a stream's first output 64 KiB (docs/http-clients.md)."""
    assert (LIMIT, ENCODED_LIMIT, PEEKED) == (2**20, 2**16, 2**16)
