"""
Fixtures for pytest, found by it without an import: tests of code that recovers never sleep.

Loaded with every pytest run of everybody who has this package, so it imports nothing before a fixture is used.
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
    """Time passes at once while the test runs; `waits` are the seconds that would have been waited."""
    from amends.testing import FakeClock

    with FakeClock() as clock:
        yield clock


@pytest.fixture
def amends_events() -> Iterator[list[Event]]:
    """What recovery reported during the test."""
    from amends.testing import recorded_events

    with recorded_events() as seen:
        yield seen


@pytest.fixture
def amends_script() -> type[Script]:
    """Makes functions that fail by script: `amends_script(fault, error, "result")`."""
    from amends.testing import Script

    return Script
