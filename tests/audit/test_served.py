"""
Real servers on the loopback with `install` (with a base URL) or `guard` and nothing else: each scores 3 by its address alone.

`amends audit http URL` has no flag, and the services have no OpenAPI document, unless the framework serves one by itself.
"""

import json
import textwrap

import fastmcp
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from amends.bindings import fastmcp as fastmcp_binding
from tests.audit.test_surfaces import agent, run, server
from tests.http.serving import process, serve
from tests.ports import free_port

UVICORN = """
    import uvicorn
    uvicorn.run(app, port=PORT, log_config=None)
"""
WSGI = """
    from wsgiref.simple_server import make_server
    make_server("127.0.0.1", PORT, app).serve_forever()
"""
FLASK = """
    from flask import Flask, jsonify
    from amends.bindings.flask import install
    app = Flask("served")
    install(app, base_url=URL)

    @app.get("/items/<int:number>")
    def item(number):
        return jsonify(number=number)
"""
STARLETTE = """
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route
    from amends.bindings.starlette import install

    async def item(request):
        return JSONResponse({})

    app = Starlette(routes=[Route("/items/{number:int}", item)])
    install(app, base_url=URL)
"""
FASTAPI = """
    import fastapi
    from amends.bindings.fastapi import install
    app = fastapi.FastAPI(OPTIONS)
    install(app, base_url=URL)

    @app.get("/items/{number}")
    def item(number: int):
        return {}
"""
DJANGO = """
    import django
    from django.conf import settings
    settings.configure(
        ROOT_URLCONF=__name__,
        ALLOWED_HOSTS=["*"],
        SECRET_KEY="x",
        INSTALLED_APPS=[MORE],
        MIDDLEWARE=["amends.bindings.django.ProblemMiddleware"],
        AMENDS={"base_url": URL},
        REST_FRAMEWORK={
            "EXCEPTION_HANDLER": "amends.bindings.django.exception_handler",
            "UNAUTHENTICATED_USER": None,
            "DEFAULT_AUTHENTICATION_CLASSES": [],
        },
    )
    django.setup()
    from django.http import JsonResponse
    from django.urls import path
    urlpatterns = [path("items/<int:number>", lambda request, number: JsonResponse({}))]
"""
REST_FRAMEWORK = """
    from rest_framework.response import Response
    from rest_framework.views import APIView

    class Item(APIView):
        def get(self, request, number):
            return Response({})

    urlpatterns = [path("items/<int:number>", Item.as_view())]
"""
DJANGO_WSGI = """
    from django.core.wsgi import get_wsgi_application
    app = get_wsgi_application()
"""
DJANGO_ASGI = """
    from django.core.asgi import get_asgi_application
    app = get_asgi_application()
"""
LITESTAR = """
    from litestar import Litestar, get
    from amends.bindings.asgi import Problems

    @get("/items/{number:int}")
    async def item(number: int) -> dict[str, int]:
        return {}

    app = Problems(Litestar([item], openapi_config=None), base_url=URL)
"""
QUART = """
    from quart import Quart
    from amends.bindings.asgi import Problems
    served = Quart("served")

    @served.get("/items/<int:number>")
    async def item(number):
        return {}

    app = Problems(served, base_url=URL)
"""
PLAIN_ASGI = """
    from amends.bindings.asgi import Problems

    async def served(scope, receive, send):
        assert scope["type"] == "http"
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body", "body": b"Not Found"})

    app = Problems(served, base_url=URL)
"""
SERVERS = {
    "starlette, uvicorn": STARLETTE + UVICORN,
    "fastapi, uvicorn": FASTAPI.replace("OPTIONS", "") + UVICORN,
    "fastapi without its document": FASTAPI.replace("OPTIONS", "openapi_url=None") + UVICORN,
    "flask, werkzeug": FLASK + "\n    app.run(port=PORT)\n",
    "flask, wsgiref": FLASK + WSGI,
    "django, wsgiref": DJANGO.replace("MORE", "") + DJANGO_WSGI + WSGI,
    "django, uvicorn": DJANGO.replace("MORE", "") + DJANGO_ASGI + UVICORN,
    "rest framework, wsgiref": DJANGO.replace("MORE", "'rest_framework'")
    + REST_FRAMEWORK
    + DJANGO_WSGI
    + WSGI,
    "litestar, uvicorn": LITESTAR + UVICORN,
    "quart, uvicorn": QUART + UVICORN,
    "plain asgi, uvicorn": PLAIN_ASGI + UVICORN,
}


def serving(source, tmp_path, base_url=None):
    """Run a program that serves at PORT, whose base URL is its address or the given one."""
    port = free_port()
    head = f"PORT, URL = {port}, {base_url or f'http://127.0.0.1:{port}'!r}\n"
    (tmp_path / "served.py").write_text(head + textwrap.dedent(source))
    return process(str(tmp_path / "served.py"), port=port)


