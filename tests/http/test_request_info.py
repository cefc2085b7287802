"""Choosing the form of a response by `Accept`."""

import pytest

from amends.http.request_info import RequestInfo, preferred_form


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (None, "json"),
        ("", "json"),
        ("*/*", "json"),
        ("text/html", "html"),
        ("text/html;q=0.5, application/json", "json"),
        ("text/html;q=0.5, application/json;q=0.4", "html"),
        ("text/html;q=zero", "json"),
        ("text/html;q=9", "json"),
        ("text/markdown, text/html;q=0.9", "markdown"),
        ("application/xhtml+xml", "html"),
        ("text/html, application/problem+json", "json"),
    ],
)
def test_preferred_form(accept, form):
    """The form is JSON unless `Accept` names and prefers HTML or Markdown."""
    assert preferred_form(accept) == form


def test_the_base_of_urls():
    """The configured one; else the host if it is trusted, by its name or by the framework where no names are given."""
    local, checked = RequestInfo(host="localhost", root="/r"), RequestInfo(host="shop.example", trusted=True)
    assert local.base_url("https://api.example/", ["x"]) == "https://api.example"
    assert local.base_url(None, None) == "http://localhost/r"
    assert checked.base_url(None, None) == "http://shop.example"
    assert checked.base_url(None, ["other.example"]) is None
    assert checked.base_url(None, ["shop.example"]) == "http://shop.example"
    assert RequestInfo(host="shop.example").base_url(None, None) is None
    assert RequestInfo(host="no host", trusted=True).base_url(None, None) is None
