"""
Invalid requests for an API without an OpenAPI document, made from examples of its reads.

They are given, or taken from the routes of an application in this process, or from the links that the API sends.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

from amends.audit.surfaces.exchange import Reply

__all__ = ["described_at", "links", "own_description", "routes", "wrong_values"]

WRONG = "amends-audit"
MAX_LINKS = 20
_TYPED = re.compile(r"\d{1,19}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
"""A number or a UUID."""
_LINK = re.compile(r"<([^<>]{1,2000})>([^,<]{0,500})")
_DESCRIBES = "service-desc"
"""RFC 8631: the relation of a service to a description of it for machines."""
_PARAMETER = re.compile(r"<(?:(\w+)(?:\([^)]*\))?:)?\w+>|\{\w+(?::(\w+))?\}")
"""A parameter of a route: <int:number> in Flask and Django, {number:int} in Starlette."""
_EXAMPLES = {"int": "7", "float": "7", "uuid": "00000000-0000-4000-8000-000000000000"}
_MAX_DEPTH = 12


def wrong_values(example: str) -> Iterator[tuple[str, str]]:
    """
    Yield the example with one of its numbers or UUIDs replaced by a text, and the name of a query parameter or "".

    >>> list(wrong_values("/items/7?limit=3"))
    [('/items/amends-audit?limit=3', ''), ('/items/7?limit=amends-audit', 'limit')]
    >>> list(wrong_values("/about"))
    []
    """
    try:
        _, _, path, query, _ = urlsplit(example)
    except ValueError:  # no URL
        return
    after = f"?{query}" if query else ""
    parts = path.split("/")
    for index, part in enumerate(parts):
        if _TYPED.fullmatch(part):
            yield "/".join([*parts[:index], WRONG, *parts[index + 1 :]]) + after, ""
    pairs = parse_qsl(query, keep_blank_values=True)
    for index, (name, value) in enumerate(pairs):
        if _TYPED.fullmatch(value):
            changed = [*pairs[:index], (name, WRONG), *pairs[index + 1 :]]
            yield f"{path}?{urlencode(changed)}", name


class _DjangoPattern(Protocol):
    """A pattern or an included list of them."""

    pattern: object
    """Its text is the rule."""


def routes(app: object) -> list[str]:
    """
    Return examples of the reads of a Flask, Starlette or Django application, whose routes say which parameters are numbers or UUIDs.

    >>> from starlette.applications import Starlette
    >>> from starlette.routing import Route
    >>> routes(Starlette(routes=[Route("/items/{number:int}", print)]))
    ['/items/7']
    """
    rules: list[str] = []
    if "flask" in sys.modules and isinstance(app, sys.modules["flask"].Flask):
        rules = [each.rule for each in app.url_map.iter_rules() if "GET" in (each.methods or ())]
    elif "starlette.applications" in sys.modules and isinstance(
        app, sys.modules["starlette.applications"].Starlette
    ):
        ordinary = [each for each in app.routes if isinstance(each, sys.modules["starlette.routing"].Route)]
        # An endpoint that is a class has no list of methods.
        rules = [each.path for each in ordinary if each.methods is None or "GET" in each.methods]
    elif "django.core.handlers.base" in sys.modules and isinstance(
        app, sys.modules["django.core.handlers.base"].BaseHandler
    ):
        rules = [f"/{each}" for each in _django_rules(sys.modules["django.urls"].get_resolver().url_patterns)]
    return [_PARAMETER.sub(_example, rule) for rule in rules]


def _django_rules(patterns: Iterable[_DjangoPattern], before: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the rules of Django's URLs, without regular expressions. Which methods they take is not known; GET is sent."""
    for each in patterns:
        rule = f"{before}{each.pattern}"
        if re.search(r"[\^$\\(]", rule) or depth > _MAX_DEPTH:
            continue
        below = getattr(each, "url_patterns", None)
        if below is None:
            yield rule
        else:
            yield from _django_rules(below, rule, depth + 1)


def _example(parameter: re.Match[str]) -> str:
    return _EXAMPLES.get(parameter.group(1) or parameter.group(2) or "", WRONG)


def links(reply: Reply, base: str) -> list[str]:
    """
    Return the paths below the base that an answer links to: in its Link header and in the texts of its JSON.

    HTML is not searched, because a page also links to actions, such as signing out.

    >>> found = Reply(200, {"link": '</items?page=2>; rel="next"'}, b'{"first": "https://api.example/items/7"}')
    >>> links(found, "https://api.example")
    ['/items?page=2', '/items/7']
    """
    named = [each for each, _ in _LINK.findall(reply.headers.get("link", ""))]
    return _below([*named, *_texts(reply.json)], base)


def described_at(reply: Reply, base: str) -> list[str]:
    """
    Return the paths below the base where an answer says that the service is described: its Link header, or an API catalogue.

    >>> described_at(Reply(200, {"link": '</docs/api.json>; rel="service-desc"'}, b""), "https://api.example")
    ['/docs/api.json']
    >>> catalogue = b'{"linkset": [{"anchor": "/", "service-desc": [{"href": "/openapi"}]}]}'
    >>> described_at(Reply(200, {}, catalogue), "https://api.example")
    ['/openapi']
    """
    named = [url for url, rest in _LINK.findall(reply.headers.get("link", "")) if _DESCRIBES in rest]
    document = reply.json
    linkset = document.get("linkset") if isinstance(document, Mapping) else None
    for each in linkset[:MAX_LINKS] if isinstance(linkset, list) else ():
        named += _texts(each.get(_DESCRIBES)) if isinstance(each, Mapping) else ()
    return _below(named, base)


def own_description(app: object) -> object:
    """Return the OpenAPI document that a FastAPI application in this process makes of itself, also if it does not serve it."""
    fastapi = sys.modules.get("fastapi")
    return app.openapi() if fastapi is not None and isinstance(app, fastapi.FastAPI) else None


def _below(named: Iterable[str], base: str) -> list[str]:
    """Return the paths of links that are below the base."""
    found: dict[str, None] = {}
    for each in named:
        if not each.startswith(("/", "http://", "https://")) or len(each) > 2000:
            continue
        try:
            url = urljoin(f"{base}/", each)
            same = urlsplit(url)[:2] == urlsplit(base)[:2]
        except ValueError:  # no URL
            continue
        if same and url.startswith(f"{base}/"):
            found[url.removeprefix(base)] = None
    return list(found)[:MAX_LINKS]


def _texts(value: object, depth: int = 0) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each, depth + 1)
    elif isinstance(value, list):
        for each in value[:50]:
            yield from _texts(each, depth + 1)
