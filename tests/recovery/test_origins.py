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


def test_when_an_origin_is_idle(clock, monkeypatch):
    """After more than ten minutes without use; origins are looked through once a minute."""
    monkeypatch.setattr(origins, "_swept_at", clock.now())
    first = upstream_for("https://a")
    clock.advance(599.0)
    upstream_for("https://b")
    clock.advance(1.0)
    assert upstream_for("https://a") is first
    clock.advance(600.5)
    upstream_for("https://c")
    assert set(name for name, _ in origins._origins) == {"https://c"}
    upstream_for("https://d")
    clock.advance(59.0)
    before = origins._swept_at
    upstream_for("https://d")
    assert origins._swept_at == before
    clock.advance(1.0)
    upstream_for("https://d")
    assert origins._swept_at == clock.now()


def test_a_thousand_origins_are_kept(clock):
    """The one used longest ago is dropped; those of an owner are its own."""
    for number in range(1000):
        upstream_for(str(number))
    assert len(origins._origins) == 1000
    upstream_for("0")
    upstream_for("1000")
    assert len(origins._origins) == 1000
    assert ("0", None) in origins._origins
    assert ("1", None) not in origins._origins
    assert upstream_for("0") is not upstream_for("0", owner="me")
    assert upstream_for("0", owner="me") is upstream_for("0", owner="me")
    origins.forget_origins()
    assert len(origins._origins) == 0


def test_a_client_remembers_a_hundred_scopes(clock):
    """Of a server of its own; then it asks the Upstream again, which still has them."""
    server = Upstream("shop")
    scopes = origins._Scopes(server)
    first = scopes["0"]
    for number in range(100):
        scopes[str(number)]
    assert len(scopes) == 100
    scopes["100"]
    assert len(scopes) == 1
    assert scopes["0"] is first is server.scope("0")


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("GET", "/", "read /"),
        ("get", "/orders", "read /orders"),
        ("OPTIONS", "/orders/17?x=/y", "read /orders/*"),
        ("HEAD", "/orders/17/items/3", "read /orders/*"),
        ("POST", "/orders/17a", "write /orders/17a"),
        ("DELETE", "/a/123e4567-e89b-12d3-a456-426614174000", "write /a/*"),
        ("DELETE", "/a/123e4567e89b12d3a456426614174000", "write /a/*"),
        ("PUT", "/" + "x" * 99, "write /" + "x" * 64),
        ("PUT", "", "write /"),
    ],
)
def test_the_scope_of_a_request(method, path, name):
    """Whether it changes something, and the first two segments of its path, with numbers and UUIDs as `*`."""
    assert origins.route_scope(method, path, {}) == name


def test_the_credential_of_a_scope():
    """A short hash of the credential headers, whatever their case and order; other headers do not count."""
    plain = origins.route_scope("GET", "/a", {"accept": "x"})
    one = origins.route_scope("GET", "/a", {"Authorization": "Bearer x", "Cookie": "c"})
    assert plain == "read /a"
    assert one == origins.route_scope(
        "GET", "/a", {"cookie": "c", "AUTHORIZATION": "Bearer x", "Accept": "y"}
    )
    name, digest = one.rsplit(" ", 1)
    assert (name, len(digest)) == (plain, 12)
    assert one != origins.route_scope("GET", "/a", {"Authorization": "Bearer y", "Cookie": "c"})
    assert "Bearer" not in one


def test_configure_takes_two_values():
    """On and off; others are a mistake."""
    for wrong in (False, 1, "x"):
        with pytest.raises(TypeError, match="quota is None"):
            origins.configure(quota=wrong)
