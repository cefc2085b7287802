"""Fixtures shared by the tests of recovery."""

import pytest

from amends.recovery import events
from amends.testing import FakeClock, recorded_events


@pytest.fixture
def clock():
    """A clock on which time passes without sleeping."""
    with FakeClock() as fake:
        yield fake


@pytest.fixture
def seen():
    """The events that recovery sends during one test."""
    with recorded_events() as found:
        yield found


@pytest.fixture(autouse=True)
def restore_hooks():
    """Restore the hooks after each test."""
    before = events._hooks
    yield
    events._hooks = before
