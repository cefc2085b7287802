"""The fixtures of the stores."""

import pytest

from tests.stores.conftest import nats_server, other, store, url

__all__ = ["nats_server", "other", "store", "url"]


@pytest.fixture(params=["memory", "sqlite", "nats"])
def backend(request):
    return request.param
