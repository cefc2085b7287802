"""
Invalid requests for an API without an OpenAPI document, made from examples of its reads.

They are given, or taken from the routes of an application in this process, or from the links that the API sends.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

from amends.audit.surfaces.exchange import Reply

__all__ = ["links", "routes", "wrong_values"]

WRONG = "amends-audit"
MAX_LINKS = 20
_TYPED = re.compile(r"\d{1,19}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
"""A number or a UUID."""
_LINK = re.compile(r"<([^<>]{1,2000})>")
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


def routes(app: Any) -> list[str]:
    """
    Return examples of the reads of a Flask or Starlette application, whose routes say which parameters are numbers or UUIDs.

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
    return [_PARAMETER.sub(_example, rule) for rule in rules]


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
    named = [*_LINK.findall(reply.headers.get("link", "")), *_texts(reply.json)]
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


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
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
