"""The meaning of code words: by the vendor's table, by what all vendors agree on, and by the form of the code word."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from functools import lru_cache

from amends.core.enums import Recovery
from amends.core.meanings import (
    ABORTED,
    BAD_KEY,
    CARD,
    CONFLICT,
    CONTENT_REFUSED,
    CONTEXT_TOO_LONG,
    DISABLED,
    FORBIDDEN,
    IN_PROGRESS,
    INVALID,
    NOT_FOUND,
    NOT_SENT,
    OVERLOADED,
    PERMANENT,
    QUOTA,
    RATE,
    STEP_UP,
    TIMEOUT,
    TOKEN_EXPIRED,
    TOO_LARGE,
    UNAVAILABLE,
    Meaning,
)
from amends.vendors.evidence import PER_DAY, PER_MINUTE
from amends.vendors.model import Vendor
from amends.vendors.registry import Index, index

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

_FORMS: tuple[tuple[re.Pattern[str], Meaning], ...] = (
    (
        re.compile(
            r"(?:spend|credit|billing|budget|balance)\w*[-_.:]?\w*"
            r"(?:limit|exceed|exhaust|deplet|insufficient|reached|low\b|required)"
            r"|(?:insufficient|out_?of|not_?enough|no|no[-_]?more)[-_]?(?:quota|credit|balance|funds)"
            r"|(?:balance|credits?|funds|quota)[-_]?(?:is[-_]?)?not[-_]?enough"
            r"|exceed\w*[-_]?quota|over[-_]?quota|(?:^|[-_])cap[-_](?:exceeded|reached)|free[-_]?(?:usage|tier|plan|quota)[-_]?\w*(?:limit|exceed|exhaust|reached|ended)|arrears?|arrearage|overdue|free_?tier_?only|monthly[-_]?request"
            r"|(?:usage|plan|subscription|storage)[-_]?limits?[-_]?(?:exceed|reach|exhaust)"
            r"|quota[-_]?\w*(?:exceed|exhaust|reached)|resource_limit_(?:exceeded|reached)|(?:daily|monthly|weekly)[-_]?\w*(?:limit|quota|cap)",
            re.IGNORECASE,
        ),
        QUOTA,
    ),
    (
        re.compile(
            r"rate[-_.]?limit|throttl|too[-_]?many[-_]?(?:[a-z]+[-_])?(?:requests|calls|concurrent)|slow[-_]?down"
            r"|(?:invocation|hourly|burst|qps|concurren(?:cy|t))\w*[-_]?limit|frequency[-_]?limit"
            r"|concurrent[-_]?\w*exceed",
            re.IGNORECASE,
        ),
        RATE,
    ),
    (
        re.compile(
            r"overload|capacity[-_]?exceeded|no[-_]?capacity|server[-_]?busy|queue[-_]?full", re.IGNORECASE
        ),
        OVERLOADED,
    ),
    (
        re.compile(
            r"context[-_]?(?:length|window|size)\w*|(?:prompt|input)[-_]?(?:is[-_])?too[-_]?long",
            re.IGNORECASE,
        ),
        CONTEXT_TOO_LONG,
    ),
    (
        re.compile(
            r"content[-_]?(?:policy|filter|moderat|block)|safety[-_]?(?:block|violation)|^moderation|guardrail"
            r"|(?:sensitive|prohibited|illegal|inappropriate|unsafe|harmful)[-_]?(?:content|prompt|image|input)"
            r"|data[-_]?inspection",
            re.IGNORECASE,
        ),
        CONTENT_REFUSED,
    ),
    (
        re.compile(
            r"(?:token|session|jwt|credentials?)[-_]?(?:has[-_])?expired|expired[-_]?(?:\w+?[-_]?)?(?:token|session|jwt)",
            re.IGNORECASE,
        ),
        TOKEN_EXPIRED,
    ),
    (
        re.compile(
            r"(?:account|user|subscription|organi[sz]ation|team|tenant|project)[-_]?(?:is[-_]?|has[-_]?been[-_]?)?"
            r"(?:suspended|disabled|deactivated|banned|blocked|closed|terminated)",
            re.IGNORECASE,
        ),
        DISABLED,
    ),
    (
        re.compile(
            r"concurrent[-_]?idempoten|idempoten\w*[-_](?:in[-_]?progress|in[-_]?use|conflict_in)"
            r"|transient[-_]?state|simultaneous[-_]?request"
            r"|(?:request|operation|update|deployment|deletion|creation|migration)[-_]?(?:already[-_]?)?in[-_]?progress",
            re.IGNORECASE,
        ),
        IN_PROGRESS,
    ),
    (re.compile(r"optimistic[-_]?lock", re.IGNORECASE), ABORTED),
    (re.compile(r"^Neo\.TransientError\."), UNAVAILABLE),
)
_BROAD_STATUSES = frozenset({None, 200, 400, 422, 500})
"""Statuses that say no more than that the call failed. Under 500 only the last two of the broad forms count."""
_WRONG = (
    "invalid|missing|required|unknown|bad|wrong|expired|revoked|disabled|inactive|incorrect|unauthorized"
    "|not[-_]?valid|does[-_]?not[-_]?exist|not[-_]?found"
)
_CREDENTIAL = (
    r"(?:(?:api|access|secret|subscription)[-_]?keys?(?:[-_]?id)?|(?:api|access|auth|bearer|subscription|jwt|security)[-_]?token"
    r"|jwt|credentials?|(?<![a-z_-])token)"
)
"""Names of what a caller proves its identity with; not of tokens that point to a page or a device."""
_REFUSED = re.compile(
    rf"(?:{_WRONG})[-_]?{_CREDENTIAL}$|(?<![a-z])(?:[a-z]+[-_])?{_CREDENTIAL}[-_]?(?:is[-_]?)?(?:{_WRONG})",
    re.IGNORECASE,
)
_NO_KEY = re.compile(
    r"(?:api|access|subscription)[-_]?key[-_]?(?:is[-_]?)?(?:missing|invalid|required|unknown)|(?:missing|invalid)[-_]?api[-_]?key",
    re.IGNORECASE,
)
_BROAD: tuple[tuple[re.Pattern[str], Meaning], ...] = (
    (_REFUSED, BAD_KEY),
    (re.compile(r"not[-_]?found|does[-_]?not[-_]?exist|^no[-_]?such[-_]?", re.IGNORECASE), NOT_FOUND),
    (
        re.compile(
            r"already[-_]?exist|^duplicate|(?:in[-_]?use|exists)(?:exception|fault)?$"
            r"|invalid[a-z]+state(?:exception|fault)$",
            re.IGNORECASE,
        ),
        CONFLICT,
    ),
    (
        re.compile(
            r"too_?(?:large|long|big)|(?:Size|Length|Complexity)(?:Limit)?Exceeded"
            r"|exceeds?[-_]?max\w*[-_]?(?:size|length|resolution)",
            re.IGNORECASE,
        ),
        TOO_LARGE,
    ),
    (
        re.compile(
            r"(?<!Token)(?<!Tokens)(?:LimitExceeded|(?:Count|Number)(?:Limit)?Exceeded)(?:Exception|Fault)?$"
        ),
        QUOTA,
    ),
    (re.compile(r"(?:access|permission)[-_]?denied|not[-_]?authorized", re.IGNORECASE), FORBIDDEN),
    (re.compile(r"constraint[-_]?violation|validation[-_]?failed", re.IGNORECASE), INVALID),
    (re.compile(r"time[-_]?out|timed_?out", re.IGNORECASE), TIMEOUT),
    (
        re.compile(
            r"unavailable|no[-_](?:[a-z]+[-_])?(?:provider|worker|server|backend|instance|upstream|host)s?[-_]available",
            re.IGNORECASE,
        ),
        UNAVAILABLE,
    ),
)
_WITHOUT_STATUS: tuple[tuple[re.Pattern[str], Meaning], ...] = (
    (
        re.compile(
            r"(?<!char)(?<!characters)(?<!length)(?<!size)(?<!time)(?<!depth)(?<!complexity)(?<!rows)(?<!page)(?<!results)"
            r"(?<!token)(?<!tokens)(?<!request)(?<!requests)(?<!offset)[-_]limit[-_]?(?:exceeded|reached)$",
            re.IGNORECASE,
        ),
        QUOTA,
    ),
    (re.compile(r"[-_]already[-_][a-z]|[-_]conflict$", re.IGNORECASE), CONFLICT),
    (
        re.compile(r"(?:missing|insufficient)[-_]?scopes?|scopes?[-_]?(?:missing|required)", re.IGNORECASE),
        STEP_UP,
    ),
    (
        re.compile(r"(?:account|user|subscription|plan|tenant)[-_]?(?:is[-_]?)?inactive", re.IGNORECASE),
        DISABLED,
    ),
    (re.compile(r"not[-_]?(?:allowed|permitted|approved|entitled)|forbidden", re.IGNORECASE), FORBIDDEN),
    (
        re.compile(
            r"(?:^|[-_.])(?:invalid|missing)[-_.]|[-_](?:invalid|missing|mismatch|too_short)$|(?:not[-_]|un)supported",
            re.IGNORECASE,
        ),
        INVALID,
    ),
    (re.compile(r"^(?:invalid|missing)[A-Z]"), INVALID),
)
"""Forms for a document without a status. Under one, the status says this as well."""
_EXACT = frozenset({401, 402, 403, 404, 409, 410, 413, 415, 429})
"""Statuses that say more than a code word for "the request is wrong", such as the type of an error with an unknown code."""
_ANY = re.compile("|".join(f"(?:{pattern.pattern})" for pattern, _ in _FORMS), re.IGNORECASE)


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
                kind = by_form(word)
            if kind is not None and not fits(kind, status, waiting=waiting):
                kind = None
            if kind is INVALID and status in _EXACT:
                continue
            if kind is None and status == _FORBIDDEN and _NO_KEY.search(word):
                # api.data.gov: 403 API_KEY_MISSING.
                kind = BAD_KEY
            if kind is None and status in _BROAD_STATUSES:
                kind = by_broad_form(word)
                if kind is None and (status is None or status < _FAILED):
                    kind = by_last_form(word)
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


@lru_cache(maxsize=4096)
def by_form(word: str) -> Meaning | None:
    """
    Return the kind that the form of an unknown code word shows, or None.

    Services invent code words by the same few patterns (`org_spend_limit_exceeded`, `ModelOverloaded`). Only code words are
    looked at, never messages.
    """
    # An address is a type, which is compared as a whole.
    if len(word) < 8 or "://" in word or _ANY.search(word) is None:
        return None
    return next(kind for pattern, kind in _FORMS if pattern.search(word))


_SHORTEST = 7
"""The length of `timeout`."""


@lru_cache(maxsize=4096)
def by_broad_form(word: str) -> Meaning | None:
    """Return the kind that a common ending or phrase in an unknown code word shows, or None."""
    if len(word) < _SHORTEST or "://" in word:
        return None
    return next((kind for pattern, kind in _BROAD if pattern.search(word)), None)


@lru_cache(maxsize=4096)
def by_last_form(word: str) -> Meaning | None:
    """Return the kind that a code word shows in a document without a status (`invalid_position`), or None."""
    if len(word) < _SHORTEST or "://" in word:
        return None
    return next((kind for pattern, kind in _WITHOUT_STATUS if pattern.search(word)), None)


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
