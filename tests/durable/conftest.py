"""The fixtures of the stores."""

import pytest

from tests.stores.backends import backends
from tests.stores.conftest import nats_server, other, store, url

__all__ = ["nats_server", "other", "store", "url"]


@pytest.fixture(params=backends("memory", "sqlite", "nats"))
def backend(request):
    return request.param
