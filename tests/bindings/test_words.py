"""The words of an exception that states a status, such as `HTTPException(500, "words")`, in every framework."""

import json

import flask
import httpx2
import pytest
import quart
from django.test import RequestFactory
from fastapi import FastAPI
from fastapi import HTTPException as FastAPIError
from litestar import Litestar
from litestar import get as litestar_get
from litestar.exceptions import HTTPException as LitestarError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route

import amends.bindings.fastapi
import amends.bindings.flask
import amends.bindings.starlette
from amends.bindings.asgi import Problems
from amends.core.vocabulary import vocabulary
from tests.http import django_site

assert django_site.settings.configured

from rest_framework.decorators import api_view  # noqa: E402 - needs the settings
from rest_framework.exceptions import APIException  # noqa: E402

WORDS = "The stock list is being rebuilt"
SECRET = "could not connect to db.internal as svc"


def refuse(kind, repeat, named="detail"):
    """Raise a framework's exception while another is handled, with own words or with those of the other."""

    def raise_refusal(status):
        try:
            raise OSError(SECRET)
        except OSError as error:
            words = f"Failed: {error}" if repeat else WORDS
            raise kind(**{"status_code": status, named: words})  # noqa: B904 - as applications write it

    return raise_refusal


async def over_asgi(app):
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as client:
        return (await client.get("/")).text


async def in_starlette(status, repeat, *, install=True):
    async def page(request):
        refuse(HTTPException, repeat)(status)

    app = Starlette(routes=[Route("/", page)])
    if install:
        amends.bindings.starlette.install(app)
    return await over_asgi(app if install else Problems(app))


async def in_wrapped_starlette(status, repeat):
    return await in_starlette(status, repeat, install=False)


async def in_fastapi(status, repeat, *, install=True):
    app = FastAPI()
    if install:
        amends.bindings.fastapi.install(app)

    @app.get("/")
    def page():
        refuse(FastAPIError, repeat)(status)

    return await over_asgi(app if install else Problems(app))


async def in_wrapped_fastapi(status, repeat):
    return await in_fastapi(status, repeat, install=False)


async def in_litestar(status, repeat):
    @litestar_get("/")
    async def page() -> None:
        refuse(LitestarError, repeat)(status)

    return await over_asgi(Problems(Litestar([page], logging_config=None)))


async def in_flask(status, repeat):
    app = flask.Flask("shop")
    amends.bindings.flask.install(app)

    @app.get("/")
    def page():
        refuse(lambda status_code, detail: flask.abort(status_code, detail), repeat)(status)

    return app.test_client().get("/").text


async def in_rest_framework(status, repeat):
    def error(status_code, detail):
        raised = APIException(detail)
        raised.status_code = status_code
        return raised

    @api_view(["GET"])
    def page(request):
        refuse(error, repeat)(status)

    return page(RequestFactory().get("/")).content


async def in_quart(status, repeat):
    app = quart.Quart("shop")

    @app.get("/")
    async def page():
        refuse(lambda status_code, detail: quart.abort(status_code, detail), repeat)(status)

    return await over_asgi(Problems(app))


@pytest.mark.parametrize("status", [500, 502])
@pytest.mark.parametrize(
    "framework",
    [
        in_starlette,
        in_wrapped_starlette,
        in_fastapi,
        in_wrapped_fastapi,
        in_litestar,
        in_flask,
        in_rest_framework,
    ],
)
async def test_an_author_has_the_word(framework, status):
    """The author's words are sent; those that repeat the exception behind are replaced by the code's sentence."""
    assert json.loads(await framework(status, repeat=False))["detail"] == WORDS
    answer = await framework(status, repeat=True)
    sentence = vocabulary("http").status_row(status).message
    assert json.loads(answer)["detail"] == sentence
    assert "db.internal" not in str(answer)


@pytest.mark.parametrize("status", [500, 502])
async def test_words_on_a_page(status):
    """Quart writes a page, whose text is not read."""
    for repeat in (False, True):
        document = json.loads(await in_quart(status, repeat=repeat))
        assert document["detail"] == vocabulary("http").status_row(status).message


@pytest.mark.parametrize(("detail", "expected"), [({"stock": 7}, {"stock": 7}), ({"why": SECRET}, None)])
async def test_an_object_as_detail(detail, expected):
    """An object is `details`, unless it repeats the exception behind."""
    app = FastAPI()
    amends.bindings.fastapi.install(app)

    @app.get("/")
    def page():
        try:
            raise OSError(SECRET)
        except OSError:
            raise FastAPIError(503, detail)  # noqa: B904 - as applications write it

    assert json.loads(await over_asgi(app)).get("details") == expected
