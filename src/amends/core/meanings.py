"""
Meanings: what a sender's code word, number, exception class or close code says.

A meaning is a code with what is known beyond it: who has to act, and whether the call may have had its effect. CONFLICT alone does
not say whether another operation is in progress (repeat it) or the state is wrong (change the request); `in_progress` and
`conflict` do. The tables of services, of exception classes and of protocol numbers all refer to these names, so that a code word has
one meaning everywhere. What a code itself means is in its row (`amends.core.vocabulary.Row`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from amends.core.enums import Actor, Executed, Recovery
from amends.core.fault import Fault
from amends.core.vocabularies.everyday import VOCABULARY
from amends.core.vocabularies.http import VOCABULARY as HTTP

__all__ = [
    "ABORTED",
    "BAD_KEY",
    "CANCELLED",
    "CARD",
    "CONFLICT",
    "CONTENT_REFUSED",
    "CONTEXT_TOO_LONG",
    "DAMAGED",
    "DISABLED",
    "FORBIDDEN",
    "FULL",
    "INTERNAL",
    "INVALID",
    "IN_PROGRESS",
    "LOST",
    "MEANINGS",
    "NOT_FOUND",
    "NOT_READY",
    "NOT_SENT",
    "NOT_SENT_IN_TIME",
    "OVERLOADED",
    "PAY",
    "PERMANENT",
    "QUOTA",
    "RATE",
    "REJECTED",
    "SIGN_IN",
    "STEP_UP",
    "TIMEOUT",
    "TOKEN_EXPIRED",
    "TOO_LARGE",
    "UNAVAILABLE",
    "UNREADABLE",
    "UNTRUSTED",
    "Meaning",
    "fault_of",
]


class Meaning(msgspec.Struct, frozen=True, gc=False):
    """
    What a code word of a sender says.

    >>> RATE.code, RATE.recovery.value, RATE.executed.value
    ('RATE_LIMITED', 'transient', 'no')
    """

    name: str
    code: str
    """A code of the http vocabulary, which has all codes of the everyday set."""
    recovery: Recovery
    actor: Actor
    executed: Executed | None = None
    """Whether the call may have had its effect (M3); None: the HTTP status decides, and without one it may."""
    wait: float | None = None
    """Seconds that a service documents for a code word, if the response names no wait."""

    @classmethod
    def of(
        cls,
        code: str,
        executed: Executed | None,
        recovery: Recovery | None = None,
        actor: Actor | None = None,
        name: str = "",
    ) -> Meaning:
        """
        Return the meaning of an everyday code, with the recovery and the actor of its row where none are given.

        >>> Meaning.of("NOT_FOUND", Executed.NO).recovery.value
        'correctable'
        """
        row = VOCABULARY.rows[code]
        recovery = recovery or row.recovery
        return cls(name, code, recovery, actor or row.actor_under(recovery), executed)

    def says_the_same(self, other: Meaning) -> bool:
        """
        Return whether two meanings lead to the same fault, apart from a documented wait.

        >>> FORBIDDEN.says_the_same(DISABLED), CONFLICT.says_the_same(IN_PROGRESS)
        (True, False)
        """
        return (self.code, self.recovery, self.actor, self.executed) == (
            other.code,
            other.recovery,
            other.actor,
            other.executed,
        )


_NO, _MAYBE = Executed.NO, Executed.MAYBE
_TRANSIENT, _CORRECTABLE, _TERMINAL = Recovery.TRANSIENT, Recovery.CORRECTABLE, Recovery.TERMINAL
_OF_STATUS = None
_MEANINGS: dict[str, Meaning] = {}


def _meaning(
    name: str,
    code: str,
    executed: Executed | None,
    recovery: Recovery | None = None,
    actor: Actor | None = None,
) -> Meaning:
    made = _MEANINGS[name] = Meaning.of(code, executed, recovery, actor, name)
    return made


RATE = _meaning("rate", "RATE_LIMITED", _NO)
"""Too many calls in a short time."""
QUOTA = _meaning("quota", "QUOTA_EXCEEDED", _NO)
"""A quota of a long period, credit or a spending limit is used up."""
OVERLOADED = _meaning("overloaded", "OVERLOADED", _OF_STATUS)
FULL = _meaning("full", "OVERLOADED", _NO)
"""A queue, a pool or the memory of the server is full; the call was not accepted."""
UNAVAILABLE = _meaning("unavailable", "SERVICE_UNAVAILABLE", _OF_STATUS)
LOST = _meaning("lost", "SERVICE_UNAVAILABLE", _MAYBE)
"""The connection or the answer was lost, or a resource such as disk space ran out; what was sent may have had its effect."""
NOT_SENT = _meaning("not_sent", "SERVICE_UNAVAILABLE", _NO)
"""Nothing was sent: no address, no connection, no free place in the pool, or the other side was not ready."""
UNTRUSTED = _meaning("untrusted", "SERVICE_UNAVAILABLE", _NO, _TERMINAL)
"""The other side could not prove its identity; waiting does not change that."""
PERMANENT = _meaning("permanent", "SERVICE_UNAVAILABLE", _NO, _TERMINAL)
"""Permanent, though its status is that of a transient failure."""
TIMEOUT = _meaning("timeout", "TIMEOUT", _MAYBE)
"""A time-out after the request was sent."""
NOT_SENT_IN_TIME = _meaning("not_sent_in_time", "TIMEOUT", _NO)
"""A time-out before anything was sent."""
CONTEXT_TOO_LONG = _meaning("context_too_long", "CONTEXT_TOO_LONG", _NO)
TOO_LARGE = _MEANINGS["too_large"] = Meaning(
    "too_large", "CONTENT_TOO_LARGE", _CORRECTABLE, Actor.CALLER, _NO
)
"""The request can never fit: its size, or the amount asked for, is above a fixed limit."""
CONTENT_REFUSED = _meaning("content_refused", "CONTENT_REFUSED", _NO)
BAD_KEY = _meaning("bad_key", "UNAUTHENTICATED", _NO)
"""A key or token that was never valid here, or is missing."""
TOKEN_EXPIRED = _meaning("token_expired", "UNAUTHENTICATED", _NO)
"""A token that has to be refreshed."""
SIGN_IN = _meaning("sign_in", "UNAUTHENTICATED", _NO, actor=Actor.USER)
"""A person has to sign in or consent again."""
STEP_UP = _meaning("step_up", "PERMISSION_DENIED", _NO, _CORRECTABLE, Actor.USER)
"""The token lacks a scope or a claim; with another token the same call succeeds."""
FORBIDDEN = _meaning("forbidden", "PERMISSION_DENIED", _NO)
DISABLED = _meaning("disabled", "PERMISSION_DENIED", _NO)
"""The account, project or feature is switched off; its owner has to act."""
NOT_FOUND = _meaning("not_found", "NOT_FOUND", _NO)
INVALID = _meaning("invalid", "VALIDATION_ERROR", _NO)
"""The request was refused because of its content."""
UNREADABLE = _meaning("unreadable", "VALIDATION_ERROR", _MAYBE)
"""A document could not be read. It may be the request, or the answer to a call that had its effect."""
CONFLICT = _meaning("conflict", "CONFLICT", _NO)
IN_PROGRESS = _meaning("in_progress", "CONFLICT", _NO, _TRANSIENT)
"""Another operation or the same key is in progress; the same call succeeds afterwards."""
ABORTED = _meaning("aborted", "CONFLICT", _NO, _TRANSIENT)
"""A concurrent change won and this one was rolled back; the sequence is repeated from its beginning."""
NOT_READY = _meaning("not_ready", "NOT_READY", _NO)
INTERNAL = _meaning("internal", "INTERNAL_ERROR", _MAYBE)
"""Nothing more is known."""
DAMAGED = _meaning("damaged", "INTERNAL_ERROR", _MAYBE, _TERMINAL)
"""Stored data is damaged; a repeat does not change that."""
REJECTED = _meaning("rejected", "INTERNAL_ERROR", _NO, _TERMINAL)
"""The other side did not take the work."""
CANCELLED = _meaning("cancelled", "CANCELLED", _MAYBE)
PAY = _meaning("pay", "PAYMENT_REQUIRED", _NO, _CORRECTABLE, Actor.CALLER)
"""The response says how to pay; the call is then sent again with the payment."""
CARD = _meaning("card", "PAYMENT_REQUIRED", _NO, _CORRECTABLE, Actor.USER)
"""A card or another means of payment was declined; another one may work."""

MEANINGS: Mapping[str, Meaning] = MappingProxyType(_MEANINGS)
"""The one table of meanings: name → meaning."""


def fault_of(meaning: Meaning, **more: Any) -> Fault:
    """
    Return the Fault of a meaning, with the message of its code. `more` are further fields of the Fault.

    >>> fault_of(NOT_SENT).executed.value
    'no'
    >>> fault_of(TOO_LARGE).message
    'The body is too large'
    """
    # A size is the one meaning whose code is not in the everyday vocabulary.
    vocabulary = VOCABULARY if meaning.code in VOCABULARY.rows else HTTP
    return Fault(
        code=meaning.code,
        message=vocabulary.rows[meaning.code].message,
        recovery=meaning.recovery,
        vocabulary=vocabulary.name,
        executed=_MAYBE if meaning.executed is None else meaning.executed,
        actor=meaning.actor,
        **more,
    )
