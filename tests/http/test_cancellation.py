"""Requests that end early: they are cancelled, recorded with their intent, and answered with 408."""

import asyncio
import inspect
import json
import socket
import threading
import time

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Route

from amends import extract, stores
from amends.bindings.starlette import install
from amends.errors import ConflictError
from amends.http.cancellation import TABLE, Cancellable, _parse_timeout, _runs_in_thread
from amends.http.idempotency import Idempotent
from amends.http.intent import declare, reached
from tests.http.serving import serve


class Shop:
    def __init__(self):
        self.stopped, self.finished, self.read = [], [], []
        self.release = threading.Event()
        self.cleaned = asyncio.Event()

    async def invoice(self, request):
        declare(operation="create_invoice", resource_id="inv-17", state="started", customer="c-1")
        self.read.append(await request.body())
        reached("payment_processing")
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            self.stopped.append(request.url.path)
            raise
        return JSONResponse({})

    async def stubborn(self, request):
        try:
            await asyncio.sleep(0.3)
        except asyncio.CancelledError:
            reached("cleaning up")
        self.finished.append(1)
        return JSONResponse({}, 201)

    async def slow(self, request):
        try:
            await asyncio.sleep(30)
        finally:
            await self.cleaned.wait()

    def thread(self, request):
        self.release.wait(20)
        self.finished.append(2)
        return PlainTextResponse("late")

    async def quick(self, request):
        return PlainTextResponse((await request.body()).decode() or "quick")

    async def stream(self, request):
        async def parts():
            yield b"one"
            await asyncio.sleep(30)
            yield b"two"

        return StreamingResponse(parts())

    def app(self, store, **options):
        names = ("invoice", "stubborn", "slow", "thread", "quick", "stream")
        app = Starlette(
            routes=[Route(f"/{each}", getattr(self, each), methods=["POST", "GET"]) for each in names]
        )
        install(app)
        return Cancellable(app, store, **options)


@pytest.fixture
async def store():
    async with await stores.open("memory:") as opened:
        yield opened


def client(app):
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx2.AsyncClient(transport=transport, base_url="http://shop.example")


async def test_a_deadline_answers_408_with_the_intent(store):
    """P11: 408 with type …/operation-cancelled and the intent; the handler is stopped and its outcome recorded."""
    shop = Shop()
    async with client(shop.app(store)) as session:
        headers = {"Request-Timeout": "0.5", "Idempotency-Key": "key 1"}
        response = await session.post("/invoice", json={}, headers=headers)
        body = response.json()
        assert response.status_code == 408
        assert body["type"] == "http://shop.example/errors/operation-cancelled"
        assert body["is_retriable"] is True
        assert body["intent"] == {
            "customer": "c-1",
            "operation": "create_invoice",
            "resource_id": "inv-17",
            "state_before_cancel": "payment_processing",
            "recovery": "It may be in progress or done. GET /operations/key%201 to learn the outcome.",
        }
        fault = extract(response)
        assert (fault.code, fault.executed) == ("CANCELLED", "maybe")
        assert shop.stopped == ["/invoice"]
        status = (await session.get(body["details"]["status_path"])).json()
        assert (status["outcome"], status["intent"]) == ("cancelled", body["intent"])
        assert status["trace_id"] == body["trace_id"]
        assert (await session.get(body["doc_uri"])).status_code == 200


async def test_others_do_not_see_it_and_other_routes_stay(store):
    """A caller does not see the operations of others; a request for an unknown id goes to the application."""
    shop = Shop()
    async with client(shop.app(store)) as session:
        await session.post(
            "/invoice", headers={"Request-Timeout": "0.1", "Idempotency-Key": "k", "Authorization": "a"}
        )
        assert (await session.get("/operations/k")).status_code == 404
        assert (await session.get("/operations/k", headers={"Authorization": "a"})).status_code == 200
        assert (await session.post("/quick", content=b"hi")).text == "hi"
        for odd in ("x", "-1", "nan", "0", "9" * 50):
            assert (await session.get("/quick", headers={"Request-Timeout": odd})).text == "quick"


