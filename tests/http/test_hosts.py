"""Which Host headers may appear in URLs."""

import doctest

import pytest

from amends.http import request_info
from amends.http.request_info import is_trusted


def test_its_examples():
    """The examples in the docstrings hold."""
    assert doctest.testmod(request_info).failed == 0


@pytest.mark.parametrize(
    ("host", "names", "server", "trusted"),
    [
        ("localhost:8000", None, "", True),
        ("app.localhost", None, "", True),
        ("127.0.0.1", None, "", True),
        ("[::1]:80", None, "", True),
        ("10.0.0.7:80", None, "10.0.0.7:80", True),
        ("[fe80::1]", None, "fe80::1", True),
        ("10.0.0.8", None, "10.0.0.7", False),
        ("shop.example", None, "", False),
        ("", None, "", False),
        ("a b", ["*"], "", False),
        ("evil.example/@shop.example", ["shop.example"], "", False),
        ("Shop.Example", ["shop.example"], "", True),
        ("shop.example:8000", ["shop.example"], "", True),
        ("shop.example:8000", ["shop.example:8000"], "", True),
        ("shop.example:8001", ["shop.example:8000"], "", False),
        ("a.shop.example", ["*.shop.example"], "", True),
        ("a.shop.example", [".shop.example"], "", True),
        ("ashop.example", ["*.shop.example"], "", False),
        ("anything.example", ["*"], "", True),
        ("localhost", ["shop.example"], "", False),
        ("localhost", [], "", False),
    ],
)
def test_hosts(host, names, server, trusted):
    """A host is trusted if it is a listed name, or without a list a loopback name or the bound address."""
    assert is_trusted(host, names, server) is trusted
