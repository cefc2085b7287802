"""One real NATS server, for tests with several nodes in one process or a few."""

from __future__ import annotations

import uuid
from contextlib import ExitStack

import pytest

from tests.arcp.conftest import begin
from tests.stores.conftest import nats_server

__all__ = ["begin", "nats_server"]


@pytest.fixture
def machines():
    """An exit stack; the processes pushed to it are stopped at the end of the test."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def nats_url(nats_server):
    return f"{nats_server.url}/c{uuid.uuid4().hex[:12]}"