async def test_a_handler_that_finishes_anyway_is_recorded_so(store):
    """A handler that ignores the cancellation is recorded as finished, with its status."""
    shop = Shop()
    async with client(shop.app(store)) as session:
        response = await session.post("/stubborn", headers={"Request-Timeout": "0.1", "Idempotency-Key": "s"})
        assert response.status_code == 408
        status = (await session.get("/operations/s")).json()
        assert (status["outcome"], status["status"]) == ("finished", 201)


async def test_a_slow_clean_up_is_recorded_when_it_ends(store):
    """The outcome is "running" until the handler ends; the response waits for it no longer than `grace`."""
    shop = Shop()
    async with client(shop.app(store, grace=0.05)) as session:
        response = await session.post("/slow", headers={"Request-Timeout": "0.1", "Idempotency-Key": "t"})
        assert response.status_code == 408
        assert (await session.get("/operations/t")).json()["outcome"] == "running"
        shop.cleaned.set()
        async with asyncio.timeout(60):
            while (outcome := (await session.get("/operations/t")).json()["outcome"]) == "running":
                await asyncio.sleep(0.01)
        assert outcome == "cancelled"


async def test_a_thread_cannot_be_stopped(store):
    """The outcome of a plain function, which runs in a thread, is "unknown"."""
    shop = Shop()
    async with client(shop.app(store)) as session:
        headers = {"Request-Timeout": "0.1", "Idempotency-Key": "t"}
        sending = asyncio.ensure_future(session.post("/thread", headers=headers))
        await asyncio.sleep(0.3)  # the timer of the request is due earlier, however late both are
        shop.release.set()
        assert (await sending).status_code == 408
        assert (await session.get("/operations/t")).json()["outcome"] == "unknown"


async def test_other_scopes_pass_untouched(store):
    """Websocket and lifespan connections pass through."""
    seen = []

    async def app(*given):
        seen.append(given)

    given = ({"type": "lifespan"}, object(), object())
    await Cancellable(app, store)(*given)
    assert seen == [given]


class Exchange:
    """A request without a server: the client's messages, and the messages that it gets."""

    def __init__(self, *messages):
        self.messages, self.sent, self.done = list(messages), [], asyncio.Event()

    async def receive(self):
        if self.messages:
            return self.messages.pop(0)
        await self.done.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        self.sent.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self.done.set()


SCOPE = {"type": "http", "method": "POST", "path": "/x", "headers": [(b"idempotency-key", b"k")]}


async def test_background_work_is_not_cancelled(store):
    """A client that disconnects after its response does not stop the handler's background work."""
    done = []

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 202, "headers": []})
        await send({"type": "http.response.body", "body": b""})
        while (await receive())["type"] != "http.disconnect":
            pass
        await asyncio.sleep(0.05)
        done.append(1)

    exchange = Exchange({"type": "http.request", "body": b""})
    await Cancellable(app, store)(SCOPE, exchange.receive, exchange.send)
    assert done == [1]
    assert [message.get("status") for message in exchange.sent] == [202, None]


async def test_a_server_that_shuts_down_takes_the_handler_with_it(store):
    """A cancellation from outside cancels the handler and waits for its end."""
    began, ended = asyncio.Event(), []

    async def app(scope, receive, send):
        began.set()
        try:
            await asyncio.sleep(30)
        finally:
            ended.append(1)

    exchange = Exchange()
    serving = asyncio.ensure_future(Cancellable(app, store)(SCOPE, exchange.receive, exchange.send))
    await began.wait()
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    assert ended == [1]
    assert exchange.sent == []


async def test_a_store_that_fails_does_not_keep_the_answer(tmp_path, caplog):
    """If the outcome cannot be stored, the error is logged and the caller still gets the 408."""
    shop = Shop()
    async with client(shop.app(f"sqlite:///{tmp_path}/no/such/folder/x.db")) as session:
        response = await session.post("/invoice", headers={"Request-Timeout": "0.1"})
    assert response.status_code == 408
    assert any("could not be recorded" in record.getMessage() for record in caplog.records)


