"""Tests of `request_facts`: the method and the URL of a call, from whatever the libraries keep."""

from types import SimpleNamespace

import httpx2
import pytest
import requests
from yarl import URL

from amends import Operation
from amends.recovery.events import plain_url, request_facts

NONE = Operation()


def test_where_libraries_keep_the_request():
    """The operation first, then the request of the exception, of its response, or of the response that was returned."""
    url = "https://api.example.com/v1?token=1"
    plain = "https://api.example.com/v1"
    request = httpx2.Request("POST", url)
    error = httpx2.ConnectError("x", request=request)
    assert request_facts(NONE, error, None) == ("POST", plain)
    assert request_facts(NONE, None, httpx2.Response(503, request=request)) == ("POST", plain)
    prepared = requests.Request("get", url).prepare()
    assert request_facts(NONE, requests.ConnectionError(request=prepared), None) == ("GET", plain)
    info = SimpleNamespace(request_info=SimpleNamespace(method="GET", url=URL(url)))
    assert request_facts(NONE, info, None) == ("GET", plain)
    declared = Operation.of_http("PUT", url="https://other.example/")
    assert request_facts(declared, error, None) == ("PUT", "https://other.example/")


def test_nothing_is_known_of_other_exceptions():
    """A property that raises counts as nothing, as in an httpx exception without a request."""
    for error in (KeyError("x"), httpx2.ConnectError("x"), None):
        assert request_facts(NONE, error, None) == ("", "")
    assert request_facts(Operation.of_http("GET"), None, object()) == ("GET", "")


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("https://ada:pw@h.example:8443/a?b#c", "https://h.example:8443/a"),
        ("https://h.example?q=@x", "https://h.example"),
        ("/relative?x", "/relative"),
        ("https://h.example/a\nb\x1b[0m", "https://h.example/ab[0m"),
        ("x" * 5000, "x" * 300),
        (3, "3"),
        ("\ud800", ""),
    ],
)
def test_plain_url(url, plain):
    """User, query, fragment and control characters are left out, and the length is bounded."""
    assert plain_url(url) == plain
