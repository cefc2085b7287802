"""Fixtures shared by the tests of recovery."""

import pytest

from amends.recovery import events
from amends.testing import FakeClock, recorded_events


@pytest.fixture
def clock():
    """Time that passes at once."""
    with FakeClock() as fake:
        yield fake


@pytest.fixture
def seen():
    """The events of one test."""
    with recorded_events() as found:
        yield found


@pytest.fixture(autouse=True)
def same_hooks():
    """No test leaves hooks behind."""
    before = events._hooks
    yield
    events._hooks = before