def test_declaring_outside_of_a_request():
    """`declare` and `reached` have no effect outside of a request."""
    declare(operation="create_invoice", state="started")
    reached("the end")


async def test_below_a_key_the_effect_is_in_doubt(store):
    """The key of a cancelled request is in doubt: the same request is answered with EFFECT_UNKNOWN."""
    shop = Shop()
    app = Starlette(routes=[Route("/invoice", shop.invoice, methods=["POST"])])
    install(app)
    async with client(Cancellable(Idempotent(app, store), store)) as session:
        headers = {"Request-Timeout": "0.2", "Idempotency-Key": "k"}
        assert (await session.post("/invoice", headers=headers)).status_code == 408
        assert (await session.post("/invoice", headers=headers)).json()["code"] == "EFFECT_UNKNOWN"
        assert len(shop.read) == 1


def test_a_client_that_goes_away_stops_the_handler(tmp_path, caplog):
    """P11 over a real connection: the handler is cancelled and the status resource has the intent (P5)."""
    shop = Shop()
    id = "4bf92f3577b34da6a3ce929d0e0e4736"
    with (
        serve(shop.app(f"sqlite:///{tmp_path}/operations.db")) as url,
        httpx2.Client(base_url=url) as session,
    ):
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            head = f"POST /invoice HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\n"
            connection.sendall(f"{head}traceparent: 00-{id}-00f067aa0ba902b7-01\r\n\r\n{{}}".encode())
            until = time.monotonic() + 20
            while not shop.read and time.monotonic() < until:
                time.sleep(0.01)
        until = time.monotonic() + 20
        while (found := session.get(f"/operations/{id}")).status_code != 200 and time.monotonic() < until:
            time.sleep(0.05)
        assert (found.json()["outcome"], found.json()["trace_id"]) == ("cancelled", id)
        assert found.json()["intent"]["state_before_cancel"] == "payment_processing"
        assert shop.stopped == ["/invoice"]
        assert any(getattr(each, "trace_id", "") == id for each in caplog.records)
        half = session.stream("GET", "/stream", headers={"Request-Timeout": "1"})
        with pytest.raises(httpx2.RemoteProtocolError), half as response:
            response.read()
        assert session.get("/quick").text == "quick"


def test_the_defaults_of_the_middleware():
    """Five seconds to clean up, an hour at most for a request, a day for its outcome."""
    parameters = inspect.signature(Cancellable).parameters
    assert [parameters[name].default for name in ("grace", "longest", "expires_in")] == [5.0, 3600.0, 86400.0]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5", 5.0),
        ("0.5", 0.5),
        ("3600", 3600.0),
        ("3601", 3600.0),
        ("0", None),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("1" + " " * 30, 1.0),
        ("1" + " " * 31, None),
    ],
)
def test_the_time_that_a_request_asks_for(value, seconds):
    """A positive number of seconds, at most the longest; anything else is no limit."""
    assert _parse_timeout(value, 3600.0) == seconds


def test_which_handlers_run_in_a_thread():
    """Plain functions and methods, as Starlette runs them."""

    class Handlers:
        def plain(self):
            pass

        async def awaited(self):
            pass

    async def awaited():
        pass

    assert _runs_in_thread({"endpoint": lambda: None})
    assert _runs_in_thread({"endpoint": Handlers().plain})
    for endpoint in (awaited, Handlers().awaited, Handlers, None):
        assert not _runs_in_thread({"endpoint": endpoint})
    assert not _runs_in_thread({})


