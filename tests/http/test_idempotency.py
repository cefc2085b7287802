"""Idempotency keys: replay, running requests, other bodies, expiry, doubt, and killed processes."""

import asyncio
import subprocess
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx
import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Route

from amends import Operation, decide, extract, stores
from amends.bindings.asgi import Problems
from amends.bindings.httpx import AsyncTransport
from amends.bindings.starlette import install
from amends.errors import ConflictError, ServiceUnavailableError
from amends.http.idempotency import Idempotent, commit
from amends.http.idempotency_store import RECORDS
from amends.stores.errors import StoreError
from tests.http import paying
from tests.http.serving import ROOT, process
from tests.ports import free_port
from tests.stores.servers import NatsServer


class Shop:
    """Records the requests that ran."""

    def __init__(self):
        self.runs = []
        self.gate = None
        self.fail = []

    def app(self, store, **options):
        async def order(request):
            self.runs.append(await request.body())
            if self.gate is not None:
                await self.gate.wait()
            if self.fail:
                raise self.fail.pop(0)
            return JSONResponse(
                {"run": len(self.runs)}, 201, headers={"location": "/orders/1", "set-cookie": "a=b"}
            )

        async def large(request):
            async def parts():
                for _ in range(5):
                    yield b"x" * 1000

            return StreamingResponse(parts())

        async def plain(request):
            self.runs.append(b"")
            return PlainTextResponse("busy", 503)

        routes = [Route(f"/{each.__name__}", each, methods=["POST", "GET"]) for each in (order, large, plain)]
        app = Starlette(routes=routes)
        install(app)
        return Idempotent(app, store, **options)


async def post(app, key="k", path="/order", body=b"{}", method="POST", **headers):
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    if key is not None:
        headers["Idempotency-Key"] = key
    async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as client:
        return await client.request(method, path, content=body, headers=headers)


@pytest.fixture(scope="module")
def nats_server(tmp_path_factory):
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(params=["memory", "sqlite", "nats"])
async def store(request, tmp_path):
    url = "memory:"
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/keys.db"
    elif request.param == "nats":
        url = f"{request.getfixturevalue('nats_server').url}/k{uuid.uuid4().hex[:16]}"
    async with await stores.open(url) as opened:
        yield opened


async def test_a_repeat_is_answered_with_the_first_response(store):
    """A repeat does not run; it gets the first status, body and headers, and `Idempotency-Replayed`."""
    shop = Shop()
    app = shop.app(store)
    first, second = await post(app), await post(app, '"k"')
    assert len(shop.runs) == 1
    assert (second.status_code, second.content) == (201, first.content)
    assert second.headers["location"] == "/orders/1"
    assert second.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    assert "set-cookie" not in second.headers


async def test_other_keys_callers_and_methods_run(store):
    """Keys belong to one caller; requests without a key and other methods always run."""
    shop = Shop()
    app = shop.app(store)
    for key, options in (
        ("k", {}),
        ("l", {}),
        ("k", {"authorization": "Bearer other"}),
        (None, {}),
        (None, {}),
        ("k", {"method": "GET"}),
    ):
        assert (await post(app, key, **options)).status_code == 201
    assert len(shop.runs) == 6


async def test_another_body_under_the_same_key_is_refused(store):
    """A different request with the same key gets a 422, and the first response is kept."""
    shop = Shop()
    app = shop.app(store)
    await post(app)
    for options in ({"body": b"[]"}, {"path": "/order?x=1"}):
        refused = await post(app, **options)
        assert (refused.status_code, refused.json()["code"]) == (422, "VALIDATION_ERROR")
        assert refused.json()["suggestions"]
    assert (await post(app)).status_code == 201
    assert len(shop.runs) == 1


async def test_a_running_request_answers_409(store):
    """A repeat while the first request runs gets a 409 with a wait, which recovery obeys."""
    shop = Shop()
    shop.gate = asyncio.Event()
    app = shop.app(store)
    first = asyncio.ensure_future(post(app))
    while not shop.runs:
        await asyncio.sleep(0.01)
    busy = await post(app)
    assert (busy.status_code, busy.json()["is_retriable"], busy.json()["executed"]) == (409, True, "maybe")
    assert 25 <= float(busy.headers["retry-after"]) <= 30  # the rest of the lease
    assert decide(extract(busy), operation=Operation(key="k")).action == "retry"
    shop.gate.set()
    assert (await first).status_code == 201
    assert (await post(app)).headers["idempotency-replayed"] == "true"
    assert len(shop.runs) == 1


