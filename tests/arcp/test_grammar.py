"""Requested leases: what is a lease, and what is rejected."""

from __future__ import annotations

import pytest

from amends.arcp.leases import Lease, parse_pattern
from amends.arcp.leases.targets import Refused
from amends.errors.arcp import (
    InvalidRequestError,
    PermissionDeniedError,
)
from tests.arcp.test_lease import NOW, lease


def test_amounts_are_not_patterns():
    """A budget grants no target."""
    assert isinstance(
        lease({"cost.budget": ["USD:1"]}).check("cost.budget", "USD:1", NOW), PermissionDeniedError
    )
    with pytest.raises(Refused):
        parse_pattern("cost.budget", "USD:1")


REFUSED = [
    ({"fs.raed": ["/a"]}, "fs.raed"),
    ({"FS.READ": ["/a"]}, "FS.READ"),
    ({"x-": ["/a"]}, "x-"),
    ({5: ["/a"]}, "5"),
    ({"fs.read": "/a"}, "fs.read"),
    ({"fs.read": [5]}, "fs.read"),
    ({"fs.read": ["/a"] * 257}, "fs.read"),
    ({"fs.read": ["a/**"]}, "fs.read"),
    ({"fs.read": ["/a/../b"]}, "fs.read"),
    ({"fs.read": ["/a/**b"]}, "fs.read"),
    ({"fs.read": ["/a/***"]}, "fs.read"),
    ({"fs.read": [""]}, "fs.read"),
    ({"fs.read": ["/" + "a" * 3000]}, "fs.read"),
    ({"net.fetch": ["*"]}, "net.fetch"),
    ({"net.fetch": ["*://h.example/"]}, "net.fetch"),
    ({"net.fetch": ["https://h.example/?q=*"]}, "net.fetch"),
    ({"net.fetch": ["https://u@h.example/"]}, "net.fetch"),
    ({"net.fetch": ["https://münchen.example/"]}, "net.fetch"),
    ({"net.fetch": ["https://h.example:1*/"]}, "net.fetch"),
    ({"net.fetch": ["https://-*.example/"]}, "net.fetch"),
    ({"net.fetch": ["https://a**.example/"]}, "net.fetch"),
    ({"tool.call": ["a//b"]}, "tool.call"),
    ({"cost.budget": ["5.00"]}, "cost.budget"),
    ({"cost.budget": ["USD:-5"]}, "cost.budget"),
    ({"cost.budget": ["USD:1e3"]}, "cost.budget"),
    ({"cost.budget": ["USD:٥"]}, "cost.budget"),
    ({"cost.budget": ["USD:5", "USD:6"]}, "cost.budget"),
]


@pytest.mark.parametrize(("request_", "capability"), REFUSED)
def test_invalid_leases_are_rejected(request_, capability):
    """A pattern that would grant nothing, or something other than intended, is rejected."""
    with pytest.raises(InvalidRequestError) as caught:
        lease(request_)
    assert caught.value.details["capability"] == capability
    assert caught.value.details["reason"]


def test_a_lease_is_an_object():
    """Other values are rejected; a missing lease is an empty one."""
    with pytest.raises(InvalidRequestError):
        lease(["fs.read"])
    assert lease(None) == Lease() == lease({})
    assert lease({"fs.read": []}).check("fs.read", "/a", NOW) is not None


@pytest.mark.parametrize(
    "expires_at",
    [
        "2020-01-01T00:00:00Z",
        "2026-05-13T23:42:00",
        "2026-05-13T23:42:00+02:00",
        "2026-05-13",
        "2026-13-13T23:42:00Z",
        "soon",
        5,
        "٢٠٢٦-05-13T23:42:00Z",
    ],
)
def test_invalid_expiry_times(expires_at):
    """9.5: times in the past, without a zone, or malformed: INVALID_REQUEST."""
    with pytest.raises(InvalidRequestError) as caught:
        lease({}, {"expires_at": expires_at})
    assert caught.value.details == {"field": "lease_constraints.expires_at"}
    assert lease({}, {"expires_at": None}).expires_at is None
    assert lease({}, {}).expires_at is None
