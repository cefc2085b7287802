"""A server with `install` (with a base URL) or `guard` and nothing else scores 3; fixtures run in process without sockets."""

import asyncio
import socket
import subprocess
import sys

import fastapi
import fastmcp
import pytest
from flask import Flask, jsonify
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from amends.audit.surfaces import score
from amends.audit.surfaces.a2a import observe_a2a
from amends.audit.surfaces.http import observe_http
from amends.audit.surfaces.wsgi import WsgiApp, is_wsgi
from amends.bindings import fastapi as fastapi_binding
from amends.bindings import fastmcp as fastmcp_binding
from amends.bindings import flask as flask_binding
from amends.bindings import starlette as starlette_binding
from tests.audit.test_surfaces import agent, api, server
from tests.http.serving import serve

URL = "https://api.example"
NUMBER = {"name": "number", "in": "path", "schema": {"type": "integer"}}
DESCRIBED = {"paths": {"/items/{number}": {"get": {"parameters": [NUMBER]}}}}


def flask_app():
    app = Flask("audited")
    flask_binding.install(app, base_url=URL)

    @app.get("/items/<int:number>")
    def item(number):
        return jsonify(number=number)

    return app


def starlette_app():
    async def item(request):
        return JSONResponse({})

    app = Starlette(routes=[Route("/items/{number:int}", item)])
    starlette_binding.install(app, base_url=URL)
    return app