async def test_concurrent_requests_run_once(store):
    """Of fifty requests with one key one runs; the others get a 409 or its response."""
    shop = Shop()
    app = shop.app(store)
    answers = await asyncio.gather(*(post(app) for _ in range(50)))
    assert len(shop.runs) == 1
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert {answer.content for answer in answers if answer.status_code == 201} == {b'{"run":1}'}


async def test_a_long_request_keeps_its_lease(store):
    """The lease is renewed while the request runs."""
    shop = Shop()
    shop.gate = asyncio.Event()
    records = Failing(store, RECORDS)
    app = shop.app(records, lease=1.5)
    first = asyncio.ensure_future(post(app))
    while records.puts < 4:  # a renewal every third of the lease
        await asyncio.sleep(0.05)
    assert (await post(app)).status_code == 409
    shop.gate.set()
    assert (await first).status_code == 201


@pytest.mark.parametrize(
    ("failure", "then"),
    [
        (ServiceUnavailableError("not yet", executed="no"), "run"),
        (ServiceUnavailableError("not yet", retry_after=0.1), "run"),
        (ServiceUnavailableError("lost"), "doubt"),
        (ServiceUnavailableError("lost", retry_after=0.1, executed="maybe"), "doubt"),
        (ValueError("unexpected"), "doubt"),
        (httpx.ConnectError("no route"), "doubt"),
        (ConflictError("changed"), "run"),
        (ConflictError("changed", executed="maybe"), "replay"),
    ],
    ids=["no effect", "invited", "unavailable", "may have", "unexpected", "upstream", "refused", "permanent"],
)
async def test_what_a_failure_leaves_behind(store, failure, then):
    """A failure without effect releases the key, one with an unknown effect is in doubt, a permanent one is replayed."""
    shop = Shop()
    shop.fail = [failure]
    app = shop.app(store)
    first, second = await post(app), await post(app)
    if then == "run":
        assert (first.json()["executed"], second.status_code, len(shop.runs)) == ("no", 201, 2)
    elif then == "doubt":
        assert first.json()["executed"] == "maybe"
        assert (second.json()["code"], second.json()["is_retriable"]) == ("EFFECT_UNKNOWN", False)
        assert (await post(app)).json()["code"] == "EFFECT_UNKNOWN"
        assert decide(extract(second)).action == "verify"
        assert decide(extract(second), operation=Operation(key="k")).action == "escalate"
        assert len(shop.runs) == 1
    else:
        assert (second.status_code, second.json()) == (409, first.json())
        assert len(shop.runs) == 1


async def test_a_one_off_503_with_a_wait_gets_through(store):
    """Our client repeats the request with the same key, because the failure had no effect."""
    shop = Shop()
    shop.fail = [ServiceUnavailableError("Being counted", retry_after=0.05)]
    inner = httpx2.ASGITransport(app=shop.app(store))
    async with httpx2.AsyncClient(transport=AsyncTransport(inner), base_url="http://shop.example") as client:
        response = await client.post("/order", json={})
    assert (response.status_code, len(shop.runs)) == (201, 2)


def settling(answer, calls):
    async def verify(request):
        calls.append(request)
        return answer

    return verify


@pytest.mark.parametrize(
    ("answer", "status", "runs"),
    [
        ((201, {"found": 1}), 201, 1),
        (JSONResponse({"found": 1}, 201), 201, 1),
        (True, 409, 1),
        (False, 201, 2),
        (None, 500, 1),
        ("nonsense", 500, 1),
    ],
    ids=["response", "starlette", "happened", "not happened", "unknown", "nonsense"],
)
async def test_a_verify_hook_settles_a_doubt(store, answer, status, runs):
    """The hook gets the facts of the request; what it finds is kept, and asked once."""
    shop, calls = Shop(), []
    shop.fail = [ServiceUnavailableError("lost")]
    app = shop.app(store, verify=settling(answer, calls), caller=lambda scope: "ann")
    await post(app, path="/order?x=1", body=b"[1]")
    assert not calls
    second = await post(app, path="/order?x=1", body=b"[1]")
    (request,) = calls
    assert (request.key, request.caller, request.method, request.path) == ("k", "ann", "POST", "/order")
    assert (request.query, request.body, request.status) == ("x=1", b"[1]", 503)
    assert (second.status_code, len(shop.runs)) == (status, runs)
    third = await post(app, path="/order?x=1", body=b"[1]")
    if status == 500:
        assert third.json()["code"] == "EFFECT_UNKNOWN"
    else:
        assert (third.status_code, third.content if status == 201 else b"") == (
            status,
            second.content if status == 201 else b"",
        )
        assert len(calls) == 1
    if answer is True:
        assert (second.json()["executed"], second.json()["is_retriable"]) == ("yes", False)


