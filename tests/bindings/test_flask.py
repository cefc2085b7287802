"""Flask, in process and behind gunicorn."""

import httpx2
import pytest
from flask import Flask, request
from werkzeug.exceptions import Forbidden, HTTPException

from amends import extract
from amends.bindings.flask import install
from amends.errors import ConflictError
from amends.http.current import CURRENT
from tests.http.flask_site import app
from tests.http.seats import SeatTaken
from tests.http.serving import process
from tests.ports import free_port


@pytest.mark.parametrize(
    ("path", "status", "code", "detail"),
    [
        ("/busy", 503, "SERVICE_UNAVAILABLE", "Back in a moment"),
        ("/conflict", 409, "CONFLICT", "It changed"),
        ("/broken", 500, "INTERNAL_ERROR", "Something went wrong inside the service"),
        ("/nowhere", 404, "NOT_FOUND", "The thing asked for does not exist"),
        ("/teapot", 418, "BAD_REQUEST", "Short and stout"),
    ],
)
def test_failures_are_problems_with_every_header(path, status, code, detail):
    """P1, P2: every failure is a problem, and `after_request` functions add their headers."""
    response = app.test_client().get(path)
    body = response.get_json(force=True)
    assert (response.status_code, body["status"], body["code"], body["detail"]) == (
        status,
        status,
        code,
        detail,
    )
    assert response.content_type == "application/problem+json"
    assert response.headers["x-frame-options"] == "DENY"
    assert "s3cr3t" not in response.text
    assert body["doc_uri"].startswith("http://localhost/errors/")


def test_allow_head_redirects_and_own_responses():
    """A 405 keeps `Allow`; redirects and responses of the application are unchanged; pages are served."""
    client = app.test_client()
    refused = client.post("/conflict")
    assert refused.get_json(force=True)["code"] == "METHOD_NOT_ALLOWED"
    assert {"GET", "HEAD"} <= set(refused.headers["allow"].split(", "))
    assert client.head("/conflict").data == b""
    assert client.get("/made").text == "made by hand"
    assert client.get("/moved").status_code == 302
    assert client.get("/errors/conflict.md").text.startswith("# CONFLICT")
    page = client.get("/busy", headers={"accept": "text/html"})
    assert page.content_type.startswith("text/html")


def test_handlers_of_the_application_are_kept():
    """`install` does not replace registered error handlers."""
    from flask import Flask

    from amends.bindings.flask import install

    own = Flask("own")
    own.register_error_handler(Exception, lambda exc: ("mine", 299))

    @own.get("/")
    def root():
        raise ValueError

    @own.get("/conflict")
    def conflict():
        raise ConflictError

    install(own)
    assert own.test_client().get("/").status_code == 299
    assert own.test_client().get("/conflict").status_code == 409

    other = Flask("other")
    other.register_error_handler(HTTPException, lambda exc: ("mine", 298))
    other.add_url_rule("/conflict", view_func=conflict)
    install(other)
    assert other.test_client().get("/nowhere").status_code == 298
    assert other.test_client().get("/conflict").get_json(force=True)["code"] == "CONFLICT"


def test_an_exceptions_own_response_is_kept():
    """Raised redirects, and exceptions with a response attached, are sent unchanged."""
    from flask import Flask, Response

    from amends.bindings.flask import install

    class Moved(HTTPException):
        code = 303

        def get_headers(self, *args):
            return [("Location", "/there")]

    own = Flask("own")

    @own.get("/moved")
    def moved():
        raise Moved

    @own.get("/forbidden")
    def forbidden():
        raise Forbidden(response=Response("by hand", 403))

    install(own)
    client = own.test_client()
    assert (client.get("/moved").status_code, client.get("/moved").headers["location"]) == (303, "/there")
    assert client.get("/forbidden").text == "by hand"


