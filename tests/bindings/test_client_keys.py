"""A key makes a request repeatable only if the service is known to honour keys: all clients, against a real server."""

import asyncio
import io

import aiohttp
import httpx
import httpx2
import pytest
from starlette.responses import Response

from amends import FaultError, Operation, Policy, Upstream, recover
from amends.bindings.httpx import Transport
from amends.errors import RateLimitedError
from amends.http.call_bodies import LIMIT
from amends.testing import FakeClock
from tests.bindings.clients import client  # noqa: F401 - a fixture
from tests.http.flaky import answer_too_late, effect_unknown, run_once_per_key


async def order_again(flaky, request):
    """Have the effect at every request: the service ignores keys."""
    flaky.effects["orders"] += 1
    return Response(b'{"done":true}', 201)


async def order_and_lose_the_answer(flaky, request):
    """Have the effect, and answer after the client's time-out."""
    flaky.effects["orders"] += 1
    await asyncio.sleep(2)
    return Response(b"late")


def echo(status=201, headers=()):
    """Have the effect once per key, and send the key back."""

    async def respond(flaky, request):
        found = await run_once_per_key(flaky, request)
        found.status_code = status
        found.headers["Idempotency-Key"] = request.headers["idempotency-key"]
        found.headers.update(dict(headers))
        return found

    return respond


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_a_lost_answer_is_not_repeated_at_a_service_that_ignores_keys(client, flaky, method):  # noqa: F811
    """One lost answer at an unknown service is one order and the decision `verify`, although a key was sent."""
    flaky.script["/orders"] = [order_and_lose_the_answer, order_again]
    with FakeClock(), pytest.raises(FaultError) as caught:
        client.call(method, f"{flaky.url}/orders", json={}, timeout=0.4)
    assert caught.value.decision.action == "verify"
    assert flaky.effects["orders"] <= 1
    assert len(flaky.calls["/orders"]) <= 1


@pytest.mark.parametrize("status", [500, 502, 503, 504, 408])
def test_a_failure_that_may_have_had_its_effect_is_not_repeated(client, flaky, clock, status):  # noqa: F811
    """500, 502, 503, 504 and 408 of a POST to an unknown service: the decision is `verify` after one call."""
    flaky.script["/orders"] = [(status, {"retry-after": "1"} if status == 503 else {}, None), order_again]
    with pytest.raises(FaultError) as caught:
        client.call("POST", f"{flaky.url}/orders", json={})
    assert caught.value.decision.action == "verify"
    assert len(flaky.calls["/orders"]) == 1


@pytest.mark.parametrize("status", [429, 425])
def test_a_refusal_without_effect_is_repeated(client, flaky, clock, status):  # noqa: F811
    """429 and 425 had no effect: a POST to an unknown service is repeated, with the same key."""
    flaky.script["/orders"] = [(status, {}, None), order_again]
    assert client.call("POST", f"{flaky.url}/orders", json={}).status == 201
    assert len({headers["idempotency-key"] for _, headers, _ in flaky.calls["/orders"]}) == 1


@pytest.mark.parametrize(
    "options",
    [{"keyed": True}, {"upstream": Upstream("shop", keyed=True)}],
    ids=["transport", "upstream"],
)
def test_the_user_says_that_the_service_honours_keys(client, flaky, clock, options):  # noqa: F811
    """`keyed=True` on the transport or its Upstream: a POST that failed with 500 is repeated with its key."""
    flaky.script["/orders"] = [500, run_once_per_key]
    assert client.call("POST", f"{flaky.url}/orders", json={}, options=dict(options)).status == 201
    assert len({headers["idempotency-key"] for _, headers, _ in flaky.calls["/orders"]}) == 1


def test_a_key_set_by_hand_counts(client, flaky, clock):  # noqa: F811
    """A key header that the caller set says that the service honours keys; `keyed=False` says that it does not."""
    flaky.script["/orders"] = [500, run_once_per_key]
    mine = {"Idempotency-Key": "order-17"}
    assert client.call("POST", f"{flaky.url}/orders", json={}, headers=mine).status == 201
    assert [headers["idempotency-key"] for _, headers, _ in flaky.calls["/orders"]] == ["order-17"] * 2
    flaky.script["/other"] = [500, run_once_per_key]
    with pytest.raises(FaultError) as caught:
        client.call("POST", f"{flaky.url}/other", json={}, headers=mine, options={"keyed": False})
    assert caught.value.decision.action == "verify"


def test_the_key_of_the_operation_around_counts(client, flaky, clock):  # noqa: F811
    """`Operation(keyed=True)` around the call says that the service honours keys."""
    flaky.script["/orders"] = [500, run_once_per_key]
    once = Policy(attempts=1, deadline=30)
    reply = recover(
        lambda: client.call("POST", f"{flaky.url}/orders", json={}),
        operation=Operation(keyed=True),
        policy=once,
    )
    assert reply.status == 201
    assert len({headers["idempotency-key"] for _, headers, _ in flaky.calls["/orders"]}) == 1


