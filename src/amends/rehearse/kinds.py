"""
The kinds of failure, and the reaction that is right for each.

The expected reaction does not come from `amends.decide`: the stage must not judge amends by itself. It is given in the example of
the service file (`reaction = "…"` beside its meaning), or follows from the meaning that the example names, by the table below,
which quotes the specification that says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

import msgspec

__all__ = [
    "BUILT",
    "CONNECTION",
    "KINDS",
    "REACTIONS",
    "STREAMING",
    "Kind",
    "Reaction",
    "kind_of",
    "reaction_of",
]


class Reaction(StrEnum):
    """What a program should do about a failure."""

    REPEAT = "repeat"
    """Repeat the call: it had no effect, or only computes. An announced wait is kept first."""
    STOP = "stop"
    """Do not repeat the call, and say why: no repeat can succeed until the owner acts."""
    FIX = "fix"
    """Change the request before it is sent again, or say what is wrong with it."""
    VERIFY = "verify"
    """The call may have had its effect: look first, or repeat with the same idempotency key, or stop and say so."""


class Kind(msgspec.Struct, frozen=True):
    """One kind of failure."""

    name: str
    text: str
    """What the service does."""
    advice: str
    """What to change in a program that reacts wrongly."""
    harmful_repeat: bool = False
    """Whether an unchanged repeat is harm and not only useless: an exhausted account that is asked again and again."""


_WAITS = "Wait as long as the answer says (Retry-After), then repeat a few times with growing waits."
_DOUBT = "Do not repeat a call that acts unless it carries the same idempotency key, or a look at the service shows that nothing happened."
_CHANGES = "Do not send the same request again: change what the answer names, or pass code, field and message to the model."

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        each.name: each
        for each in (
            Kind("refused", "refuses the connection", "Repeat: nothing was sent."),
            Kind("dns", "has no address for a moment", "Repeat: nothing was sent."),
            Kind("tls", "breaks the TLS handshake", "Repeat: nothing was sent."),
            Kind("rate", "limits the rate", _WAITS),
            Kind(
                "quota",
                "says that the quota or the credit is used up",
                "Stop and tell the user: a repeat costs and cannot succeed until the owner pays.",
                harmful_repeat=True,
            ),
            Kind("overload", "is overloaded", _WAITS),
            Kind("busy", "is busy with the same object", _WAITS),
            Kind("server-error", "fails inside", _DOUBT),
            Kind("html", "answers with the page of a CDN", _DOUBT),
            Kind("malformed", "answers success with half a body", _DOUBT),
            Kind("validation", "refuses the request because of a field", _CHANGES),
            Kind("conflict", "refuses the request because of the state of the object", _CHANGES),
            Kind(
                "expired",
                "refuses the credentials",
                "Refresh the credentials, or stop and say so; the same ones fail again.",
            ),
            Kind(
                "permission",
                "denies permission",
                "Stop and name the missing permission; a repeat is denied again.",
            ),
            Kind(
                "payment", "asks for another payment", "Stop and ask the user for another means of payment."
            ),
            Kind("not-found", "does not find what the request names", _CHANGES),
            Kind("content-refused", "refuses the content", _CHANGES),
            Kind(
                "context-too-long",
                "says that the context is too long",
                "Shorten the conversation before the next call.",
            ),
            Kind(
                "in-success",
                "reports a failure with status 200",
                "Read the body of successful answers of this service, too.",
            ),
            Kind("lost", "acts, and the answer is lost", _DOUBT),
            Kind("late", "acts, and answers later than a caller waits", _DOUBT),
            Kind(
                "cut",
                "ends a stream in the middle",
                "Treat a stream without its last event as failed, and repeat it.",
            ),
            Kind(
                "error-event",
                "reports a failure inside a stream",
                "Read the events of a stream for failures, and repeat it.",
            ),
            Kind("silent", "keeps the connection and sends nothing", "Give every call a time limit."),
        )
    }
)
"""Every kind, in the order of reports."""

CONNECTION = frozenset({"refused", "dns", "tls"})
"""Kinds that happen before anything is sent. They need the interception in the process: a server cannot produce them."""
STREAMING = frozenset({"cut", "error-event"})
"""Kinds that only a stream can have."""
BUILT = frozenset({"html", "malformed", "lost", "late", "silent", "cut", *CONNECTION})
"""Kinds that are built from the service's own successful answers, or need no answer."""

