"""What the other side wants to read: JSON unless it asks for something a person reads."""

from __future__ import annotations

__all__ = ["CONTENT_TYPES", "HTML", "JSON", "MARKDOWN", "wanted"]

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


def wanted(accept: str | None) -> str:
    """
    The form to answer in. A page is sent only to whoever names it and prefers it; everybody else gets JSON.

    >>> wanted("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
    'html'
    >>> wanted("application/json, text/html;q=0.5"), wanted("image/png"), wanted(None)
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
    # Of equals, a program's form wins over a person's, and a page over its source.
    order = (JSON, HTML, MARKDOWN)
    return max(order, key=lambda form: (best.get(form, 0.0), -order.index(form)))


def _quality(parameters: str) -> float:
    """The weight of an item; 1 without one, 0 for one that cannot be read."""
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                number = float(value)
            except ValueError:
                return 0.0
            return number if 0.0 <= number <= 1.0 else 0.0
    return 1.0
