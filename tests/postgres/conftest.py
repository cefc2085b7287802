"""A real server, which the process shares, and a database of its own for each test."""

import pytest

from tests.stores.backends import new_database


@pytest.fixture
def url():
    return new_database()