async def test_a_verify_hook_that_fails_or_hangs_has_found_nothing(store, caplog):
    """A plain function runs in a thread; an exception and a time-out leave the key in doubt."""

    def failing(request):
        raise RuntimeError("the ledger is down")

    async def hanging(request):
        await asyncio.Event().wait()

    for hook in (failing, hanging):
        shop = Shop()
        shop.fail = [ServiceUnavailableError("lost")]
        app = shop.app(store, verify=hook, lease=0.3)
        await post(app, hook.__name__)
        assert (await post(app, hook.__name__)).json()["code"] == "EFFECT_UNKNOWN"
    assert sum("verify hook" in record.getMessage() for record in caplog.records) == 2


@pytest.mark.parametrize(
    "header",
    [
        "authorization",
        "cookie",
        "x-api-key",
        "x-auth-token",
        "x-forwarded-user",
        "proxy-authorization",
        "x-functions-key",
        "cf-access-jwt-assertion",
    ],
)
async def test_callers_with_other_credentials_do_not_share_keys(header):
    """Whatever header carries the credential, another caller's stored answer is never sent."""
    shop = Shop()
    async with await stores.open("memory:") as store:
        app = shop.app(store)
        first = await post(app, **{header: "session=ann"})
        second = await post(app, **{header: "session=bob"})
        assert (first.json(), second.json()) == ({"run": 1}, {"run": 2})
        again = await post(app, **{header: "session=ann", "x-csrf-token": "other", "user-agent": "other"})
        assert again.json() == {"run": 1}
        if header == "cookie":
            assert (await post(app, cookie="a=1; b=2")).json() == (await post(app, cookie="b=2; a=1")).json()


async def test_a_store_that_is_down_fails_only_requests_with_a_key(tmp_path):
    """A request with a key gets a 503 with a wait that had no effect; others run."""
    shop = Shop()
    app = shop.app(f"sqlite:///{tmp_path}/no/such/folder/keys.db")
    refused = await post(app)
    assert (refused.status_code, refused.json()["executed"]) == (503, "no")
    assert refused.json()["retry_after_ms"] > 0
    assert refused.headers["idempotency-key"] == "k"
    assert (await post(app, None)).status_code == 201


async def test_two_keys_are_refused(store):
    """Two headers, or two that a proxy joined, are a 400."""
    shop = Shop()
    app = shop.app(store)
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as client:
        for headers in (
            [("Idempotency-Key", "a"), ("Idempotency-Key", "b")],
            [("Idempotency-Key", "a"), ("Idempotency-Key", "a")],
            [("Idempotency-Key", "a, b")],
            [("Idempotency-Key", '"a", "b"')],
        ):
            response = await client.post("/order", headers=headers)
            assert (response.status_code, response.json()["field"]) == (400, "Idempotency-Key")
        assert (await client.post("/order", headers={"Idempotency-Key": '"a,b"'})).status_code == 201
    assert len(shop.runs) == 1


async def test_every_answer_echoes_the_key(store):
    """Successes, replays, refusals and failures carry the key as it was sent; a request without one carries none."""
    shop = Shop()
    app = shop.app(store)
    first, second = await post(app, '"k"'), await post(app)
    assert (first.headers["idempotency-key"], second.headers["idempotency-key"]) == ('"k"', "k")
    refused = await post(app, body=b"[]")
    assert (refused.status_code, refused.headers["idempotency-key"]) == (422, "k")
    shop.fail = [ServiceUnavailableError("lost")]
    assert (await post(app, "l")).headers["idempotency-key"] == "l"
    assert (await post(app, "l")).headers["idempotency-key"] == "l"
    assert "idempotency-key" not in (await post(app, None)).headers
    assert "idempotency-key" not in (await post(app, method="GET")).headers


