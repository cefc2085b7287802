"""Redaction of the members of a JSON-like value."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from amends.core.json_value import MARKER, json_value
from amends.core.redaction.rule import KINDS, SECRETS, words
from amends.core.redaction.text import redact
from amends.core.redaction.tokens import prose

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
    "connectionstring databaseurl"
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
        else:
            copy[name] = _redacted(value, kinds, given)
    return copy


def _is_secret(key: str, value: object, kinds: AbstractSet[str]) -> bool:
    if value is None or isinstance(value, bool | list | dict) or value == "":
        return False
    name = key.lower().replace("-", "").replace("_", "")
    if name not in _SECRET_MEMBERS and not (name in _INTERNAL_MEMBERS and kinds == KINDS):
        return False
    return not (isinstance(value, str) and prose(value))