def test_behind_gunicorn():
    """P1–P5 over HTTP/1.1 with keep-alive."""
    port = free_port()
    command = ("-m", "gunicorn", "-b", f"127.0.0.1:{port}", "--threads", "2", "tests.http.flask_site:app")
    with process(*command, port=port) as (url, _), httpx2.Client(base_url=url) as session:
        for _ in range(3):
            response = session.get("/busy")
            fault = extract(response)
            assert (fault.code, fault.retry_after, fault.recovery) == (
                "SERVICE_UNAVAILABLE",
                0.2,
                "transient",
            )
            assert response.headers["retry-after"] == "1"
            assert session.get(fault.doc_uri).status_code == 200
            assert session.head("/busy").status_code == 503
            assert "s3cr3t" not in session.get("/broken").text
            assert session.get("/ok").json() == {"fine": True}


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("place", ["application", "blueprint"])
def test_a_handler_for_500_is_called(place, late):
    """It is called for unexpected exceptions, and not for errors with a code of their own."""
    from flask import Blueprint, Flask

    from amends.bindings.flask import install

    own, part = Flask("own"), Blueprint("part", "part")
    calls = []

    def mine(error):
        calls.append(error.original_exception)
        return {"mine": True}, 500

    @part.get("/<kind>")
    def fail(kind):
        if kind == "seat":
            raise SeatTaken("s3cr3t")
        if kind == "conflict":
            raise ConflictError("It changed", headers={"X-Version": "7\r\nX-Evil: 1"})
        raise RuntimeError("s3cr3t")

    @part.get("/group")
    def group():
        raise ExceptionGroup("one", [ConflictError("taken")])

    if late:
        install(own, errors={SeatTaken: "CONFLICT"})
    (own if place == "application" else part).register_error_handler(500, mine)
    if not late:
        install(own, errors={SeatTaken: "CONFLICT"})
    own.register_blueprint(part)
    client = own.test_client()
    assert client.get("/broken").get_json() == {"mine": True}
    assert [type(each) for each in calls] == [RuntimeError]
    conflict = client.get("/conflict")
    assert (conflict.status_code, conflict.headers["x-version"]) == (409, "7  X-Evil: 1")
    assert conflict.headers["cache-control"] == "no-store"
    seat = client.get("/seat")
    assert (seat.status_code, "s3cr3t" in seat.text, len(calls)) == (409, False, 1)
    assert (client.get("/group").status_code, len(calls)) == (409, 1)


def test_urls_come_from_trusted_hosts():
    """A made-up `Host` is not in the document."""
    body = app.test_client().get("/conflict", headers={"host": "evil.example"}).get_json(force=True)
    assert (body["type"], "doc_uri" in body, "evil" in str(body)) == ("about:blank", False, False)


def test_a_typed_error_of_an_after_request_function():
    """Flask wraps what such a function raises in its own 500; a typed error is answered as what it is."""
    app = Flask("shop")

    @app.get("/")
    def index():
        return "fine"

    @app.after_request
    def check(response):
        raise (
            ConflictError("It changed", headers={"X-Version": "7"})
            if "typed" in request.args
            else KeyError("s3cr3t")
        )

    install(app)
    typed = app.test_client().get("/?typed=1")
    assert (typed.status_code, typed.get_json(force=True)["code"]) == (409, "CONFLICT")
    assert typed.headers["X-Version"] == "7"
    broken = app.test_client().get("/")
    assert (broken.status_code, broken.get_json(force=True)["code"]) == (500, "INTERNAL_ERROR")


@pytest.mark.parametrize("path", ["/conflict", "/broken", "/nowhere"])
def test_the_current_request_ends_with_it(path):
    """What the thread does afterwards does not belong to the request."""
    before = CURRENT.get()
    app.test_client().get(path)
    assert CURRENT.get() is before


@pytest.mark.parametrize("status", [409, 404, 503])
def test_an_empty_error_response_is_completed(status):
    """`return "", 409` becomes a problem document with the response's headers; text, JSON and streams of its own stay."""
    shop = Flask("shop")

    @shop.after_request
    def secure(response):
        response.headers["x-frame-options"] = "DENY"
        return response

    install(shop)

    @shop.get("/empty")
    def empty():
        return "", status, {"X-Shop": "north", "Retry-After": "7"}

    @shop.get("/text")
    def text():
        return "Ask Ann", status

    @shop.get("/stream")
    def stream():
        return iter([]), status

    client = shop.test_client()
    response = client.get("/empty")
    assert response.content_type == "application/problem+json"
    body = response.get_json(force=True)
    assert (response.status_code, body["status"]) == (status, status)
    assert (response.headers["x-shop"], response.headers["x-frame-options"]) == ("north", "DENY")
    assert response.headers.getlist("Retry-After") == ["7"]
    assert client.get("/text").text == "Ask Ann"
    assert client.get("/stream").content_type.startswith("text/html")
    assert client.head("/empty").data == b""


def test_a_mounted_wsgi_application_is_left_alone():
    """What is mounted beside Flask does not pass through it: its answers stay (documented)."""
    from werkzeug.middleware.dispatcher import DispatcherMiddleware
    from werkzeug.test import Client

    def raw(environ, start_response):
        start_response("409 Conflict", [("Content-Length", "0")])
        return [b""]

    shop = Flask("shop")
    install(shop)
    response = Client(DispatcherMiddleware(shop.wsgi_app, {"/raw": raw})).get("/raw")
    assert (response.status_code, response.data, "content-type" in response.headers) == (409, b"", False)
