"""Tests of the default scope of a request."""

from amends.recovery.origins import route_scope


def test_the_scope_of_a_request():
    """Credential, safe or not, and the first two segments with numbers and UUIDs replaced."""
    uuid = "0b0e1c3a-6d7e-4a59-9a3c-1f2e3d4c5b6a"
    assert route_scope("get", "/orders/17/items/3", {}) == "read /orders/*"
    assert route_scope("POST", f"/orders/{uuid}?x=1", {}) == "write /orders/*"
    assert route_scope("HEAD", "", {}) == "read /"
    one, two = (route_scope("GET", "/v1/models", {"Authorization": f"Bearer {token}"}) for token in "ab")
    assert one != two
    assert one == route_scope("GET", "/v1/models", {"authorization": "Bearer a", "accept": "x"})
    assert "Bearer" not in one
    assert len(route_scope("GET", "/" + "a" * 100_000, {"cookie": "\ud800"})) < 200


def test_credentials_are_hashed_to_48_bits():
    """The hash has twelve hexadecimal digits; long segments are cut."""
    name = route_scope("GET", "/" + "a" * 65, {"Authorization": "x"})
    assert len(name.split(" ")[2]) == 12
    assert name.split(" ")[1] == "/" + "a" * 64
