"""
Fixtures for pytest, registered as a plugin: with them, tests of code with recovery do not sleep.

Every pytest run in an environment with this package loads the plugin, so it imports nothing before a fixture is used.
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
    """Replace recovery's clock during the test; `waits` lists the seconds of each wait."""
    from amends.testing import FakeClock

    with FakeClock() as clock:
        yield clock


@pytest.fixture
def amends_events() -> Iterator[list[Event]]:
    """Return the events that recovery reports during the test."""
    from amends.testing import recorded_events

    with recorded_events() as seen:
        yield seen


@pytest.fixture
def amends_script() -> type[Script]:
    """Return Script, which makes functions with given outcomes: `amends_script(fault, error, "result")`."""
    from amends.testing import Script

    return Script