async def test_a_large_body_runs_without_its_key(store, caplog):
    """A body over max_body is warned about, runs each time, and its key is not echoed, because it is not honoured."""
    shop = Shop()
    app = shop.app(store, max_body=2000)
    for _ in "ab":
        response = await post(app, body=b"x" * 3000)
        assert response.status_code == 201
        assert "idempotency-key" not in response.headers
    assert shop.runs == [b"x" * 3000] * 2
    assert sum("runs without the key" in record.getMessage() for record in caplog.records) == 2
    # More than was declared, or without a declared length.
    parts = tuple({"type": "http.request", "body": b"x" * 1500, "more_body": more} for more in (True, False))

    async def echo(scope, receive, send):
        size = 0
        more = True
        while more:
            message = await receive()
            size += len(message["body"])
            more = message["more_body"]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": str(size).encode()})

    sent = await send_bare(
        echo, store, parts, key=b"large", max_body=2000, headers=[(b"content-length", b"10")]
    )
    assert sent[-1]["body"] == b"3000"
    assert not sent[0]["headers"]


async def test_streams_are_not_held_back(store):
    """Pieces of a streamed request and response pass while the request runs; a repeat gets the whole response."""
    inbox, outbox = asyncio.Queue(), asyncio.Queue()

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        more = True
        while more:
            message = await receive()
            more = message["more_body"]
            await send({"type": "http.response.body", "body": message["body"], "more_body": more})

    def scope():
        headers = [(b"idempotency-key", b"stream"), (b"transfer-encoding", b"chunked")]
        return {"type": "http", "method": "POST", "path": "/x", "query_string": b"", "headers": headers}

    keyed = Idempotent(app, store)
    running = asyncio.ensure_future(keyed(scope(), inbox.get, outbox.put))
    for piece in (b"one", b"two"):
        await inbox.put({"type": "http.request", "body": piece, "more_body": True})
        while (message := await asyncio.wait_for(outbox.get(), 20))["type"] != "http.response.body":
            assert (b"idempotency-key", b"stream") in message["headers"]
        assert (message["body"], running.done()) == (piece, False)
    await inbox.put({"type": "http.request", "body": b"end", "more_body": False})
    await running
    again = asyncio.Queue()
    await inbox.put({"type": "http.request", "body": b"one", "more_body": True})
    await keyed(scope(), inbox.get, again.put)
    assert (await again.get())["status"] == 200
    assert (await again.get())["body"] == b"onetwoend"


async def test_a_file_that_the_server_could_send_is_stored(store, tmp_path):
    """A server with `http.response.pathsend`: the application sends bytes instead, so that a repeat gets them too."""
    file = tmp_path / "report.csv"
    file.write_text("a,b")
    headers = [(b"idempotency-key", b"report"), (b"content-length", b"0")]
    keyed = Idempotent(FileResponse(file), store)
    for replayed in (False, True):
        sent, inbox = [], asyncio.Queue()
        inbox.put_nowait({"type": "http.request", "body": b"", "more_body": False})

        async def send(message, sent=sent):
            sent.append(message)

        extensions = {"http.response.pathsend": {}, "http.response.zerocopysend": {}, "tls": {}}
        scope = {"type": "http", "method": "POST", "path": "/x", "query_string": b"", "headers": headers}
        await keyed({**scope, "extensions": extensions}, inbox.get, send)
        assert b"".join(message.get("body", b"") for message in sent) == b"a,b"
        assert ((b"idempotency-replayed", b"true") in sent[0]["headers"]) is replayed


async def test_unstructured_responses_are_classified_by_status(store):
    """A plain 503 response may have had its effect."""
    shop = Shop()
    app = shop.app(store)
    await post(app, path="/plain")
    assert (await post(app, path="/plain")).json()["code"] == "EFFECT_UNKNOWN"
    assert len(shop.runs) == 1


