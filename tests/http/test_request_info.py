"""Choosing the form of a response by `Accept`."""

import pytest

from amends.http.request_info import preferred_form


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
