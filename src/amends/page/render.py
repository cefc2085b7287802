"""Renders templates, with headers that allow nothing but our own style sheet, script and requests."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

from amends._version import __version__

__all__ = ["HEADERS", "page_response", "render"]

HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("amends.page"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        auto_reload=False,
    )
    environment.globals["version"] = __version__
    return environment


def render(template: str, **values: object) -> str:
    """Return a rendered template."""
    return _environment().get_template(template).render(**values)


def page_response(template: str, values: Mapping[str, object], status: int = 200) -> HTMLResponse:
    """Return a rendered template as an answer."""
    return HTMLResponse(render(template, **values), status_code=status, headers=HEADERS)
