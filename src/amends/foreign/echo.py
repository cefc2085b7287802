"""Find out whether a text repeats what the exceptions behind an exception say: `raise HTTPException(500, str(error))`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from amends.foreign.groups import parts_of
from amends.foreign.safe_attr import attribute, is_exception

__all__ = ["repeats_cause"]

_MOST = 64
"""Exceptions behind one that are read. Behind more than these, every text counts as repeated."""
_LONGEST = 4096
"""Characters of a text that are compared. A longer one counts as repeated."""
_TOTAL = 262_144
"""Characters of all exceptions together that are read. Behind more than these, every text counts as repeated."""
_RUN = 16
"""Characters in a row that are no coincidence."""


def repeats_cause(text: str, exc: BaseException) -> bool:
    """
    Return whether a text contains text of the exceptions that an exception was raised from or while handling.

    Compared are whole texts and arguments, runs of 16 characters, and words that are no plain words, such as names of hosts.

    >>> raised = RuntimeError()
    >>> raised.__cause__ = OSError("no route to db.internal")
    >>> repeats_cause("Look at db.internal", raised), repeats_cause("The shop is closed", raised)
    (True, False)
    """
    plain = _plain(text[:_LONGEST])
    runs = frozenset(_runs(plain))
    behind, left = _behind(exc), _TOTAL
    for _ in range(_MOST):
        cause = next(behind, None)
        if cause is None:
            return False
        if len(text) > _LONGEST:
            return True
        for said in _texts(cause):
            left -= len(said)
            if left < 0:
                return True
            foreign = _plain(said)
            if _has_whole(plain, foreign) or not runs.isdisjoint(_runs(foreign)):
                return True
            if any(_has_whole(plain, name) for name in _names(foreign)):
                return True
    return True


_WORD = re.compile(r"[^\s'\"()\[\]{},;!?<>]+")
_INSIDE = re.compile(r"\w[^\w-]+\w|[0-9_]")
"""What no plain word has: a digit, an underscore, or a point, colon, slash or the like between letters."""
_PIECE = re.compile(r"[^:/@=&?]{3,}")


def _names(text: str) -> Iterator[str]:
    """Yield the words of a text that are no plain words, and their pieces: `db.internal` of `db.internal:5432`."""
    for word in _WORD.findall(text):
        if _INSIDE.search(word):
            yield word.strip(".:")
            yield from _PIECE.findall(word)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _runs(text: str) -> Iterator[str]:
    return (text[start : start + _RUN] for start in range(len(text) - _RUN + 1))


def _has_whole(text: str, part: str) -> bool:
    """Return whether a text contains another one that does not begin or end inside a word."""
    start = text.find(part) if part else -1
    while start >= 0:
        end = start + len(part)
        begins_inside = start > 0 and text[start - 1].isalnum() and part[0].isalnum()
        ends_inside = text[end : end + 1].isalnum() and part[-1].isalnum()
        if not begins_inside and not ends_inside:
            return True
        start = text.find(part, start + 1)
    return False


def _behind(exc: BaseException) -> Iterator[BaseException]:
    """Yield the causes and contexts of an exception and of each of them, and the parts of groups."""
    met: set[int] = {id(exc)}
    waiting = [exc]
    while waiting:
        current = waiting.pop()
        for found in (attribute(current, "__cause__"), attribute(current, "__context__")):
            if not is_exception(found):
                continue
            for part in dict.fromkeys((found, *parts_of(found))):
                if id(part) not in met:
                    met.add(id(part))
                    waiting.append(part)
                    yield part


def _texts(exc: BaseException) -> Iterator[str]:
    """Yield what an exception says: its text, its arguments, and the name of its class."""
    yield type(exc).__name__
    arguments = attribute(exc, "args")
    for value in (exc, *(arguments if isinstance(arguments, tuple) else ())):
        try:
            yield str(value)
        except Exception:  # noqa: BLE001, S112 - any class may raise anything; what cannot be written was not repeated
            continue