@pytest.mark.parametrize("marker", ["Idempotency-Replayed", "Idempotent-Replayed"])
def test_a_replay_marker_is_proof(client, flaky, clock, marker):  # noqa: F811
    """After an answer with a replay marker, later POSTs to the same origin and path are repeated."""

    async def replayed(flaky, request):
        return Response(b"{}", 201, {marker: "true"})

    flaky.script["/orders"] = [replayed, 500, run_once_per_key]
    post = ("POST", f"{flaky.url}/orders", {"json": {}})
    assert [reply.status for reply in client.calls([post, post])] == [201, 201]
    assert len(flaky.calls["/orders"]) == 3


def test_an_echoed_key_is_proof_for_its_path_only(client, flaky, clock):  # noqa: F811
    """A success that echoes our key proves for later requests to its path that keys are honoured."""
    flaky.script["/orders"] = [echo(), 500, run_once_per_key]
    flaky.script["/other"] = [500, run_once_per_key]
    steps = [("POST", f"{flaky.url}{path}", {"json": {}}) for path in ("/orders", "/orders", "/other")]
    with pytest.raises(FaultError) as caught:
        client.calls(steps)
    assert caught.value.decision.action == "verify"
    assert (len(flaky.calls["/orders"]), len(flaky.calls["/other"])) == (3, 1)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
@pytest.mark.parametrize("marker", [{}, {"Idempotency-Replayed": "true"}, {"Idempotent-Replayed": "true"}])
def test_a_failed_answer_proves_nothing(client, flaky, clock, status, marker):  # noqa: F811
    """A failure that echoes the key, or says that it is a replay, is no proof: for its own request, and for later ones."""
    flaky.script["/orders"] = [echo(status, marker.items()), echo(status, marker.items()), order_again]
    for sent in (1, 2):
        with pytest.raises(FaultError) as caught:
            client.call("POST", f"{flaky.url}/orders", json={})
        assert caught.value.decision.action == "verify"
        assert len(flaky.calls["/orders"]) == sent


def test_an_answer_that_breaks_off_proves_nothing_for_itself(client, flaky, clock):  # noqa: F811
    """A success that echoes the key and breaks off is not repeated: whether the service honours keys is not known yet."""

    async def break_off_with_key(flaky, request):
        async def app(scope, receive, send):
            key = request.headers["idempotency-key"].encode()
            headers = [(b"idempotency-key", key), (b"content-length", b"500")]
            await send({"type": "http.response.start", "status": 201, "headers": headers})
            await send({"type": "http.response.body", "body": b"{", "more_body": False})

        return app

    flaky.script["/orders"] = [break_off_with_key, order_again]
    with pytest.raises(Exception) as caught:
        client.call("POST", f"{flaky.url}/orders", json={})
    assert len(flaky.calls["/orders"]) == 1, caught.value


def test_a_new_client_for_each_call_shares_the_proofs(client, flaky, clock):  # noqa: F811
    """Proofs belong to the process, until the service succeeds without sending the key back."""
    flaky.script["/orders"] = [echo(), 500, run_once_per_key, 500, order_again]
    assert client.call("POST", f"{flaky.url}/orders", json={}).status == 201
    assert client.call("POST", f"{flaky.url}/orders", json={}).status == 201
    with pytest.raises(FaultError) as caught:
        client.call("POST", f"{flaky.url}/orders", json={})
    assert caught.value.decision.action == "verify"
    assert len(flaky.calls["/orders"]) == 4


@pytest.mark.parametrize("module", [httpx2, httpx])
def test_a_transport_of_the_users_own_keeps_its_proofs(module):
    """Behind a mock transport the same origin can be another service."""

    def honours(request):
        return module.Response(201, headers={"Idempotency-Key": request.headers["idempotency-key"]})

    def ignores(request):
        calls.append(request)
        return module.Response(500)

    calls = []
    with module.Client(transport=Transport(module.MockTransport(honours))) as session:
        session.post("http://shop.example/orders")
    for inner in (module.MockTransport(ignores), module.MockTransport(ignores)):
        with module.Client(transport=Transport(inner)) as session, pytest.raises(FaultError):
            session.post("http://shop.example/orders")
    assert len(calls) == 2


def test_another_key_in_the_answer_is_no_proof(client, flaky, clock):  # noqa: F811
    """Only our own key counts as an echo, and only a true marker as a replay."""

    async def other(flaky, request):
        return Response(b"{}", 201, {"Idempotency-Key": "fixed", "Idempotency-Replayed": "false"})

    flaky.script["/orders"] = [other, 500, run_once_per_key]
    post = ("POST", f"{flaky.url}/orders", {"json": {}})
    with pytest.raises(FaultError):
        client.calls([post, post])
    assert len(flaky.calls["/orders"]) == 2


def test_after_effect_unknown_the_key_is_new(client, flaky, clock):  # noqa: F811
    """After EFFECT_UNKNOWN `verify` is called once; if nothing happened, the request is sent with a new key."""
    asked = []
    flaky.script["/orders"] = [effect_unknown, run_once_per_key]
    options = {"verify": lambda: asked.append(1) or False}
    assert client.call("POST", f"{flaky.url}/orders", json={}, options=options).status == 201
    keys = [headers["idempotency-key"] for _, headers, _ in flaky.calls["/orders"]]
    assert len(asked) == 1
    assert keys[0] != keys[1]


