"""The fixtures of the stores, and a ledger on each of them."""

import pytest

from amends.effects import Effects
from tests.stores.backends import backends
from tests.stores.conftest import nats_server, other, store, url

__all__ = ["nats_server", "other", "store", "url"]


@pytest.fixture(params=backends("memory", "sqlite", "nats"))
def backend(request):
    return request.param


@pytest.fixture
async def effects(store):
    """A ledger on an open store."""
    async with Effects(store) as ledger:
        yield ledger
