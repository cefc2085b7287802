"""The meaning of code words: by the vendor's table, by what all vendors agree on, and by the form of the code word."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from amends.core.enums import Recovery
from amends.core.meanings import (
    CARD,
    IN_PROGRESS,
    INVALID,
    MEANINGS,
    NOT_SENT,
    OVERLOADED,
    PERMANENT,
    QUOTA,
    RATE,
    TIMEOUT,
    TOKEN_EXPIRED,
    UNAVAILABLE,
    Meaning,
)
from amends.vendors.evidence import PER_DAY, PER_MINUTE
from amends.vendors.model import Vendor
from amends.vendors.registry import Index, index, reader_tables

__all__ = ["STATUSES", "Sender", "by_form", "by_status", "by_words", "first_word", "fits", "is_known"]

STATUSES: dict[int, Meaning] = {
    402: QUOTA,
    420: RATE,
    423: IN_PROGRESS,
    440: TOKEN_EXPIRED,
    449: IN_PROGRESS,
    # Storage is full: the owner has to make room.
    507: QUOTA,
    520: UNAVAILABLE,
    521: NOT_SENT,
    522: UNAVAILABLE,
    523: NOT_SENT,
    524: UNAVAILABLE,
    525: NOT_SENT,
    526: PERMANENT,
    529: OVERLOADED,
    530: UNAVAILABLE,
}
"""Statuses outside the registered ones, or with a more exact meaning than their class."""

_WAITING: dict[int, Meaning] = {402: RATE, 403: RATE, 409: IN_PROGRESS, 413: RATE}
"""Refusals that name a wait: the same call succeeds later."""

_BROAD_STATUSES = frozenset({None, 200, 400, 422, 500})
"""Statuses that say no more than that the call failed. Under 500 only the last two of the broad forms count."""
_EXACT = frozenset({401, 402, 403, 404, 409, 410, 413, 415, 429})
"""Statuses that say more than a code word for "the request is wrong", such as the type of an error with an unknown code."""


class Sender(IntEnum):
    """How surely the sender of an answer is known."""

    NOBODY = 0
    GUESS = 1
    """By a shape or a header that others send too."""
    SHAPE = 2
    """By an unmistakable shape."""
    HEADER = 3
    """By a header that only this service sends."""
    NAME = 4
    """By the host that was called, or by the user."""


def by_words(
    words: list[str],
    status: int | None,
    vendor: Vendor | None,
    tables: Index,
    *,
    waiting: bool = False,
    surely: Sender = Sender.NAME,
) -> tuple[Meaning, str] | None:
    """
    Return the kind of the first code word that has one, and the code word.

    Args:
        words: the code words, the most specific first.
        status: the HTTP status.
        vendor: the sender.
        tables: the code words of all services.
        waiting: whether the response names a wait.
        surely: how surely the sender is known. A number counts from SHAPE on. A code word of a sender that is less known, and
            one of another service, has to fit the status and the wait.

    """
    known = tables.words
    for word in words:
        if word == PER_DAY:
            return QUOTA, first_word(words) or PER_DAY
        if word == PER_MINUTE:
            return RATE, first_word(words) or PER_MINUTE
        kind = None if vendor is None else _under(vendor.words.get(word), status, waiting)
        if kind is not None and surely <= Sender.GUESS:
            is_number = word.lstrip("-").isdecimal()
            kind = None if is_number or not fits(kind, status, waiting=waiting) else kind
        if kind is None and (len(word) > 3 or not word.isdecimal()):
            kind = _under(known.get(word), status, waiting)
            if kind is None or not fits(kind, status, waiting=waiting):
                kind = _form(word, "any")
                if kind is not None and not fits(kind, status, waiting=waiting):
                    kind = None
            if kind is INVALID and status in _EXACT:
                continue
            if kind is None and status == _FORBIDDEN:
                # api.data.gov: 403 API_KEY_MISSING.
                kind = _form(word, "403")
            if kind is None and status in _BROAD_STATUSES:
                kind = _form(word, "broad")
                if kind is None and (status is None or status < _FAILED):
                    kind = _form(word, "none")
                if status == 500 and kind is not TIMEOUT and kind is not UNAVAILABLE:
                    kind = None
            if kind is None and vendor is not None and "." in word:
                # AuthFailure.SignatureFailure
                kind = _under(vendor.words.get(word.partition(".")[0]), status, waiting)
        if kind is not None:
            return kind, word
    if status is None or status < 400:
        for word in words:
            kind = None if vendor is None else vendor.broad.get(word)
            kind = kind or tables.broad.get(word)
            if kind is not None:
                return kind, word
    return None


def fits(kind: Meaning, status: int | None, *, waiting: bool) -> bool:
    """
    Return whether the code word of a stranger may have this meaning under a status; `waiting`: the response names a wait.

    It cannot stop a call where the status or the wait says that a repeat may succeed, and cannot start a repeat where the status
    says that none can. Used-up money always may, and payment unless the status is final: then each further call is lost.

    >>> from amends.core.meanings import FORBIDDEN, QUOTA, RATE
    >>> fits(FORBIDDEN, 429, waiting=True), fits(QUOTA, 429, waiting=True), fits(RATE, 404, waiting=False)
    (False, True, True)
    """
    if status is None or status < _FAILED or kind.code == QUOTA.code:
        return True
    if kind.code == CARD.code:
        # An account that has to sign in pays nothing.
        return status not in _FINAL
    again = kind.recovery is Recovery.TRANSIENT or kind.recovery is Recovery.UNCERTAIN
    if status in _FINAL:
        return not again or waiting or kind.code in _AFTER_FINAL.get(status, ())
    if again:
        return True
    if status == _TOO_MANY:
        return kind.code in _SIZES
    if waiting and status in _PATIENT:
        return False
    return status not in _DOWN or kind.code in _STOPS_WHEN_DOWN


_FAILED, _FORBIDDEN, _TOO_MANY = 400, 403, 429
_SIZES = frozenset({"CONTENT_TOO_LARGE", "CONTEXT_TOO_LONG", "SERVICE_UNAVAILABLE"})
"""What a 429 may also say: the request alone is larger than the limit."""
_FINAL = frozenset({401, 404, 405, 406, 410, 415})
_AFTER_FINAL = {
    401: frozenset({"RATE_LIMITED"}),
    404: frozenset({"NOT_READY", "SERVICE_UNAVAILABLE", "OVERLOADED", "RATE_LIMITED", "CONFLICT"}),
}
_PATIENT = frozenset({403, 409, 413, 420, 423, 425, 503})
_DOWN = frozenset({502, 503, 504, 529})
_STOPS_WHEN_DOWN = frozenset({"PERMISSION_DENIED", "CONTENT_REFUSED", "SERVICE_UNAVAILABLE"})


def _under(
    kinds: Meaning | Mapping[int, Meaning] | None, status: int | None, waiting: bool
) -> Meaning | None:
    """Return the kind of a code word under a status."""
    if kinds is None or isinstance(kinds, Meaning):
        return kinds
    if waiting and status is not None and -status in kinds:
        return kinds[-status]
    return kinds.get(status or 0) or kinds.get(0)


def first_word(words: list[str]) -> str | None:
    """Return the most specific code word of the sender; a number that only repeats the status comes last."""
    number = None
    for word in words:
        if word[0] != "@":
            if len(word) != 3 or not word.isdecimal() or word[0] not in "45":
                return word
            number = number or word
    return number


class _Form(NamedTuple):
    has: re.Pattern[str]
    unless: re.Pattern[str] | None
    meaning: Meaning


@lru_cache(maxsize=8)
def _forms(under: str) -> tuple[re.Pattern[str], tuple[_Form, ...]]:
    """Return what any form has, and the forms, that count under a status. They are compiled when a word is unknown for the first time."""
    tables = reader_tables()
    forms = []
    for row in tables["forms"]:
        if row["under"] == under:
            case = 0 if row.get("exact") else re.IGNORECASE
            found = [
                "|".join(f"(?:{_with_parts(form, tables['parts'])})" for form in row.get(member, ()))
                for member in ("forms", "unless")
            ]
            unless = re.compile(found[1], case) if found[1] else None
            forms.append(_Form(re.compile(found[0], case), unless, MEANINGS[row["meaning"]]))
    every = "|".join(f"(?:{form.has.pattern})" for form in forms)
    return re.compile(every, re.IGNORECASE), tuple(forms)


def _with_parts(form: str, parts: Mapping[str, str]) -> str:
    for name, pattern in parts.items():
        form = form.replace(f"{{{name}}}", pattern)
    return form


_CLASS = re.compile("(?<=[a-z])(?:Error|Exception|Fault)$")


@lru_cache(maxsize=8192)
def _form(word: str, under: str) -> Meaning | None:
    # An address is a type, which is compared as a whole.
    if len(word) < _SHORTEST or "://" in word:
        return None
    every, forms = _forms(under)
    for said in dict.fromkeys((word, _CLASS.sub("", word), word.replace(".", "_"))):
        if every.search(said) is not None:
            for form in forms:
                if form.has.search(said) and not (form.unless is not None and form.unless.search(said)):
                    return form.meaning
    return None


_SHORTEST = 7
"""The length of `timeout`."""


def by_form(word: str) -> Meaning | None:
    """
    Return the meaning that the form of an unknown code word shows, or None.

    Services invent code words by the same few patterns (`org_spend_limit_exceeded`, `ModelOverloaded`), which data/reader.toml
    has. Only code words are looked at, never messages.
    """
    return _form(word, "any")


def is_known(word: str) -> bool:
    """Return whether a code word is in a vendor's table, or has the form of a code word that is read."""
    known = index()
    if word in known.words or word in known.broad or by_form(word) is not None:
        return True
    return any(word in each.words or word in each.broad for each in known.vendors.values())


def by_status(status: int, vendor: Vendor | None, waiting: bool) -> Meaning | None:
    """Return the kind of a status where it differs from the general row; `waiting`: the response names a wait."""
    if vendor is not None and status in vendor.statuses:
        kind = vendor.statuses[status]
        # A budget of requests in flight is free again soon.
        return RATE if waiting and status == 402 else kind
    if waiting and status in _WAITING:
        return _WAITING[status]
    return STATUSES.get(status)