@pytest.fixture
def no_sockets(monkeypatch):
    """Any connection fails. Event loops have a pair of sockets of their own, which they do not connect."""

    def refuse(*_):
        raise AssertionError("a fixture opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "bind", refuse)


@pytest.mark.parametrize("make", [flask_app, starlette_app])
def test_installed_applications(audit_http, no_sockets, make):
    """With its OpenAPI document the score is 3, and without one if its routes say which parameter is a number."""
    for options in ({"openapi": DESCRIBED}, {}):
        report = audit_http(make(), **options)
        assert (report.score, report.findings) == (3, [])


DJANGO = """
import asyncio
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import JsonResponse
from django.urls import include, path, re_path
from amends.audit.surfaces import score
from amends.audit.surfaces.a2a import observe_a2a
from amends.audit.surfaces.http import observe_http

settings.configure(
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["*"],
    SECRET_KEY="x",
    MIDDLEWARE=["amends.bindings.django.ProblemMiddleware"],
    AMENDS={"base_url": "https://api.example"},
)
shop = [path("items/<int:number>", lambda request, number: JsonResponse({}))]
urlpatterns = [path("", include(shop)), re_path("^old/([0-9]+)$", lambda request, number: JsonResponse({}))]
described = %r
for options in ({"openapi": described}, {"paths": ["/items/7"]}, {}):
    report = score(asyncio.run(observe_http("http://x", app=get_wsgi_application(), **options)))
    print(report.score, report.findings)
"""


def test_django():
    """The middleware with a base URL; in a program of its own, because Django is configured once per process."""
    program = [sys.executable, "-c", DJANGO % DESCRIBED]
    done = subprocess.run(program, capture_output=True, text=True, timeout=100)
    assert done.stdout.strip() == "3 []\n3 []\n3 []", done.stderr


REST_FRAMEWORK = """
import asyncio
import django
from django.conf import settings

settings.configure(
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["*"],
    SECRET_KEY="x",
    INSTALLED_APPS=["rest_framework"],
    MIDDLEWARE=["amends.bindings.django.ProblemMiddleware"],
    AMENDS={"base_url": "https://api.example"},
    REST_FRAMEWORK={
        "EXCEPTION_HANDLER": "amends.bindings.django.exception_handler",
        "UNAUTHENTICATED_USER": None,
        "DEFAULT_AUTHENTICATION_CLASSES": [],
    },
)
django.setup()
from django.core.wsgi import get_wsgi_application
from django.urls import path
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView
from amends.audit.surfaces import score
from amends.audit.surfaces.http import observe_http

class Item(serializers.Serializer):
    limit = serializers.IntegerField()

class Items(APIView):
    def get(self, request):
        item = Item(data=request.query_params)
        item.is_valid(raise_exception=True)
        return Response({})

    def post(self, request):
        item = Item(data=request.data)
        item.is_valid(raise_exception=True)
        return Response({})

urlpatterns = [path("items", Items.as_view())]
limit = {"name": "limit", "in": "query", "required": True, "schema": {"type": "integer"}}
item = {"type": "object", "required": ["limit"], "properties": {"limit": {"type": "integer"}}}
body = {"content": {"application/json": {"schema": item}}}
described = {"paths": {"/items": {"get": {"parameters": [limit]}, "post": {"requestBody": body}}}}
for options in ({"openapi": described, "writes": True}, {"paths": ["/items?limit=3"]}):
    report = score(asyncio.run(observe_http("http://x", app=get_wsgi_application(), **options)))
    print(report.score, report.findings)
"""


def test_rest_framework():
    """The middleware and the exception handler, and nothing else."""
    done = subprocess.run([sys.executable, "-c", REST_FRAMEWORK], capture_output=True, text=True, timeout=100)
    assert done.stdout.strip() == "3 []\n3 []", done.stderr


def test_a_fastapi_application_that_does_not_serve_its_document(audit_http, no_sockets):
    """In this process the application is asked for it."""
    app = fastapi.FastAPI(openapi_url=None)
    fastapi_binding.install(app, base_url=URL)

    @app.get("/items/{number}")
    def item(number: int):
        return {}

    report = audit_http(app)
    assert (report.score, report.findings) == (3, [])


@pytest.mark.parametrize("linked", ["header", "catalogue"])
def test_the_document_is_found_by_its_links(linked):
    """By rel=service-desc of the root (RFC 8631), or by the API catalogue of the host (RFC 9727)."""

    async def item(request):
        return JSONResponse({})

    async def described(request):
        return JSONResponse(DESCRIBED)

    async def root(request):
        header = {"Link": '<https://elsewhere.test/a>; rel="service-desc", </described>; rel="service-desc"'}
        return JSONResponse({}, headers=header if linked == "header" else {})

    async def catalogue(request):
        return JSONResponse({"linkset": [{"anchor": "/", "service-desc": [{"href": "/described"}]}]})

    routes = [Route("/", root), Route("/items/{number:int}", item), Route("/described", described)]
    if linked == "catalogue":
        routes.append(Route("/.well-known/api-catalog", catalogue))
    app = Starlette(routes=routes)
    starlette_binding.install(app, base_url=URL)
    with serve(app) as url:
        report = score(asyncio.run(observe_http(url)))
    assert (report.score, report.findings) == (3, [])


def test_in_process_without_sockets(audit_http, audit_mcp, audit_a2a, no_sockets):
    """All fixtures, including the probes through the proxy."""
    assert audit_http(api(ours=True)).score == 3
    assert audit_mcp(server(ours=True)).score == 3
    assert audit_a2a(agent(ours=True), writes=True).score == 3


def test_a_guarded_fastmcp_server(audit_mcp, no_sockets):
    """`guard` of FastMCP, and nothing else."""
    served = fastmcp.FastMCP("seats")

    @served.tool
    def free_seats(train: int) -> int:
        return train

    fastmcp_binding.guard(served)
    report = audit_mcp(served)
    assert (report.score, report.findings) == (3, [])


def test_wsgi_applications():
    """Applications are distinguished by their arguments."""

    def wsgi(environ, start_response):
        start_response("404 Not Found", [("Content-Type", "text/plain")])
        return [b"no"]

    async def asgi(scope, receive, send):
        """Do nothing."""

    assert is_wsgi(wsgi)
    assert is_wsgi(Flask("x"))
    assert not is_wsgi(asgi)
    assert not is_wsgi(Starlette())
    assert not is_wsgi(WsgiApp(wsgi))


def test_an_agent_whose_card_names_another_address():
    """The path of the card's URL is called at the named address; if the agent is not there, there is no score."""
    with serve(agent(ours=True)) as url:
        report = score(asyncio.run(observe_a2a(url, writes=True)))
    assert (report.score, report.findings) == (3, [])

    def elsewhere(request):
        return JSONResponse({"url": "https://ada:secret@agents.example/rpc", "protocolVersion": "0.3"})

    with serve(Starlette(routes=[Route("/.well-known/agent-card.json", elsewhere)])) as url:
        report = score(asyncio.run(observe_a2a(url)))
    assert (report.at_least, report.at_most, report.findings) == (0, 3, [])
    (reason,) = report.not_probed
    assert reason.startswith("unknown-method: POST /rpc answered 404; the card names https://")
    assert "secret" not in reason
