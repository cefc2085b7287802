"""
A payment service behind `Idempotent` that can kill its process at any step.

    python -m tests.http.paying FOLDER MODE AT      sends one keyed payment and kills itself before step AT

Payments are rows of the table `payments`: in mode `own` in the store's file, written with `once`; in mode `other` in a
separate file, so that the payment and the key cannot be committed together.
"""

import asyncio
import os
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import httpx2
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from amends import stores
from amends.bindings.starlette import install, once
from amends.http.idempotency import Idempotent

LEASE = 0.6


class Steps:
    """Counts the steps, and kills the process before step `at`."""

    def __init__(self, at=0):
        self.at, self.seen = at, 0

    def point(self):
        self.seen += 1
        if self.seen == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


class DyingTable:
    def __init__(self, table, steps):
        self._table, self._steps = table, steps

    def __getattr__(self, name):
        found = getattr(self._table, name)

        async def awaited(*args, **kwargs):
            self._steps.point()
            result = await found(*args, **kwargs)
            self._steps.point()
            return result

        return awaited


class DyingStore:
    def __init__(self, store, steps):
        self._store, self._steps = store, steps
        self.traits = store.traits

    def table(self, name):
        return DyingTable(self._store.table(name), self._steps)

    async def transaction(self, work):
        def both(tx):
            self._steps.point()
            result = work(tx)
            self._steps.point()
            return result

        self._steps.point()
        result = await self._store.transaction(both)
        self._steps.point()
        return result


def payments(path):
    with closing(sqlite3.connect(path, timeout=20)) as file, file:
        file.execute("CREATE TABLE IF NOT EXISTS payments (id INTEGER PRIMARY KEY)")
        return file.execute("SELECT count(*) FROM payments").fetchone()[0]


def application(store, folder, mode, steps=None):
    steps = steps or Steps()

    async def pay(request):
        steps.point()
        if mode == "own":
            return await once(
                request,
                lambda tx: {"paid": tx.sql("INSERT INTO payments DEFAULT VALUES RETURNING id")[0][0]},
                status=201,
            )
        with closing(sqlite3.connect(f"{folder}/other.db", timeout=20)) as file, file:
            steps.point()
            (number,) = file.execute("INSERT INTO payments DEFAULT VALUES RETURNING id").fetchone()
        steps.point()
        return JSONResponse({"paid": number}, 201)

    app = Starlette(routes=[Route("/pay", pay, methods=["POST"])])
    install(app)
    return Idempotent(app, DyingStore(store, steps), lease=LEASE, transactional=mode == "own")


def served():
    """The application for a real server: a request with `x-hang` waits at the critical step until the server is killed."""
    folder, mode = os.environ["PAYING_FOLDER"], os.environ["PAYING_MODE"]

    async def hang(request):
        if "x-hang" in request.headers:
            Path(folder, "hanging").touch()
            await asyncio.sleep(60)

    async def pay(request):
        if mode == "own":
            await hang(request)
            return await once(
                request, lambda tx: tx.sql("INSERT INTO payments DEFAULT VALUES") or {}, status=201
            )
        with closing(sqlite3.connect(f"{folder}/other.db", timeout=20)) as file, file:
            file.execute("INSERT INTO payments DEFAULT VALUES")
        await hang(request)
        return JSONResponse({}, 201)

    app = Starlette(routes=[Route("/pay", pay, methods=["POST"])])
    install(app)
    return Idempotent(app, f"sqlite:///{folder}/store.db", lease=LEASE, transactional=mode == "own")


def file_of(folder, mode):
    return f"{folder}/{'store' if mode == 'own' else 'other'}.db"


async def send(app, key="key-1", amount=5):
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://pay.example") as client:
        return await client.post("/pay", json={"amount": amount}, headers={"Idempotency-Key": key})


async def main(folder, mode, at):
    steps = Steps(at)
    async with await stores.open(f"sqlite:///{folder}/store.db") as store:
        payments(file_of(folder, mode))
        response = await send(application(store, folder, mode, steps))
        print(steps.seen, response.status_code)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