async def send_bare(
    app, store, messages=({"type": "http.request", "body": b"{}"},), key=b"k", headers=(), **options
):
    """Send one request to an application behind `Idempotent` alone, and return the messages that it sends."""
    sent, left = [], list(messages)

    async def receive():
        return left.pop(0) if left else {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    headers = [*headers, *([] if key is None else [(b"idempotency-key", key)])]
    scope = {"type": "http", "method": "POST", "path": "/x", "query_string": b"", "headers": headers}
    await Idempotent(app, store, **options)(scope, receive, send)
    return sent


async def test_an_application_without_problems_is_classified_by_status(store):
    """A bare 503 may have had its effect, a bare 404 had none, and other messages are passed on."""
    runs = []

    def answering(status):
        async def app(scope, receive, send):
            runs.append(status)
            await send({"type": "http.response.debug", "info": {}})
            await send({"type": "http.response.start", "status": status, "headers": []})
            await send({"type": "http.response.body", "body": b"bare"})

        return app

    for status, again in ((503, b"EFFECT_UNKNOWN"), (404, b"bare")):
        key = str(status).encode()
        first = await send_bare(answering(status), store, key=key)
        second = await send_bare(answering(status), store, key=key)
        assert next(each for each in first if "status" in each)["status"] == status
        assert again in second[-1]["body"]
    assert runs == [503, 404, 404]


async def test_errors_that_are_answered_by_a_layer_around(store):
    """A typed error without effect frees the key, also if `Problems` is around `Idempotent`, or nothing is."""

    async def order(request):
        runs.append(None)
        if len(runs) == 1:
            raise failure
        return JSONResponse({"run": len(runs)}, 201)

    async def bare(scope, receive, send):
        await order(None)
        await JSONResponse({"run": len(runs)}, 201)(scope, receive, send)

    for app in (Starlette(routes=[Route("/orders", order, methods=["POST"])]), bare):
        for around in (Problems, lambda app: app):
            for failure, then in [  # noqa: B007 - the handler raises it
                (ServiceUnavailableError(retry_after=1), 201),
                (ServiceUnavailableError(retry_after=1, executed="maybe"), 500),
                (ConnectionRefusedError(), 500),
                (ConflictError("changed", executed="maybe"), 500),
            ]:
                runs = []
                transport = httpx2.ASGITransport(
                    app=around(Idempotent(app, store=store)), raise_app_exceptions=False
                )
                async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as session:
                    headers = {"Idempotency-Key": str(uuid.uuid4())}
                    await session.post("/orders", headers=headers)
                    again = await session.post("/orders", headers=headers)
                    assert (again.status_code, len(runs)) == (then, 2 if then == 201 else 1)
                    assert (again.json().get("code") == "EFFECT_UNKNOWN") is (then == 500)


async def test_a_client_that_disconnects_while_sending(store):
    """A request with an incomplete body does not run."""
    shop = Shop()
    half = ({"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"})
    sent = await send_bare(shop.app(store).app, store, half, headers=[(b"content-length", b"2")])
    assert sent[0]["status"] == 400
    assert not shop.runs


async def test_the_first_two_requests_open_one_store(nats_server):
    """Concurrent first requests open the store once."""
    shop = Shop()
    app = shop.app(f"{nats_server.url}/k{uuid.uuid4().hex[:16]}")
    answers = await asyncio.gather(post(app, "a"), post(app, "b"))
    assert [each.status_code for each in answers] == [201, 201]
    await app._keys.store.close()


class Failing:
    """A store without transactions that counts the writes to one table, and fails them while `broken` is set."""

    def __init__(self, store, table):
        self._store, self._table, self.broken, self.puts = store, table, False, 0
        self.traits = replace(store.traits, transactions=False)

    def __getattr__(self, name):
        return getattr(self._store, name)

    def table(self, name):
        inner, outer = self._store.table(name), self
        if name != self._table:
            return inner

        class Table:
            def __getattr__(self, name):
                return getattr(inner, name)

            async def put(self, *args, **kwargs):
                outer.puts += 1
                if outer.broken:
                    raise StoreError("the disk is full")
                return await inner.put(*args, **kwargs)

        return Table()


async def test_a_record_that_cannot_be_written(store, caplog):
    """The response is sent, the failure is logged, and the key does not run again."""
    shop = Shop()
    failing = Failing(store, RECORDS)
    app = shop.app(failing, lease=0.3)
    failing.broken = True
    assert (await post(app)).status_code == 201
    assert any("could not be written" in record.getMessage() for record in caplog.records)
    failing.broken = False
    while (again := await post(app)).status_code == 409:  # until the lease has expired
        await asyncio.sleep(0.1)
    assert again.json()["code"] == "EFFECT_UNKNOWN"
    assert len(shop.runs) == 1


async def test_a_lease_that_cannot_be_renewed(store):
    """The request continues and is answered, and its record is stored."""
    shop = Shop()
    shop.gate = asyncio.Event()
    failing = Failing(store, RECORDS)
    app = shop.app(failing, lease=0.3)
    failing.broken = True
    first = asyncio.ensure_future(post(app))
    while not failing.puts:
        await asyncio.sleep(0.01)
    failing.broken = False
    shop.gate.set()
    assert (await first).status_code == 201
    assert (await post(app)).json() == {"run": 1}


async def test_a_failure_after_the_commit():
    """A failure after `commit` undoes neither the effect nor the stored response."""
    runs = []
    async with await stores.open("memory:") as store:

        async def app(scope, receive, send):
            await commit(scope, lambda tx: runs.append(1) or {"paid": True}, status=201)
            raise RuntimeError("while answering")

        with pytest.raises(RuntimeError):
            await send_bare(app, store, transactional=True)
        again = await send_bare(app, store, transactional=True)
        assert (again[0]["status"], again[1]["body"]) == (201, b'{"paid":true}')
        assert runs == [1]

        async def answered(scope, receive, send):
            status, body = await commit(scope, lambda tx: {"plain": True})
            await send({"type": "http.response.start", "status": status, "headers": []})
            await send({"type": "http.response.body", "body": body})

        # Without a key no response is stored, and the work runs every time.
        assert [(await send_bare(answered, store, key=None))[1]["body"] for _ in "ab"] == [
            b'{"plain":true}'
        ] * 2


async def test_keys_expire(store):
    """A key can be used again after it expired."""
    shop = Shop()
    app = shop.app(store, expires_in=0.2)
    await post(app)
    await asyncio.sleep(0.5)
    assert (await post(app)).json() == {"run": 2}


async def test_bounds_and_bad_keys(store):
    """Required keys, invalid keys, request bodies that are too large, responses that are too large to store."""
    shop = Shop()
    app = shop.app(store, required=True, max_body=2000)
    assert (await post(app, None)).status_code == 400
    for bad in ("", "x" * 300, '""'):
        assert (await post(app, bad)).json()["field"] == "Idempotency-Key"
    assert (await post(app, body=b"x" * 3000)).status_code == 413
    assert not shop.runs
    assert len((await post(app, path="/large")).content) == 5000
    assert (await post(app, path="/large")).json()["code"] == "CONFLICT"


async def test_the_store_opens_by_its_url_and_its_failure_is_a_503(tmp_path):
    """A URL is opened at the first request; if it cannot be opened, the request gets a 503."""
    shop = Shop()
    app = shop.app(f"sqlite:///{tmp_path}/keys.db")
    assert (await post(app)).status_code == 201
    assert (await post(app)).headers["idempotency-replayed"] == "true"
    broken = shop.app(f"sqlite:///{tmp_path}/no/such/folder/keys.db")
    refused = await post(broken)
    assert (refused.status_code, refused.json()["code"]) == (503, "SERVICE_UNAVAILABLE")
    await app._keys.store.close()


async def test_a_transaction_after_a_takeover_fails(tmp_path):
    """The transaction of a process whose lease expired fails, so there is one effect."""
    async with await stores.open(f"sqlite:///{tmp_path}/store.db") as store:
        paying.payments(f"{tmp_path}/store.db")
        from amends.http.idempotency_store import Keys

        first, second = (Keys(store, expires_in=60, lease=0.2) for _ in range(2))
        expired = await first.claim("n", "f", transactional=True)
        await asyncio.sleep(0.5)
        taken = await second.claim("n", "f", transactional=True)

        def pay(keys, claim):
            def work(tx):
                tx.sql("INSERT INTO payments DEFAULT VALUES")
                keys.write(tx, claim, status=201, body=b"{}")

            return work

        with pytest.raises(Exception) as caught:
            await store.transaction(pay(first, expired))
        assert caught.value.fault.code == "CONFLICT"
        await store.transaction(pay(second, taken))
    assert paying.payments(f"{tmp_path}/store.db") == 1


@pytest.mark.parametrize("mode", ["own", "other"])
async def test_killed_at_every_point(mode, tmp_path):
    """
    Kill the process before each step of a keyed request, then send the request again until it has a final answer.

    With `once` there is exactly one effect. Without it the key is replayed, run or in doubt, and never has two effects.
    """
    counted = await _run_and_kill(tmp_path / "count", mode, 0)
    points = int(counted.stdout.split()[0])
    assert points > 6
    running = [
        asyncio.ensure_future(_run_and_kill(tmp_path / str(at), mode, at)) for at in range(1, points + 1)
    ]
    outcomes = []
    for at, each in enumerate(running, 1):
        done = await each
        assert done.returncode == -9, done.stderr
        folder = tmp_path / str(at)
        outcomes.append(await _final_answer(folder, mode))
    assert set(outcomes) <= ({"run", "replayed"} if mode == "own" else {"run", "replayed", "doubt"})
    assert len(set(outcomes)) == (2 if mode == "own" else 3)


@pytest.mark.parametrize("mode", ["own", "other"])
def test_a_real_server_is_killed_and_started_again(mode, tmp_path):
    """uvicorn is killed during a payment and restarted; the same request then has one effect and a final answer."""
    paying.payments(paying.file_of(tmp_path, mode))
    env = {"PAYING_FOLDER": str(tmp_path), "PAYING_MODE": mode}
    key = {"Idempotency-Key": "k"}

    def server():
        port = free_port()
        command = (
            "-m",
            "uvicorn",
            "--factory",
            "tests.http.paying:served",
            "--port",
            str(port),
            "--lifespan",
            "off",
        )
        return process(*command, port=port, env=env)

    with server() as (url, running), httpx2.Client(base_url=url) as client, ThreadPoolExecutor(1) as pool:
        sending = pool.submit(client.post, "/pay", headers={**key, "x-hang": "1"}, timeout=60)
        while not (tmp_path / "hanging").exists() and not sending.done():
            time.sleep(0.01)
        running.kill()
        running.wait()
        with pytest.raises(httpx2.TransportError):
            sending.result()
    with server() as (url, _), httpx2.Client(base_url=url, timeout=20) as client:
        for _ in range(50):
            response = client.post("/pay", headers=key)
            if response.status_code != 409:
                break
            time.sleep(0.1)
    assert (response.status_code == 201) == (mode == "own")
    if mode == "other":
        assert response.json()["code"] == "EFFECT_UNKNOWN"
    assert paying.payments(paying.file_of(tmp_path, mode)) == 1


_SLOTS = threading.Semaphore(3)


def _process(folder, mode, at):
    folder.mkdir()
    command = [sys.executable, "-m", "tests.http.paying", str(folder), mode, str(at)]
    with _SLOTS:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


async def _run_and_kill(folder, mode, at):
    return await asyncio.to_thread(_process, folder, mode, at)


async def _final_answer(folder, mode):
    """Send the same request until the answer is final, and return its kind."""
    before = paying.payments(paying.file_of(folder, mode))
    async with await stores.open(f"sqlite:///{folder}/store.db") as store:
        app = paying.application(store, folder, mode)
        for _ in range(50):
            response = await paying.send(app)
            if response.status_code != 409:
                break
            await asyncio.sleep(0.1)
        after = paying.payments(paying.file_of(folder, mode))
        if response.status_code == 201:
            assert after == 1
            return "replayed" if "idempotency-replayed" in response.headers else "run"
        assert response.json()["code"] == "EFFECT_UNKNOWN"
        assert after == before <= 1
        # The answer does not change.
        assert (await paying.send(app)).json()["code"] == "EFFECT_UNKNOWN"
        return "doubt"


def test_a_declared_length():
    """A number of at most 18 digits; anything else counts as not declared."""
    from amends.http.idempotency import _content_length

    for value, length in (
        (b"7", 7),
        (b"9" * 18, int("9" * 18)),
        (b"9" * 19, None),
        (b"-1", None),
        ("\u0667".encode(), None),
        (b"", None),
    ):
        assert _content_length([(b"content-length", value)]) == length
    assert _content_length([]) is None


def test_the_tls_client_is_the_caller():
    """Its name counts beside the credentials in headers."""
    from amends.http.idempotency import caller_id

    def caller(name=None, headers=()):
        tls = {} if name is None else {"tls": {"client_cert_name": name}}
        return caller_id({"headers": list(headers), "extensions": tls})

    assert caller() == caller_id({"headers": []}) == caller("")
    assert len({caller(), caller("CN=a"), caller("CN=b"), caller("CN=a", [(b"Authorization", b"x")])}) == 4
