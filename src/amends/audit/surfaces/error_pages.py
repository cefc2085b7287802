"""
The pages about errors that failures link to: reads that the audit knows without a document, with one value, the error's code.

They are asked for only if no other value is known that could be wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from amends.audit.surfaces.evidence import Answer
from amends.audit.surfaces.examples import WRONG
from amends.audit.surfaces.reading import read

__all__ = ["error_page", "wrong_code"]

_MAX_URL = 2000


def error_page(answers: Sequence[Answer], base: str) -> str | None:
    """
    Return the path, below the base, of the page that the first failure with a link links to; None if there is none.

    Of a link to another address only the path is taken, because only the named address is contacted: a service in
    a test has the addresses of production in its links.

    >>> problem = {"title": "No", "status": 404, "is_retriable": False, "doc_uri": "https://shop.example/errors/not-found"}
    >>> failure = Answer(
    ...     probe="x", sent="GET /x", outcome="failure", response={"status": 404, "headers": {}, "body": problem}
    ... )
    >>> error_page([failure], "http://127.0.0.1:8000")
    '/errors/not-found'
    """
    for answer in answers:
        fault = read(answer, "http").fault if answer.outcome == "failure" else None
        for link in () if fault is None else (fault.doc_uri, fault.type):
            path = None if link is None else _path(link, base)
            if path is not None:
                return path
    return None


def wrong_code(path: str) -> str:
    """
    Return the path with an unknown code instead of its own.

    >>> wrong_code("/errors/not-found")
    '/errors/amends-audit'
    """
    return f"{path.rpartition('/')[0]}/{WRONG}"


def _path(link: str, base: str) -> str | None:
    """Return the path of a link below the base; None if its last part is not the code."""
    try:
        url, root = urlsplit(link), urlsplit(base).path
    except ValueError:  # no URL
        return None
    path = url.path.removeprefix(root)
    if url.scheme not in {"http", "https"} or url.query or url.fragment or len(link) > _MAX_URL:
        return None
    below = url.path.startswith(f"{root}/") and path.rpartition("/")[2]
    return path if below else None
