"""Idempotency keys for WSGI: Flask, Django and a bare application."""

import threading
from contextlib import contextmanager
from io import BytesIO
from wsgiref.simple_server import WSGIRequestHandler, make_server

import httpx
import httpx2
import pytest
from flask import Flask, request
from werkzeug.test import Client

from amends.bindings.flask import install
from amends.errors import ConflictError, ServiceUnavailableError
from amends.http.idempotency_wsgi import IdempotentWSGI, commit_sync, environ_caller
from tests.http import django_site


class Shop:
    """A Flask application that records the requests that ran."""

    def __init__(self, store="memory:", **options):
        self.runs, self.fail, self.gate = [], [], None
        self.entered = threading.Event()
        app = Flask("shop")
        install(app)

        @app.route("/order", methods=["POST", "GET"])
        def order():
            self.runs.append(request.get_data())
            self.entered.set()
            if self.gate is not None:
                assert self.gate.wait(20)
            if self.fail:
                raise self.fail.pop(0)
            return {"run": len(self.runs)}, 201, {"location": "/orders/1", "set-cookie": "a=b"}

        @app.post("/stream")
        def stream():
            return (b"x" * 1000 for _ in range(5))

        self.keyed = IdempotentWSGI(app.wsgi_app, store, **options)
        app.wsgi_app = self.keyed
        self.client = Client(app, use_cookies=False)

    def post(self, key="k", path="/order", data=b"{}", method="POST", **headers):
        if key is not None:
            headers["Idempotency-Key"] = key
        return self.client.open(path, method=method, data=data, headers=headers)


@pytest.fixture
def shop(tmp_path):
    opened = []

    def build(**options):
        opened.append(Shop(f"sqlite:///{tmp_path}/keys{len(opened)}.db", **options))
        return opened[-1]

    yield build
    for each in opened:
        each.keyed.close()


def test_a_repeat_is_answered_with_the_first_response(shop):
    """A repeat does not run; every answer echoes the key; other keys, callers, bodies and methods are their own."""
    own = shop()
    first, second = own.post('"k"'), own.post()
    assert (first.status_code, second.status_code, second.data) == (201, 201, first.data)
    assert second.headers["idempotency-replayed"] == "true"
    assert (first.headers["idempotency-key"], second.headers["idempotency-key"]) == ('"k"', "k")
    assert (second.headers["location"], "set-cookie" in second.headers) == ("/orders/1", False)
    assert own.post(data=b"[]").status_code == 422
    assert own.post(**{"x-api-key": "other"}).get_json() == {"run": 2}
    assert own.post(cookie="session=other").get_json() == {"run": 3}
    assert own.post(None).get_json() == {"run": 4}
    assert own.post(method="GET").get_json() == {"run": 5}


@pytest.mark.parametrize(
    ("failure", "then"),
    [
        (ServiceUnavailableError("not yet", retry_after=0.1), "run"),
        (ServiceUnavailableError("lost"), "doubt"),
        (RuntimeError("unexpected"), "doubt"),
        (httpx.ConnectError("no route"), "doubt"),
        (ConflictError("changed", executed="maybe"), "replay"),
    ],
    ids=["no effect", "unavailable", "unexpected", "upstream", "permanent"],
)
def test_what_a_failure_leaves_behind(shop, failure, then):
    """The rules are those of the ASGI middleware."""
    own = shop()
    own.fail = [failure]
    first, second = own.post(), own.post()
    if then == "run":
        assert (first.status_code, second.status_code) == (503, 201)
    elif then == "doubt":
        body = second.get_json(force=True)
        assert (body["code"], body["is_retriable"], len(own.runs)) == ("EFFECT_UNKNOWN", False, 1)
        assert second.headers["idempotency-key"] == "k"
    else:
        assert (second.data, len(own.runs)) == (first.data, 1)


@pytest.mark.parametrize(
    ("answer", "status", "runs"),
    [((201, {"found": 1}), 201, 1), (True, 409, 1), (False, 201, 2), (None, 500, 1)],
)
def test_a_verify_hook_settles_a_doubt(shop, answer, status, runs):
    """The hook is a plain function and gets the facts of the request."""
    calls = []

    def verify(keyed):
        calls.append(keyed)
        return answer

    own = shop(verify=verify)
    own.fail = [RuntimeError("lost")]
    own.post(data=b"[1]")
    assert own.post(data=b"[1]").status_code == status
    assert (calls[0].key, calls[0].path, calls[0].body, calls[0].status) == ("k", "/order", b"[1]", 500)
    assert len(own.runs) == runs


def test_a_running_request_answers_409(shop):
    """A repeat while the first request runs gets a 409 with a wait."""
    own = shop()
    own.gate = threading.Event()
    answers = []
    first = threading.Thread(target=lambda: answers.append(own.post()))
    first.start()
    assert own.entered.wait(20)
    busy = own.post()
    own.gate.set()
    first.join(20)
    assert (busy.status_code, busy.json["executed"], answers[0].status_code) == (409, "maybe", 201)
    assert 25 <= float(busy.headers["retry-after"]) <= 30
    assert own.post().headers["idempotency-replayed"] == "true"


