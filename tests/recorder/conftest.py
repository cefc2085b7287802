"""A recorder on a SQLite file; it is closed after the test."""

import pytest

import amends
from amends.recorder import current_recorder


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/failures.db"


@pytest.fixture
def recorder(url):
    with amends.record(url) as recorder:
        yield recorder
    assert current_recorder() is None