async def test_what_is_logged_and_stored_of_a_cancelled_request(store, caplog):
    """Method, path, outcome, state and trace id; the status resource has the same, for a day."""

    async def handler(scope, receive, send):
        declare(operation="charge", state="sent")
        await asyncio.sleep(60)

    sent, app = [], Cancellable(handler, store, grace=1.0)

    async def send(message):
        sent.append(message)

    async def receive():
        await asyncio.Event().wait()

    headers = [(b"request-timeout", b"0.05"), (b"idempotency-key", b"k 1")]
    scope = {"type": "http", "method": "POST", "path": "/a b", "headers": headers, "query_string": b""}
    await app(scope, receive, send)
    problem = json.loads(sent[1]["body"])
    assert (sent[0]["status"], problem["code"]) == (408, "CANCELLED")
    assert problem["details"] == {"operation_id": "k 1", "status_path": "/operations/k%201"}
    record = next(each for each in caplog.records if "was cancelled" in each.getMessage())
    assert record.getMessage().startswith("POST /a%20b was cancelled: outcome cancelled")
    assert record.getMessage().endswith(f"trace_id={problem['trace_id']}")
    assert (record.levelname, record.code, record.trace_id) == ("WARNING", "CANCELLED", problem["trace_id"])
    sent.clear()
    scope = {**scope, "method": "GET", "path": "/operations/k%201", "headers": []}
    await app(scope, receive, send)
    stored = json.loads(sent[1]["body"])
    assert (stored["id"], stored["outcome"], stored["trace_id"]) == ("k 1", "cancelled", problem["trace_id"])
    assert 50 <= stored["after_ms"] < 60_000
    assert dict(sent[0]["headers"])[b"content-length"] == str(len(sent[1]["body"])).encode()
    (row,) = [row async for row in store.table(TABLE).scan()]
    assert 86000 < row.expires_in <= 86400


class Failing(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "status"), [(Failing("s3cr3t"), 500), (ConflictError("The invoice is locked"), 409)]
)
async def test_a_clean_up_that_fails(store, error, status):
    """Its outcome is "failed", also where a binding has answered the exception."""

    async def failing(request):
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            raise error from None

    app = Starlette(routes=[Route("/failing", failing, methods=["POST"])])
    install(app)
    async with client(Cancellable(app, store)) as session:
        headers = {"request-timeout": "0.1", "idempotency-key": "inv-17"}
        response = await session.post("/failing", headers=headers)
        assert response.status_code == 408
        outcome = (await session.get("/operations/inv-17")).json()
    assert (outcome["outcome"], outcome["status"]) == ("failed", status)


async def test_a_clean_up_that_fails_without_a_binding(store):
    """A bare application that raises has failed, without a status."""

    async def app(scope, receive, send):
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            raise Failing from None

    async with client(Cancellable(app, store)) as session:
        headers = {"request-timeout": "0.1", "idempotency-key": "inv-18"}
        await session.post("/", headers=headers)
        outcome = (await session.get("/operations/inv-18")).json()
    assert (outcome["outcome"], outcome.get("status")) == ("failed", None)


def test_a_client_that_leaves_before_its_body_is_read(tmp_path):
    """The handler that has not read 2 MB is cancelled, and does not run to its end."""
    began, ended = threading.Event(), []

    async def upload(request):
        began.set()
        try:
            await asyncio.sleep(20)
            ended.append("finished")
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    app = Starlette(routes=[Route("/upload", upload, methods=["POST"])])
    install(app)
    with serve(Cancellable(app, f"sqlite:///{tmp_path}/operations.db")) as url:
        port = int(url.rpartition(":")[2])
        size = 2_000_000
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(
                f"POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode() + b"x" * size
            )
            assert began.wait(20)
        until = time.monotonic() + 15
        while not ended and time.monotonic() < until:
            time.sleep(0.01)
    assert ended == ["cancelled"]


async def test_how_much_of_a_body_is_read_ahead(store):
    """At most as much as the option says, plus one message; the handler gets all of it, and then the disconnect."""
    asked = []

    async def receive():
        asked.append(1)
        if len(asked) > 50:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": b"x" * 1000, "more_body": len(asked) < 50}

    async def app(scope, receive, send):
        await asyncio.sleep(0.05)
        before = len(asked)
        received = [await receive() for _ in range(50)]
        assert before <= 8
        assert sum(len(message["body"]) for message in received) == 50_000
        assert [(await receive())["type"] for _ in range(2)] == ["http.disconnect"] * 2
        seen.append(before)

    seen = []

    async def send(message):
        pass

    scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
    await Cancellable(app, store, read_ahead=10_000)(scope, receive, send)
    assert seen
