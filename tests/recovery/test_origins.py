"""Tests of the Upstreams that clients use by default."""

import pytest

from amends import Fault
from amends.recovery import origins, upstream_for


@pytest.fixture(autouse=True)
def no_origins(monkeypatch):
    """Every test starts without origins."""
    monkeypatch.setattr(origins, "_origins", type(origins._origins)())
    monkeypatch.setattr(origins, "_swept_at", 0.0)


def test_an_unused_origin_is_dropped_after_ten_minutes(clock):
    """It is kept while it is used, and while a hint holds back its calls."""
    quiet, used, held = (upstream_for(name) for name in ("https://a", "https://b", "https://c"))
    held.failed(Fault(code="RATE_LIMITED", retry_after=3600), clock.now(), clock.now(), 0.0)
    clock.advance(500)
    assert upstream_for("https://b") is used
    clock.advance(200)
    assert upstream_for("https://b") is used
    assert upstream_for("https://a") is not quiet
    assert upstream_for("https://c") is held


def test_the_number_of_origins_is_bounded(clock, monkeypatch):
    """The one used longest ago is dropped, also if it is not idle."""
    monkeypatch.setattr(origins, "MOST", 3)
    first = upstream_for("0")
    for number in range(1, 10):
        upstream_for(str(number))
    assert len(origins._origins) == 3
    assert upstream_for("0") is not first
