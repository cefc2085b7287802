"""
JSON documents and Python dicts inside a text, such as log lines and messages of exceptions.

The time is bounded: only the end of a long text is searched, and only some of its brackets are tried.
"""

from __future__ import annotations

import re
from ast import literal_eval
from typing import NamedTuple
from warnings import catch_warnings

from amends.core.wire import TOO_DEEP, Unreadable, read

__all__ = ["Document", "documents"]

_MAX_TEXT = 100_000
_MAX_LITERAL = 20_000
_MAX_FAILURES = 24
"""Brackets at which no document starts; each costs time that grows with the length of the text."""
_MAX_DEPTH = 64
_TOKEN = re.compile(r"""\\.|["'{}\[\]]""", re.DOTALL)
_OPEN = re.compile(r"[{\[]")
_STATUS = re.compile(
    r"(?i:\b(?:(?:error |status[_ ]?|response )?code|status|HTTP(?:/[\d.]{1,3})?)\b[^0-9\n]{0,8}([45]\d\d)\b)"
    r"|(?:Error|Exception): ([45]\d\d)(?: [A-Z_]{3,40}\.?)? $"
)
_BEFORE = 200


class Document(NamedTuple):
    """A document, and the status of a failure that the text names before it on the same line."""

    value: object
    status: int | None


def documents(text: str) -> list[Document]:
    """
    Return the documents in a text, in their order.

    >>> documents("Error code: 429 - {'error': {'code': 'x'}}")
    [Document(value={'error': {'code': 'x'}}, status=429)]
    """
    text = text[-_MAX_TEXT:]
    if '\\"' in text and '{"' not in text:
        # Quoted once more, as logfmt does.
        text = text.replace('\\"', '"')
    found: list[Document] = []
    place = failures = 0
    while failures < _MAX_FAILURES and (start := _OPEN.search(text, place)) is not None:
        place = start.end()
        end = _end(text, start.start())
        value = None if end is None else _parse(text[start.start() : end])
        if end is None or value is None:
            failures += 1
            continue
        before = text[max(0, start.start() - _BEFORE) : start.start()].rpartition("\n")[2]
        status = _STATUS.search(before)
        found.append(Document(value, None if status is None else int(status[1] or status[2])))
        place = end
    return found


def _end(text: str, start: int) -> int | None:
    """Return where the bracket at `start` is closed, or None. Brackets inside quotes do not count."""
    depth = 0
    quote = ""
    for match in _TOKEN.finditer(text, start):
        token = match[0]
        if quote:
            quote = "" if token == quote else quote
        elif token in {'"', "'"}:
            quote = token
        elif token in {"{", "["}:
            depth += 1
            if depth > _MAX_DEPTH:
                return None
        elif token in {"}", "]"}:
            depth -= 1
            if depth == 0:
                return match.end()
    return None


def _parse(text: str) -> dict[str, object] | list[object] | None:
    """Return a JSON document or a Python dict; None for anything else, and for empty ones."""
    value: object = None
    try:
        value = read(text)
    except Unreadable:
        if len(text) <= _MAX_LITERAL:
            try:
                with catch_warnings(action="ignore"):
                    value = literal_eval(text)
            except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
                return None
    if not isinstance(value, (dict, list)) or value is TOO_DEEP:
        return None
    return value or None
