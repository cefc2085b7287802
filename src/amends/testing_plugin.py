"""
pytest fixtures for tests of code that uses recovery; pytest loads them as a plugin.

Every pytest run in an environment with this package loads this module, so it imports amends only inside the fixtures.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from amends.recovery.events import Event
    from amends.testing import FakeClock, Script

__all__ = ["amends_clock", "amends_events", "amends_script"]


@pytest.fixture
def amends_clock() -> Iterator[FakeClock]:
    """Replace recovery's clock during the test: waits take no real time, and `waits` lists their seconds."""
    from amends.testing import FakeClock

    with FakeClock() as clock:
        yield clock


@pytest.fixture
def amends_events() -> Iterator[list[Event]]:
    """Collect recovery's events during the test."""
    from amends.testing import recorded_events

    with recorded_events() as seen:
        yield seen


@pytest.fixture
def amends_script() -> type[Script]:
    """The class `Script`: `amends_script(fault, error, "result")` is a function with these outcomes."""
    from amends.testing import Script

    return Script