def audited(source, tmp_path, *flags, base_url=None):
    """Return the report of `amends audit http URL` on such a program."""
    with serving(source, tmp_path, base_url) as (url, _):
        code, out = run("http", url, "--json", *flags)
    assert code == 0, out
    return json.loads(out)


@pytest.mark.parametrize("name", SERVERS)
def test_install_and_nothing_else(name, tmp_path):
    """The address is enough, and the score is no range."""
    report = audited(SERVERS[name], tmp_path)
    assert (report["score"], report["findings"]) == (3, []), report["because"]


def test_the_base_url_of_production(tmp_path):
    """A service in a test links to the addresses of production; only the named one is contacted."""
    report = audited(SERVERS["starlette, uvicorn"], tmp_path, base_url="https://api.invalid")
    assert (report["score"], report["findings"]) == (3, [])
    sent = [one["sent"] for one in report["evidence"]["answers"] if one["probe"] == "unknown-code"]
    assert sent == ["GET /errors/amends-audit"]


def test_the_report_says_that_no_own_value_was_known(tmp_path):
    """The score is that of what was asked, so the report says what was not."""
    report = audited(SERVERS["flask, wsgiref"], tmp_path)
    (reason,) = [each for each in report["not_probed"] if each.startswith("wrong-type")]
    assert "--path" in reason
    named = audited(SERVERS["flask, wsgiref"], tmp_path, "--path", "/items/7")
    assert (named["score"], [each for each in named["not_probed"] if "wrong-type" in each]) == (3, [])
    assert "unknown-code" not in {one["probe"] for one in named["evidence"]["answers"]}


def guarded_fastmcp():
    served = fastmcp.FastMCP("seats")

    @served.tool
    def free_seats(train: int) -> int:
        return train

    fastmcp_binding.guard(served)
    return served.http_app()


@pytest.mark.parametrize(
    ("kind", "make", "path"),
    [
        ("mcp", lambda: server(ours=True).streamable_http_app(), "/mcp"),
        ("mcp", guarded_fastmcp, "/mcp"),
        ("a2a", lambda: agent(ours=True), ""),
    ],
    ids=["mcp", "fastmcp", "a2a"],
)
def test_guard_and_nothing_else(kind, make, path):
    """MCP and FastMCP servers and an A2A agent, by their address alone."""
    with serve(make()) as url:
        code, out = run(kind, f"{url}{path}", "--json")
    report = json.loads(out)
    assert (code, report["score"], report["findings"]) == (0, 3, []), report["because"]


def documented(page, missing, link="{}/problems/not-found"):
    """A service of another project, whose failures say everything but a field and link to pages about them."""

    def about(request):
        known = request.path_params["code"] == "not-found"
        return page if known else missing(request)

    def other(request):
        return problem(404, type=link.format(str(request.base_url).rstrip("/")))

    routes = [Route("/problems/{code}", about), Route("/{rest:path}", other, methods=["GET", "SEARCH"])]
    return Starlette(routes=routes)


def problem(status, **members):
    body = {
        "type": "https://docs.invalid/not-found",
        "title": "No",
        "status": status,
        "detail": "No.",
        "is_retriable": False,
        "executed": "no",
        "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
        **members,
    }
    return JSONResponse(body, status, media_type="application/problem+json")


PAGE = PlainTextResponse("Nothing is here.")


@pytest.mark.parametrize(
    ("missing", "link", "expected", "asked"),
    [
        (lambda _: problem(404, field="name"), None, (3, 3), True),
        (lambda _: problem(404), None, (1, 3), True),  # the pages may be files
        (lambda _: problem(422), None, (1, 3), True),  # its text may name the value
        (lambda _: problem(500), None, (1, 1), True),  # it does not refuse it
        (lambda _: PAGE, None, (1, 3), True),  # every path has a page
        (lambda _: problem(404, field="name"), "{}/problems#not-found", (1, 3), False),
        (lambda _: problem(404, field="name"), "{}/problems/?code=not-found", (1, 3), False),
        (lambda _: problem(404, field="name"), "{}/problems/gone", (1, 3), False),
        (lambda _: problem(404, field="name"), "about:blank", (1, 2), False),
        (lambda _: Response(status_code=307, headers={"location": "/"}), None, (1, 3), True),
    ],
    ids=[
        "named",
        "not named",
        "422",
        "500",
        "accepted",
        "fragment",
        "query",
        "dead link",
        "no link",
        "redirect",
    ],
)
def test_the_pages_of_another_service(missing, link, expected, asked):
    """What counts for our pages counts for all; a refusal that names nothing is no yes."""
    with serve(documented(PAGE, missing, link or "{}/problems/not-found")) as url:
        report = json.loads(run("http", url, "--json")[1])
    sent = [one["sent"] for one in report["evidence"]["answers"] if one["probe"] == "unknown-code"]
    assert sent == (["GET /problems/amends-audit"] if asked else [])
    assert (report["at_least"], report["at_most"]) == expected, report["because"]
