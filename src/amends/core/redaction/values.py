"""Leaks in the members of a JSON-like value."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from amends.core.redaction.rule import MARKER, words
from amends.core.redaction.text import redact
from amends.core.redaction.tokens import prose

__all__ = ["URL_MEMBERS", "redact_value"]

# What `redact_value` is usually told to keep: URLs that a dialect declares as such, and S1's `intent`.
URL_MEMBERS = frozenset(
    {"setup_url", "policy_url", "authorization_url", "post_url", "doc_uri", "type", "instance", "intent"}
)

# Bounds for values: deeper or larger than any error worth sending.
_DEPTH = 32
_NODES = 10_000

# Members whose value leaks whatever it looks like (compared without case, "-" and "_").
_SECRET_MEMBERS = words(
    "password passwd pwd passphrase secret clientsecret secretkey token accesstoken refreshtoken idtoken bearertoken "
    "authtoken sessiontoken apikey xapikey accesskey accesskeyid secretaccesskey privatekey credential credentials "
    "authorization proxyauthorization cookie cookies setcookie session sessionid sid jsessionid phpsessid csrftoken dsn "
    "connectionstring databaseurl traceback stacktrace stack sql querysql queryplan hostname host ipaddress"
)
_EXACT = (bool, int, float, type(None))
# Values that encoders write and that hold no text of anybody's.
_VALUES = frozenset({("datetime", "datetime"), ("datetime", "date"), ("datetime", "time"), ("datetime", "timedelta"),
                     ("decimal", "Decimal"), ("uuid", "UUID")})  # fmt: skip


def redact_value(value: Any, *, keep: AbstractSet[str] = frozenset()) -> Any:
    """
    A copy of a JSON-like value with every leak in its strings and keys redacted.

    Members named in `keep` (see `URL_MEMBERS`) are passed on untouched, at any depth. Members that by their name hold
    a secret lose their value whatever it looks like, unless it is a remark about it. Objects that are no JSON, and what
    lies deeper than 32 levels or beyond 10,000 values, become the marker. Never raises, never changes its argument.
    """
    return _copied(value, keep, 0, [_NODES])


def _copied(value: Any, keep: AbstractSet[str], depth: int, left: list[int]) -> Any:
    left[0] -= 1
    if isinstance(value, str):
        return redact(value) if left[0] >= 0 else MARKER
    if isinstance(value, _EXACT) or (type(value).__module__, type(value).__name__) in _VALUES:
        return value
    if left[0] < 0 or depth >= _DEPTH:
        return MARKER
    if isinstance(value, Mapping):
        return _copied_members(value, keep, depth, left)
    if isinstance(value, list | tuple):
        # One spare for the marker that says that there was more.
        return [_copied(item, keep, depth + 1, left) for item in value[: left[0] + 1]]
    return MARKER


def _copied_members(
    members: Mapping[Any, Any], keep: AbstractSet[str], depth: int, left: list[int]
) -> dict[Any, Any]:
    copy: dict[Any, Any] = {}
    for key, value in members.items():
        if left[0] < 0:
            break
        name = redact(key) if isinstance(key, str) else key if isinstance(key, _EXACT) else MARKER
        while name in copy and name is not key:
            # Two keys that leaked do not become one.
            name = f"{name} {len(copy)}"
        if isinstance(key, str) and key in keep:
            copy[name] = value
        elif isinstance(key, str) and _is_secret(key, value):
            copy[name] = MARKER
        else:
            copy[name] = _copied(value, keep, depth + 1, left)
    return copy


def _is_secret(key: str, value: Any) -> bool:
    if value is None or isinstance(value, bool | list | tuple | Mapping) or value == "":
        return False
    if key.lower().replace("-", "").replace("_", "") not in _SECRET_MEMBERS:
        return False
    return not (isinstance(value, str) and prose(value))
