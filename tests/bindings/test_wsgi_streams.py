"""Streams of Flask and Django that fail before their first chunk: no header was sent, so they are problems, too."""

import gc
import json
import warnings
from pathlib import Path

import flask
import httpx2
import pytest
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler
from django.http import FileResponse, HttpResponse, StreamingHttpResponse
from django.test import override_settings
from django.urls import path

import amends.bindings.flask
from amends.bindings.asgi import Problems
from amends.errors import ConflictError
from amends.http.first_chunk import Begun
from tests.http import django_site

assert django_site.settings.configured
SECRET = "s3cr3t of db.internal"
KINDS = {
    "typed": (409, "CONFLICT", "The seat is taken"),
    "bug": (500, "INTERNAL_ERROR", "Something went wrong inside the service"),
    "lost": (503, "SERVICE_UNAVAILABLE", "The service is temporarily unavailable"),
}
ENDED = []


def chunks(kind, before=0):
    """Yield some chunks, then fail."""
    try:
        for number in range(before):
            yield f"{number},"
        if kind == "typed":
            raise ConflictError("The seat is taken")
        if kind == "bug":
            raise RuntimeError(SECRET)
        if kind == "lost":
            raise ConnectionRefusedError(SECRET)
        yield "last"
    finally:
        ENDED.append(kind)


def in_flask():
    app = flask.Flask("shop")
    amends.bindings.flask.install(app)

    @app.get("/<kind>/<int:before>")
    def stream(kind, before):
        content_type = "text/event-stream" if kind == "events" else "text/csv"
        body = flask.stream_with_context(chunks(kind, before))
        return flask.Response(body, content_type=content_type, headers={"X-Shop": "north", "ETag": '"1"'})

    @app.get("/file")
    def file():
        return flask.send_file(__file__)

    @app.get("/empty")
    def empty():
        return flask.Response(iter(()))

    return app


def stream(request, kind, before):
    content_type = "text/event-stream" if kind == "events" else "text/csv"
    response = StreamingHttpResponse(chunks(kind, before), content_type=content_type)
    response["X-Shop"], response["ETag"] = "north", '"1"'
    response.set_cookie("seat", "7")
    return response


async def async_chunks(kind, before):
    for chunk in chunks(kind, before):
        yield chunk


urlpatterns = [
    path("async/<kind>/<int:before>", lambda request, **case: StreamingHttpResponse(async_chunks(**case))),
    path("<kind>/<int:before>", stream),
    path("file", lambda request: FileResponse(Path(__file__).open("rb"))),  # noqa: SIM115 - Django closes it
    path("empty", lambda request: StreamingHttpResponse(iter(()))),
    path("plain", lambda request: HttpResponse("plain")),
]


def in_django():
    with override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=["amends.bindings.django.ProblemMiddleware"]):
        return WSGIHandler()


@pytest.fixture(params=[in_flask, in_django])
def client(request):
    ENDED.clear()
    with override_settings(ROOT_URLCONF=__name__):
        transport = httpx2.WSGITransport(app=request.param())
        with httpx2.Client(transport=transport, base_url="http://shop.example") as client:
            yield client


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_that_fails_first(client, kind):
    """The problem document keeps the headers that do not describe the stream, and the stream is closed once."""
    status, code, detail = KINDS[kind]
    response = client.get(f"/{kind}/0")
    document = response.json()
    assert (response.status_code, document["status"], document["code"], document["detail"]) == (
        status,
        status,
        code,
        detail,
    )
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["x-shop"] == "north"
    assert "etag" not in response.headers
    assert SECRET not in response.text
    assert [kind] == ENDED


@pytest.mark.usefixtures("quiet")
def test_streams_that_succeed(client):
    """Nothing is lost, files and empty streams are left alone, and HEAD does not run the stream."""
    assert client.get("/fine/3").text == "0,1,2,last"
    assert client.get("/fine/0").text == "last"
    assert client.get("/events/1").text == "0,last"
    assert client.get("/empty").text == ""
    assert "Streams of Flask" in client.get("/file").text


@pytest.mark.usefixtures("quiet")
def test_a_stream_that_fails_later(client):
    """Its beginning has been sent, so the connection ends."""
    with pytest.raises(ConflictError):
        client.get("/typed/2")


@pytest.mark.usefixtures("quiet")
def test_the_handlers_of_the_application():
    """They answer what a stream raises, as they answer a view."""
    app = in_flask()
    app.register_error_handler(ConnectionError, lambda error: ("own", 418))
    app.register_error_handler(500, lambda error: ("for 500", 500))
    assert app.test_client().get("/lost/0").text == "own"
    assert app.test_client().get("/bug/0").text == "for 500"
    assert app.test_client().get("/typed/0").status_code == 409


def test_a_head_request_runs_no_stream():
    """It has no body."""
    assert in_flask().test_client().head("/typed/0").status_code == 200


# Django leaves the file for the request's body open if sending the response raises.
@pytest.mark.usefixtures("quiet")
async def test_django_under_asgi():
    """There the headers come before the stream: `Problems` around the application holds them back."""
    with override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=["amends.bindings.django.ProblemMiddleware"]):
        transport = httpx2.ASGITransport(app=Problems(ASGIHandler()))
        async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as client:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)
                response = await client.get("/async/typed/0")
                gc.collect()
            assert (response.status_code, json.loads(response.text)["code"]) == (409, "CONFLICT")
            assert (await client.get("/async/fine/3")).text == "0,1,2,last"
            assert (await client.get("/plain")).text == "plain"


def test_closing_a_stream_that_was_begun():
    """Its generator ends, also if no more of it is read."""
    ENDED.clear()
    begun = Begun(chunks("fine", 3))
    assert next(begun) == "0,"
    begun.close()
    assert ENDED == ["fine"]
    Begun(iter([1])).close()
