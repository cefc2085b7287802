"""Choose the form of a response by the request's `Accept` header: JSON unless a page is preferred."""

from __future__ import annotations

__all__ = ["CONTENT_TYPES", "HTML", "JSON", "MARKDOWN", "preferred_form"]

JSON, HTML, MARKDOWN = "json", "html", "markdown"

CONTENT_TYPES = {
    HTML: "text/html; charset=utf-8",
    MARKDOWN: "text/markdown; charset=utf-8",
    JSON: "application/json",
}

_FORMS = {
    "application/problem+json": JSON,
    "application/json": JSON,
    "text/html": HTML,
    "application/xhtml+xml": HTML,
    "text/markdown": MARKDOWN,
}


def preferred_form(accept: str | None) -> str:
    """
    Return the form to answer in. HTML and Markdown are chosen only if the header names and prefers them.

    >>> preferred_form("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
    'html'
    >>> preferred_form("application/json, text/html;q=0.5"), preferred_form("image/png"), preferred_form(None)
    ('json', 'json', 'json')
    """
    if not accept or ("text/" not in accept and "xhtml" not in accept):
        return JSON
    best: dict[str, float] = {}
    for item in accept[:1000].split(","):
        name, _, parameters = item.strip().lower().partition(";")
        form = _FORMS.get(name.strip())
        if form is not None:
            best[form] = max(_quality(parameters), best.get(form, 0.0))
    # At equal quality JSON wins over HTML, and HTML over Markdown.
    order = (JSON, HTML, MARKDOWN)
    return max(order, key=lambda form: (best.get(form, 0.0), -order.index(form)))


def _quality(parameters: str) -> float:
    """Return the `q` of an item: 1 if there is none, 0 if it is not a number from 0 to 1."""
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                number = float(value)
            except ValueError:
                return 0.0
            return number if 0.0 <= number <= 1.0 else 0.0
    return 1.0