def test_keys_bodies_and_stores_that_do_not_fit(shop, caplog, tmp_path):
    """Two keys, a required key, a large body, a response that is too large, and a store that is down."""
    own = shop(max_body=2000)
    assert own.post("a, b").status_code == 400
    large = own.post(data=b"x" * 3000)
    assert (large.status_code, "idempotency-key" in large.headers) == (201, False)
    assert any("runs without the key" in record.getMessage() for record in caplog.records)
    assert len(own.post("s", "/stream").data) == 5000
    assert own.post("s", "/stream").get_json(force=True)["executed"] == "yes"
    strict = shop(required=True, max_body=2000)
    assert (strict.post(None).status_code, strict.post(data=b"x" * 3000).status_code) == (400, 413)
    down = Shop(f"sqlite:///{tmp_path}/no/such/folder/keys.db")
    refused = down.post()
    assert (refused.status_code, refused.get_json(force=True)["executed"]) == (503, "no")
    assert down.post(None).status_code == 201
    down.keyed.close()


def test_a_committed_effect_is_replayed(shop):
    """`commit_sync` stores the effect and the response together."""
    runs = []

    def app(environ, start_response):
        commit_sync(environ, lambda tx: runs.append(1) or {"paid": True}, status=201)
        raise RuntimeError("while answering")

    keyed = IdempotentWSGI(app, "memory:", transactional=True)
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/pay",
        "HTTP_IDEMPOTENCY_KEY": "k",
        "wsgi.input": BytesIO(),
    }
    with pytest.raises(RuntimeError):
        keyed(dict(environ), lambda *_: None)
    started = []
    assert keyed(dict(environ), lambda *given: started.append(given)) == [b'{"paid":true}']
    assert (started[0][0], runs) == ("201 Created", [1])
    keyed.close()


def test_pieces_are_not_held_back_and_a_client_that_leaves_is_a_doubt():
    """Pieces pass as they are made; a response that the client did not wait for may have had its effect."""

    def app(environ, start_response):
        start_response("200 OK", [])
        yield b"one"
        yield b"two"

    keyed = IdempotentWSGI(app, "memory:")

    def send(key):
        environ = {"REQUEST_METHOD": "POST", "HTTP_IDEMPOTENCY_KEY": key, "HTTP_TRANSFER_ENCODING": "chunked"}
        return keyed(environ, lambda *given: None)

    left = send("left")
    pieces = iter(left)
    assert next(pieces) == b"one"
    assert b"is being worked on" in b"".join(send("left"))
    pieces.close()
    left.close()
    assert b"EFFECT_UNKNOWN" in b"".join(send("left"))
    whole = send("whole")
    assert list(whole) == [b"one", b"two"]
    whole.close()
    assert b"".join(send("whole")) == b"onetwo"
    keyed.close()


@contextmanager
def served(app):
    class Quiet(WSGIRequestHandler):
        def log_message(self, *args):
            pass

    with make_server("127.0.0.1", 0, app, handler_class=Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(20)


def test_django_behind_a_real_server():
    """The fault that Django's middleware answered with decides about the key."""
    keyed = IdempotentWSGI(django_site.wsgi, "memory:")
    with served(keyed) as url, httpx2.Client(base_url=url) as client:

        def post(path, key):
            return client.post(path, headers={"Idempotency-Key": key})

        assert post("/busy", "a").json()["executed"] == "no"
        assert post("/busy", "a").json()["code"] == "SERVICE_UNAVAILABLE"
        assert post("/broken", "b").json()["code"] == "INTERNAL_ERROR"
        assert post("/broken", "b").json()["code"] == "EFFECT_UNKNOWN"
        assert post("/ok", "c").headers["idempotency-key"] == "c"
        assert post("/ok", "c").headers["idempotency-replayed"] == "true"
    keyed.close()


def test_the_result_of_the_application_is_closed(shop):
    """The server's `close` reaches the iterable of the application, once the response is sent."""
    closed = []

    class Result:
        def __iter__(self):
            return iter([b"done"])

        def close(self):
            closed.append(1)

    def app(environ, start_response):
        start_response("200 OK", [("content-length", "4")])
        return Result()

    keyed = IdempotentWSGI(app, "memory:")
    try:
        response = Client(keyed).post("/", headers={"Idempotency-Key": "k"}, data=b"")
        assert response.get_data() == b"done"
        response.close()
        assert closed == [1]
    finally:
        keyed.close()


def called(app, environ=None, **more):
    """Call a WSGI application; return the pieces it gave before its iterator ended, its status and headers."""
    seen = {}

    def start(status, headers, exc_info=None):
        seen.update(status=status, headers=dict(headers))
        return lambda piece: seen.setdefault("written", []).append(piece)

    values = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/",
        "HTTP_IDEMPOTENCY_KEY": "k",
        "wsgi.input": BytesIO(b""),
        **more,
    }
    result = app({**values, **(environ or {})}, start)
    return result, seen


