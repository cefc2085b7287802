"""A store that a middleware opened by its URL is closed with the application."""

import sqlite3

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from amends.http.cancellation import Cancellable
from amends.http.idempotency import Idempotent
from amends.http.storage import Storage
from amends.stores import StoreClosedError
from amends.stores import open as open_store
from tests.http.serving import serve


async def bare(scope, receive, send):
    """An application that does not support lifespans."""
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 201, "headers": []})
    await send({"type": "http.response.body", "body": b"paid", "more_body": False})


def api():
    app = FastAPI()
    app.post("/pay", status_code=201)(lambda: "paid")
    return app


def left_open(file):
    """Whether a connection to the file is open: the last one deletes the write-ahead log when it closes."""
    return file.with_name(f"{file.name}-wal").exists()


@pytest.mark.parametrize("app", [api(), bare], ids=["FastAPI", "bare"])
@pytest.mark.parametrize("middleware", [Idempotent, Cancellable])
def test_closed_when_the_server_ends(tmp_path, app, middleware):
    """The lifespan of uvicorn closes the store, also if the application does not support lifespans."""
    file = tmp_path / "store.db"
    around = middleware(app, f"sqlite:///{file}")
    with serve(around) as url:
        assert httpx2.post(f"{url}/pay", headers={"Idempotency-Key": "k"}).status_code == 201
        httpx2.get(f"{url}/operations/none")
        assert left_open(file)
    assert not left_open(file)


def test_closed_in_starlettes_own_test_client_and_opened_again(tmp_path):
    """The store can be opened and closed repeatedly, and keeps the key."""
    file = tmp_path / "store.db"
    app = api()
    app.add_middleware(Idempotent, store=f"sqlite:///{file}")
    for again in (False, True):
        with TestClient(app) as client:
            response = client.post("/pay", headers={"Idempotency-Key": "k"})
            assert ("idempotency-replayed" in response.headers) == again
        assert not left_open(file)


@pytest.mark.parametrize("middleware", [Idempotent, Cancellable])
async def test_closed_by_its_owner_where_there_is_no_lifespan(tmp_path, middleware):
    """After `close`, requests are answered with 503 and do not open the store again."""
    file = tmp_path / "store.db"
    app = middleware(bare, f"sqlite:///{file}")
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://x") as client:
        await client.post("/pay", headers={"Idempotency-Key": "k"})
        await client.get("/operations/none")
        assert left_open(file)
        await app.close()
        assert not left_open(file)
        await app.close()
        if middleware is Idempotent:
            response = await client.post("/pay", headers={"Idempotency-Key": "k"})
        else:
            response = await client.get("/operations/none")
        assert response.status_code == 503
        assert response.json()["code"] == "SERVICE_UNAVAILABLE"
    assert not left_open(file)


async def test_an_open_store_stays_open(tmp_path):
    """A store that was given open is not closed by the middleware."""
    file = tmp_path / "store.db"
    async with await open_store(f"sqlite:///{file}") as store:
        with serve(Idempotent(bare, store)):
            pass
        await Idempotent(bare, store).close()
        assert await store.table("t").get("k") is None


async def test_a_failed_start_is_raised(tmp_path):
    """The exception of an application that fails to start reaches the server, and the store is closed."""
    storage = Storage(f"sqlite:///{tmp_path}/store.db")

    async def failing(scope, receive, send):
        await receive()
        await storage.get()
        raise sqlite3.OperationalError("no such table")

    async def receive():
        return {"type": "lifespan.startup"}

    with pytest.raises(sqlite3.OperationalError):
        await storage.lifespan(failing, {"type": "lifespan"}, receive, None)
    with pytest.raises(StoreClosedError):
        await storage.get()
