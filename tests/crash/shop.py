"""
A shop that dies or stops once, at one instant of an order.

    python -m tests.crash.shop KIND PORT FOLDER HOW INSTANT LEASE

KIND is one of `APPS`; with "plain-" before it the server does not use amends. HOW is
kill (SIGKILL), stop (SIGSTOP) or none. The file `died` in FOLDER says that it happened already.
"""

import os
import signal
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

INSTANTS = ("before the effect", "after the effect", "after the record", "in the answer")


class Shop:
    """The orders, and the instant at which the process dies."""

    def __init__(self, folder, how, instant):
        self.folder, self.how, self.at = Path(folder), how, instant
        with closing(sqlite3.connect(self.folder / "orders.db", timeout=20)) as file, file:
            file.execute("CREATE TABLE IF NOT EXISTS orders (item TEXT)")

    def reach(self, instant):
        """Die here, if this is the instant and it has not happened yet."""
        if self.how == "none" or instant != self.at:
            return
        try:
            (self.folder / "died").touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL if self.how == "kill" else signal.SIGSTOP)
        time.sleep(0.1)  # until all threads are stopped

    def order(self):
        self.reach("before the effect")
        with closing(sqlite3.connect(self.folder / "orders.db", timeout=20)) as file, file:
            file.execute("INSERT INTO orders VALUES ('book')")
        self.reach("after the effect")
        return {"placed": "book"}

    def asgi(self, app):
        """Wrap the application: the last two instants are in its answer."""

        async def wrapped(scope, receive, send):
            async def sending(message):
                posted = scope["type"] == "http" and scope["method"] == "POST"
                if posted and message["type"] == "http.response.start":
                    self.reach("after the record")
                await send(message)
                if posted and message["type"] == "http.response.start":
                    self.reach("in the answer")

            await app(scope, receive, sending)

        return wrapped

    def wsgi(self, app):
        def wrapped(environ, start_response):
            answer = app(environ, start_response)
            if environ["REQUEST_METHOD"] == "POST":
                self.reach("after the record")
            for part in answer:
                if environ["REQUEST_METHOD"] == "POST":
                    yield part[:1]
                    self.reach("in the answer")
                    part = part[1:]
                yield part
            close = getattr(answer, "close", None)
            if close is not None:
                close()

        return wrapped


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


APPS = {"starlette": starlette, "fastapi": fastapi, "flask": flask}


def main():
    kind, port, folder, how, instant, lease = sys.argv[1:]
    shop = Shop(folder, how, instant)
    store = {"store": f"sqlite:///{folder}/keys.db", "lease": float(lease)}
    name = kind.removeprefix("plain-")
    app = APPS[name](shop, name == kind, store)
    if name == "flask":
        from socketserver import ThreadingMixIn
        from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

        class Server(ThreadingMixIn, WSGIServer):
            daemon_threads = True

        class Quiet(WSGIRequestHandler):
            def log_message(self, *args):
                pass

        make_server("127.0.0.1", int(port), app, Server, Quiet).serve_forever()
    else:
        import uvicorn

        uvicorn.run(app, host="127.0.0.1", port=int(port), log_config=None)


if __name__ == "__main__":
    main()
