"""The fixture `store` opens a store of each backend; one nats-server runs for the whole session."""

from __future__ import annotations

import itertools
import subprocess
import uuid

import pytest

from amends import stores
from amends.stores.arguments import check_name
from tests.stores.backends import backends, new_database
from tests.stores.servers import NatsServer

BACKENDS = backends("memory", "sqlite", "nats")
_numbers = itertools.count()


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory):
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    server.start()
    yield server
    # The data is not needed any more: killing saves the seconds of an orderly shutdown.
    server.kill()


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


@pytest.fixture
def url(backend, tmp_path, request):
    """A unique URL; opening it twice gives two handles on one store."""
    if backend == "memory":
        return f"memory:{uuid.uuid4().hex}"
    if backend == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    if backend == "postgres":
        return new_database()
    server = request.getfixturevalue("nats_server")
    return f"{server.url}/t{next(_numbers)}"


class Grouped:
    """A NATS store whose logs all share one stream; the same tests apply to it."""

    def __init__(self, store):
        self._store = store

    def log(self, name):
        return self._store.log(f"group/{check_name(name, 'log')}")

    async def names(self):
        return {"logs": [name.removeprefix("group/") for name in (await self._store.names())["logs"]]}


@pytest.fixture
async def store(url, backend):
    async with await stores.open(url) as opened:
        yield Grouped(opened) if backend == "nats-grouped" else opened


@pytest.fixture
async def other(url, backend, store):
    """A second handle on the same store, as another worker would have."""
    async with await stores.open(url) as opened:
        yield Grouped(opened) if backend == "nats-grouped" else opened


@pytest.fixture
def small_disk(tmp_path):
    """A file system of four megabytes, if this process may mount one."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a small tmpfs is not permitted here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)