def test_effect_unknown_proves_nothing(client, flaky, clock):  # noqa: F811
    """Anybody can write EFFECT_UNKNOWN: a later request to the path is not repeated because of it."""
    flaky.script["/orders"] = [effect_unknown, 500, order_again]
    for sent in (1, 2):
        with pytest.raises(FaultError) as caught:
            client.call("POST", f"{flaky.url}/orders", json={})
        assert caught.value.decision.action == "verify"
        assert len(flaky.calls["/orders"]) == sent


@pytest.mark.filterwarnings("ignore:Sending a large body")  # by aiohttp
def test_a_proof_does_not_hold_for_larger_requests(client, flaky, clock):  # noqa: F811
    """`Idempotent` runs a request of more than 1 MiB without its key, so a proof by a small one says nothing about it."""

    def send(sizes, *script):
        flaky.calls.clear()
        flaky.script["/orders"] = list(script)
        client.calls([("POST", f"{flaky.url}/orders", {"content": b"x" * size}) for size in sizes])
        return len(flaky.calls["/orders"])

    small, large = 1, 1024 * 1024 + 1
    with pytest.raises(FaultError) as raised:
        send([small, large], echo(), 500, 201)
    assert raised.value.decision.action == "verify"
    assert send([large, small], 201, 500, echo()) == 3, "a large request without an echo disproves nothing"
    assert send([large, large], echo(), 500, 201) == 3, "a large request with an echo is proof for large ones"


def test_effect_unknown_is_not_repeated(client, flaky, clock):  # noqa: F811
    """M3: whatever a service says beside EFFECT_UNKNOWN, it is no invitation to send the request again."""
    body = {"code": "EFFECT_UNKNOWN", "is_retriable": True, "retry_after_ms": 10}
    flaky.script["/orders"] = [(503, {}, body), 201]
    with pytest.raises(FaultError) as raised:
        client.call("POST", f"{flaky.url}/orders", json={})
    assert raised.value.decision.action == "verify"
    assert len(flaky.calls["/orders"]) == 1


def test_verify_settles_a_lost_answer(client, flaky):  # noqa: F811
    """At a service that ignores keys, `verify` decides: False repeats the request, None gives up."""
    orders = flaky.effects
    flaky.script["/orders"] = [answer_too_late, order_again]
    with FakeClock():
        reply = client.call(
            "POST", f"{flaky.url}/orders", json={}, timeout=0.4, options={"verify": lambda fault: False}
        )
    assert (reply.status, orders["orders"]) == (201, 1)
    flaky.script["/more"] = [500, order_again]
    with FakeClock(), pytest.raises(FaultError):
        client.call("POST", f"{flaky.url}/more", json={}, options={"verify": lambda fault: None})
    assert len(flaky.calls["/more"]) == 1


def test_no_key_where_none_is_wanted_or_can_help(client, flaky, clock):  # noqa: F811
    """`keys=False` sends none, and a body that can be read only once carries none that we make."""

    def parts():
        yield b"one"

    async def aparts():
        yield b"one"

    body = parts() if client.name in {"httpx", "httpx2", "requests"} else aparts()
    client.call("POST", f"{flaky.url}/stream", content=body)
    client.call("POST", f"{flaky.url}/none", json={}, options={"keys": False})
    for path in ("/stream", "/none"):
        assert "idempotency-key" not in flaky.calls[path][0][1]


def upload(client, content):  # noqa: F811
    """Return the arguments of a form with a file."""
    if client.name != "aiohttp":
        return {"files": {"receipt": ("receipt.txt", io.BytesIO(content))}, "data": {"order": "7"}}
    form = aiohttp.FormData({"order": "7"})
    form.add_field("receipt", io.BytesIO(content), filename="receipt.txt")
    return {"data": form}


def test_a_form_with_a_small_file_is_repeated(client, flaky, clock):  # noqa: F811
    """It is read before it is sent, so every attempt has the same body and the same key."""
    flaky.script["/receipts"] = [(429, {"retry-after": "1"}, None), order_again]
    assert client.call("POST", f"{flaky.url}/receipts", **upload(client, b"paid 12")).status == 201
    first, second = flaky.calls["/receipts"]
    assert b"paid 12" in first[2] == second[2]
    for name in ("idempotency-key", "content-type", "content-length"):
        assert first[1][name] == second[1][name]


def test_a_form_with_a_large_file_is_sent_once(client, flaky, clock):  # noqa: F811
    """It is not kept in memory. requests has built the whole body before we see it."""
    flaky.script["/receipts"] = [(429, {"retry-after": "1"}, None), order_again]
    large = upload(client, b"x" * (LIMIT + 1))
    if client.name == "requests":
        assert client.call("POST", f"{flaky.url}/receipts", **large).status == 201
        return
    with pytest.raises(RateLimitedError):
        client.call("POST", f"{flaky.url}/receipts", **large)
    ((_, headers, _),) = flaky.calls["/receipts"]
    assert "idempotency-key" not in headers
