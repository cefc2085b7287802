"""Redaction of the members of a JSON-like value."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any

from amends.core.json_value import MARKER, json_value
from amends.core.redaction.rule import KINDS, SECRETS, compiled, words
from amends.core.redaction.text import redact
from amends.core.redaction.tokens import looks_secret, prose, remark

__all__ = ["UNCHANGED_MEMBERS", "URL_MEMBERS", "redact_value"]

URL_MEMBERS = frozenset(
    {"setup_url", "policy_url", "authorization_url", "post_url", "doc_uri", "type", "instance"}
)
"""Members that a format declares to hold a URL: only credentials are removed from them."""
UNCHANGED_MEMBERS = frozenset({"intent"})
"""Members that leave unchanged (design section 6)."""

# Members whose value is a secret whatever it looks like (compared without case, "-" and "_").
_SECRET_MEMBERS = words(
    "password passwd pwd passphrase secret clientsecret secretkey token accesstoken refreshtoken idtoken bearertoken "
    "authtoken sessiontoken apikey xapikey accesskey accesskeyid secretaccesskey privatekey credential credentials "
    "authorization proxyauthorization cookie cookies setcookie session sessionid sid jsessionid phpsessid csrftoken dsn "
    "connectionstring databaseurl cvv cvc otp cardnumber"
)


@lru_cache(2048)
def _secret_name(key: str) -> str:
    """
    Say what the name of a member tells about its value: "any" is a secret, "most" is one unless it is a remark such as "required", "" is none.

    >>> _secret_name("API-Key"), _secret_name("dbPassword"), _secret_name("next_page_token")
    ('any', 'most', '')
    """
    name = re.sub(r"[^a-z0-9]", "", key.lower())
    if name in _SECRET_MEMBERS:
        return "any"
    if compiled(_NAMES, 0).search(name):
        return "most"
    # The token of a page is no secret, and neither is one of a text.
    return "most" if compiled(_MORE_NAMES, 0).search(name) else ""


_NAMES = (
    r"(?:password|passwd|passphrase|pwd|(?<!by)pass|(?<!no)secret|apikey|secretkey|secretkeybase|accesskey|accountkey|privatekey|encryptionkey|signingkey|masterkey"
    r"|sharedkey|subscriptionkey|authkey|connectionstring|dsn|csrf|authorization|sessionid|credentials?)(?:hash|new|old|plain|text|value|pem|base64)?\d{0,3}$"
)
_MORE_NAMES = (
    r"(?<!page)(?<!next)(?<!prev)(?<!previous)(?<!continuation)(?<!sync)(?<!resume)(?<!cursor)(?<!cancel)(?<!cancellation)(?<!progress)(?<!start)(?<!end)(?<!stop)"
    r"(?<!eos)(?<!bos)(?<!pad)(?<!first)(?<!last)(?<!unexpected)(?<!invalid)(?<!expected)(?<!missing)(?<!per)(?<!design)(?<!idempotency)(?<!request)token$"
)
# Members that describe the inside of a system.
_INTERNAL_MEMBERS = words("traceback stacktrace stack sql querysql queryplan hostname host ipaddress")


def redact_value(
    value: object, *, kinds: AbstractSet[str] = KINDS, given: AbstractSet[str] = frozenset()
) -> Any:
    """
    Return a copy of a value as plain JSON, with every leak of `kinds` in its strings and keys redacted.

    Members named in `URL_MEMBERS` lose only credentials, at any depth; those in `UNCHANGED_MEMBERS` lose nothing.
    Members whose name says that they hold a secret lose their value whatever it looks like, unless it is a remark such
    as "must have at least 8 characters". `given` is that of `find`. `amends.core.json_value` has the bounds. Never raises, never changes its argument.
    """
    return _redacted(json_value(value), kinds, given)


def _redacted(value: object, kinds: AbstractSet[str], given: AbstractSet[str]) -> object:
    if isinstance(value, str):
        return redact(value, kinds=kinds, given=given)
    if isinstance(value, list):
        return [_redacted(item, kinds, given) for item in value]
    if isinstance(value, dict):
        return _redacted_members(value, kinds, given)
    return value


def _redacted_members(
    members: dict[str, object], kinds: AbstractSet[str], given: AbstractSet[str]
) -> dict[str, object]:
    copy: dict[str, object] = {}
    for key, value in members.items():
        name = redact(key, kinds=kinds)
        while name in copy:
            # Two keys that were redacted stay two.
            name = f"{name} {len(copy)}"
        if key in UNCHANGED_MEMBERS:
            copy[name] = value
        elif key in URL_MEMBERS:
            copy[name] = _redacted(value, kinds & SECRETS, given)
        elif _is_secret(key, value, kinds):
            copy[name] = MARKER
        elif isinstance(value, list) and _secret_name(key):
            # Several values, or several remarks about one.
            copy[name] = [
                MARKER
                if isinstance(item, str) and not remark(item) and looks_secret(item)
                else _redacted(item, kinds, given)
                for item in value
            ]
        else:
            copy[name] = _redacted(value, kinds, given)
    return copy


def _is_secret(key: str, value: object, kinds: AbstractSet[str]) -> bool:
    if value is None or isinstance(value, bool | list | dict) or value == "":
        return False
    how = _secret_name(key)
    if not how and not (
        kinds == KINDS and key.lower().replace("-", "").replace("_", "") in _INTERNAL_MEMBERS
    ):
        return False
    if how == "most":
        return isinstance(value, str) and not remark(value)
    return not (isinstance(value, str) and prose(value))