_KIND_OF_MEANING: Mapping[str, str] = MappingProxyType(
    {
        "rate": "rate",
        "quota": "quota",
        "overloaded": "overload",
        "full": "overload",
        "unavailable": "overload",
        "in_progress": "busy",
        "aborted": "busy",
        "not_ready": "busy",
        "internal": "server-error",
        "damaged": "server-error",
        "timeout": "server-error",
        "permanent": "server-error",
        "invalid": "validation",
        "too_large": "validation",
        "conflict": "conflict",
        "bad_key": "expired",
        "token_expired": "expired",
        "sign_in": "expired",
        "forbidden": "permission",
        "disabled": "permission",
        "step_up": "permission",
        "card": "payment",
        "pay": "payment",
        "not_found": "not-found",
        "content_refused": "content-refused",
        "context_too_long": "context-too-long",
    }
)


class Expectation(msgspec.Struct, frozen=True):
    """A reaction and the rule that demands it."""

    reaction: Reaction
    source: str


_RETRY_AFTER = "RFC 9110, 10.2.3: Retry-After is how long the client ought to wait before a follow-up request"
_CLIENT = "RFC 9110, 15.5: the client seems to have erred; the same request errs again"
_NOT_IDEMPOTENT = (
    "RFC 9110, 9.2.2: a client should not repeat a request whose method is not idempotent, unless it knows that "
    "the request is idempotent or was never applied"
)

REACTIONS: Mapping[str, Expectation] = MappingProxyType(
    {
        **{
            name: Expectation(Reaction.REPEAT, _RETRY_AFTER)
            for name in (
                "rate",
                "overloaded",
                "full",
                "unavailable",
                "in_progress",
                "aborted",
                "not_ready",
                "not_sent",
            )
        },
        **{
            name: Expectation(Reaction.STOP, "the owner of the account has to act first")
            for name in ("quota", "disabled", "card", "sign_in", "permanent", "damaged", "untrusted")
        },
        "forbidden": Expectation(
            Reaction.STOP,
            "RFC 9110, 15.5.4: do not automatically repeat the request with the same credentials",
        ),
        **{
            name: Expectation(
                Reaction.FIX, "RFC 9110, 15.5.2: repeat only with a new or replaced Authorization field"
            )
            for name in ("bad_key", "token_expired", "step_up")
        },
        **{
            name: Expectation(Reaction.FIX, _CLIENT)
            for name in (
                "invalid",
                "too_large",
                "conflict",
                "not_found",
                "content_refused",
                "context_too_long",
                "pay",
            )
        },
        **{
            name: Expectation(Reaction.VERIFY, _NOT_IDEMPOTENT)
            for name in ("internal", "timeout", "lost", "cancelled", "unreadable")
        },
    }
)
"""Meaning of an example → the reaction that is right, and the rule that demands it."""

_BUILT_REACTIONS: Mapping[str, Expectation] = MappingProxyType(
    {
        **{
            name: Expectation(
                Reaction.REPEAT, "RFC 9110, 9.2.2: a request that was never applied may be repeated"
            )
            for name in CONNECTION
        },
        **{
            name: Expectation(Reaction.VERIFY, _NOT_IDEMPOTENT)
            for name in ("html", "malformed", "lost", "late", "silent", "cut", "error-event", "server-error")
        },
    }
)


def kind_of(meaning: str, status: int, *, event: bool = False) -> str | None:
    """
    Return the kind of an example with this meaning; None for meanings that no service sends.

    >>> kind_of("quota", 429), kind_of("rate", 200), kind_of("overloaded", 200, event=True)
    ('quota', 'in-success', 'error-event')
    """
    kind = _KIND_OF_MEANING.get(meaning)
    if kind is not None and event:
        return "error-event"
    return "in-success" if kind is not None and status < 400 else kind


def reaction_of(kind: str, meaning: str | None = None) -> Expectation:
    """
    Return the reaction to a failure: that of its meaning, or of its kind if it was built and means nothing of its own.

    >>> reaction_of("quota", "quota").reaction.value, reaction_of("lost").reaction.value
    ('stop', 'verify')
    """
    if meaning is not None and meaning in REACTIONS:
        return REACTIONS[meaning]
    if kind in _BUILT_REACTIONS:
        return _BUILT_REACTIONS[kind]
    usual = next((each for each, named in _KIND_OF_MEANING.items() if named == kind), "internal")
    return REACTIONS[usual]
