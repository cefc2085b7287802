"""Paths of addresses without what identifies a person or opens a door: emails, ids of accounts, tokens of resets and hooks."""

from __future__ import annotations

import re

__all__ = ["plain_path"]

_HIDDEN = "*"
_DOORS = frozenset(
    {
        "reset",
        "resets",
        "reset-password",
        "password-reset",
        "password_reset",
        "reset_password",
        "forgot-password",
    }
    | {
        "magic",
        "magic-link",
        "magic-links",
        "magiclink",
        "invite",
        "invites",
        "invitation",
        "invitations",
        "join",
    }
    | {
        "verify",
        "verify-email",
        "verification",
        "confirm",
        "confirmation",
        "activate",
        "activation",
        "unsubscribe",
    }
    | {
        "hook",
        "hooks",
        "webhook",
        "webhooks",
        "token",
        "tokens",
        "secret",
        "secrets",
        "session",
        "sessions",
        "share",
    }
    | {
        "shared",
        "signed",
        "otp",
        "code",
        "key",
        "keys",
        "auth",
        "callback",
        "recover",
        "recovery",
        "access",
        "services",
    }
)
"""Segments after which an opaque segment is one that opens something."""
_WORD = re.compile(
    r"[a-z]+(?:[-_][a-z]+)*|[a-z]+[A-Z][a-zA-Z]*[a-z]|v\d{1,3}(?:\.\d+)*|\d{1,12}|[A-Z][a-z]+(?:[A-Z][a-z]+)*"
)
"""A name of a route, a version, or a short number."""
_SHORTEST_SECRET = 6
_EMAIL = re.compile(r"[^/@]{1,100}(?:@|%40)[^/@]+\.[A-Za-z]{2,}", re.IGNORECASE)
_ACCOUNT = re.compile(r"[TUWBCDGEFSAR]0?[A-Z0-9]{7,14}")
"""Ids of Slack: a letter for the kind, then capital letters and digits."""
_OPAQUE = re.compile(
    r"(?=[^/]*\d)(?=[^/]*[A-Za-z])[A-Za-z0-9_~+=-]{20,}(?:\.[A-Za-z0-9_~+=.-]+)?|eyJ[A-Za-z0-9_.-]{6,}"
)
_LONGEST_PART = 9
"""Characters of the parts between dashes of readable names: `gpt-4o-mini-2024-07-18` is one."""


def plain_path(path: str) -> str:
    """
    Return a path with the segments replaced that identify a person or open a door.

    >>> plain_path("/users/jane%40example.com/orders/17"), plain_path("/reset/Ab3dEf9h/confirm")
    ('/users/*/orders/17', '/reset/*/confirm')
    """
    segments, door = path.split("/"), False
    found = []
    for segment in segments:
        word = _WORD.fullmatch(segment) is not None
        hidden = bool(segment) and (
            _EMAIL.search(segment) is not None
            or (_ACCOUNT.fullmatch(segment) is not None and any(char.isdigit() for char in segment))
            or _is_opaque(segment)
            or (door and len(segment) >= _SHORTEST_SECRET and not word)
            or (door and segment.isdecimal() and len(segment) >= _SHORTEST_SECRET)
        )
        found.append(_HIDDEN if hidden else segment)
        door = segment.lower() in _DOORS or (door and hidden)
    return "/".join(found)


def _is_opaque(segment: str) -> bool:
    if _OPAQUE.fullmatch(segment) is None:
        return False
    return any(len(part) > _LONGEST_PART and not part.isalpha() for part in re.split(r"[-_.]", segment))
