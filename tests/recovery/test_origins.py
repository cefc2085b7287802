"""Tests of the Upstreams that clients use by default."""

import pytest

from amends import Fault, Upstream
from amends.recovery import origins, upstream_for
from amends.recovery.origins import PER_ORIGIN, Upstreams


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


def test_the_upstreams_of_a_client(clock):
    """Clients of one URL share a scope per operation; a process, and a client that renews credentials, has its own."""
    address = "https://user:secret@shop.example:8443/mcp?token=x"
    first, second = Upstreams(PER_ORIGIN, address), Upstreams(PER_ORIGIN, "https://shop.example:8443/mcp")
    assert first.of("order") is second.of("order")
    assert first.of("order") is not first.of("search")
    assert first.of("order").name == "https://shop.example:8443/mcp/order"
    for apart in (
        Upstreams(PER_ORIGIN, address, shared=False),
        Upstreams(PER_ORIGIN, "https://shop.example:8443/other"),
        *(Upstreams(PER_ORIGIN, each) for each in (None, object(), "", "shop", "http://[", "http://x:port/")),
    ):
        assert apart.of("order") is apart.of("order")
        assert apart.of("order") is not first.of("order")
    given = Upstream("shop")
    assert Upstreams(given, address).of("order") is given
    assert Upstreams(None, address).of("order") is None