def pieces_app(pieces, headers=(), runs=None):
    def app(environ, start_response):
        if runs is not None:
            runs.append(1)
        start_response("200 OK", list(headers))
        return pieces

    return app


@pytest.mark.parametrize(
    ("pieces", "headers", "stored_after"),
    [
        ([b"a", b"b", b"c"], (), 3),
        ((b"a", b"b"), (), 2),
        ([b"abc", b"d"], (("Content-Length", "3"),), 1),
        ([b"a"], (), 1),
    ],
)
def test_a_response_is_stored_before_its_last_piece_is_sent(pieces, headers, stored_after):
    """A client that has all of it, and sends the request again, gets a replay, also if the server has not finished."""
    runs = []
    keyed = IdempotentWSGI(pieces_app(pieces, headers, runs), "memory:")
    result, _ = called(keyed)
    iterator = iter(result)
    for number in range(1, len(pieces) + 1):
        next(iterator)
        repeat, seen = called(keyed)
        expected = "200 OK" if number >= stored_after else "409 Conflict"
        assert seen["status"] == expected
    assert b"".join(repeat) == b"".join(pieces)[: 3 if headers else None]
    assert (seen["headers"]["idempotency-replayed"], seen["headers"]["Idempotency-Key"]) == ("true", "k")
    assert runs == [1]
    result.close()
    keyed.close()


def test_pieces_that_are_written():
    """An application may write its body with the function that `start_response` returns."""

    def app(environ, start_response):
        write = start_response("200 OK", [])
        write(b"a")
        write(b"b")
        return []

    keyed = IdempotentWSGI(app, "memory:")
    result, seen = called(keyed)
    assert list(result) == []
    assert seen["written"] == [b"a", b"b"]
    assert b"".join(called(keyed)[0]) == b"ab"
    keyed.close()


@pytest.mark.parametrize(
    ("environ", "body"),
    [
        ({}, b""),
        ({"CONTENT_LENGTH": ""}, b""),
        ({"CONTENT_LENGTH": "3", "wsgi.input": BytesIO(b"abcd")}, b"abc"),
        ({"HTTP_TRANSFER_ENCODING": "gzip, Chunked"}, None),
        ({"HTTP_TRANSFER_ENCODING": "gzip"}, b""),
    ],
)
def test_the_body_of_a_request(environ, body):
    """What its length says; none is known of a streamed one. The application reads it again."""
    keyed = IdempotentWSGI(pieces_app([]), "memory:", max_body=3)
    environ = {"wsgi.input": BytesIO(b""), **environ}
    assert keyed._read_body(environ) == body
    if body:
        assert environ["wsgi.input"].read() == body
    for length, code in (("4", "CONTENT_TOO_LARGE"), ("2", "BAD_REQUEST")):
        refused = keyed._read_body({"CONTENT_LENGTH": length, "wsgi.input": BytesIO(b"x")})
        assert refused.fault.code == code


def test_a_body_that_is_just_small_enough_is_stored():
    """A larger one is not, and the answer to a repeat says so."""
    for size, status in ((4, "200 OK"), (5, "409 Conflict")):
        keyed = IdempotentWSGI(pieces_app([b"x" * size]), "memory:", max_body=4)
        result, _ = called(keyed)
        assert b"".join(result) == b"x" * size
        result.close()
        _, seen = called(keyed)
        assert (seen["status"] == "200 OK") is (status == "200 OK")
        keyed.close()


def test_other_methods_and_requests_without_a_key_run():
    """Each time; with `required` a request needs a key."""
    runs = []
    keyed = IdempotentWSGI(pieces_app([b"x"], (), runs), "memory:")
    for environ in ({"REQUEST_METHOD": "GET"}, {"HTTP_IDEMPOTENCY_KEY": None}, {"REQUEST_METHOD": "PUT"}):
        for _ in range(2):
            assert b"".join(called(keyed, environ)[0]) == b"x"
    assert len(runs) == 6
    strict = IdempotentWSGI(pieces_app([b"x"], (), runs), "memory:", required=True)
    assert called(strict, {"HTTP_IDEMPOTENCY_KEY": None})[1]["status"] == "400 Bad Request"
    assert len(runs) == 6


def test_the_callers_of_keys():
    """Credentials, cookies, the authenticated user and the TLS client tell them apart; other headers do not."""
    plain = environ_caller({"HTTP_ACCEPT": "x", "SERVER_NAME": "s"})
    assert plain == environ_caller({})
    others = [
        {"HTTP_AUTHORIZATION": "a"},
        {"HTTP_COOKIE": "a=b"},
        {"HTTP_X_API_KEY": "a"},
        {"REMOTE_USER": "a"},
        {"SSL_CLIENT_S_DN": "CN=a"},
    ]
    assert len({environ_caller(each) for each in others} | {plain}) == 6
