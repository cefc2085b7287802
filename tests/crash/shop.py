"""A shop as an application of each framework: it takes orders, and reaches the instants of each."""

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.crash.instants import reach


class Shop:
    """The orders. Only the part that has the effect reaches the instants around it."""

    def __init__(self, folder, *, dies=True):
        self.folder, self.dies = Path(folder), dies

    def reach(self, instant):
        if self.dies:
            reach(self.folder, instant)

    def order(self):
        self.reach("before the effect")
        place(self.folder)
        self.reach("after the effect")
        return {"placed": "book"}

    def asgi(self, app):
        """Wrap the application: the record is written before the answer begins."""

        async def wrapped(scope, receive, send):
            async def sending(message):
                if (
                    scope["type"] == "http"
                    and scope["method"] == "POST"
                    and message["type"] == "http.response.start"
                ):
                    self.reach("after the record")
                await send(message)

            await app(scope, receive, sending)

        return wrapped

    def wsgi(self, app):
        def wrapped(environ, start_response):
            answer = app(environ, start_response)
            if environ["REQUEST_METHOD"] == "POST":
                self.reach("after the record")
            return answer

        return wrapped


def create(folder):
    """Make the file of the orders."""
    with closing(sqlite3.connect(Path(folder) / "orders.db", timeout=20)) as file, file:
        file.execute("CREATE TABLE IF NOT EXISTS orders (item TEXT)")


def place(folder):
    """Place an order."""
    with closing(sqlite3.connect(Path(folder) / "orders.db", timeout=20)) as file, file:
        file.execute("INSERT INTO orders VALUES ('book')")


def placed(folder):
    """Return how many orders were placed."""
    with closing(sqlite3.connect(Path(folder) / "orders.db", timeout=20)) as file:
        return file.execute("SELECT count(*) FROM orders").fetchone()[0]


def starlette(shop, ours, store):
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def order(request):
        await request.body()
        return JSONResponse(await run_in_threadpool(shop.order), 201)

    app = Starlette(routes=[Route("/orders", order, methods=["POST"])])
    if ours:
        from amends.bindings.starlette import install
        from amends.http.idempotency import Idempotent

        install(app)
        app = Idempotent(app, **store)
    return shop.asgi(app)


def fastapi(shop, ours, store):
    from fastapi import FastAPI

    app = FastAPI()

    @app.post("/orders", status_code=201)
    def order(body: dict) -> dict:
        return shop.order()

    if ours:
        from amends.bindings.fastapi import install
        from amends.http.idempotency import Idempotent

        install(app)
        app.add_middleware(Idempotent, **store)
    return shop.asgi(app)


def flask(shop, ours, store):
    from flask import Flask

    app = Flask("shop")

    @app.post("/orders")
    def order():
        return shop.order(), 201

    wsgi = app
    if ours:
        from amends.bindings.flask import install
        from amends.http.idempotency_wsgi import IdempotentWSGI

        install(app)
        wsgi = IdempotentWSGI(app, **store)
    return shop.wsgi(wsgi)


def django(shop, ours, store):
    import django as library
    from django.conf import settings
    from django.core.wsgi import get_wsgi_application
    from django.http import JsonResponse
    from django.urls import path

    def order(request):
        return JsonResponse(shop.order(), status=201)

    class Urls:
        urlpatterns = (path("orders", order),)

    settings.configure(
        ROOT_URLCONF=Urls,
        ALLOWED_HOSTS=["*"],
        LOGGING_CONFIG=None,
        MIDDLEWARE=["amends.bindings.django.ProblemMiddleware"] if ours else [],
    )
    library.setup()
    wsgi = get_wsgi_application()
    if ours:
        from amends.http.idempotency_wsgi import IdempotentWSGI

        wsgi = IdempotentWSGI(wsgi, **store)
    return shop.wsgi(wsgi)


APPS = {"starlette": starlette, "fastapi": fastapi, "flask": flask, "django": django}
WSGI = {"flask", "django"}
