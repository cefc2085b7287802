"""
Names and keys as NATS subjects.

A subject consists of tokens separated by dots, without spaces, wildcards or empty tokens, and of at most a few thousand bytes;
a name or key is any text. Characters outside a small set are therefore written as `=XX` per UTF-8 byte, and an empty token
as a single `=`. A key is split at its first seven slashes, so that a scan by prefix requests only what is under the last
of them. A text that is too long is replaced by its hash; the text itself is always in a header.
"""

from __future__ import annotations

import hashlib
import re
import string
from functools import lru_cache
from urllib.parse import quote, unquote

__all__ = ["as_header", "from_header", "from_token", "key_filters", "key_subject", "token"]

_PLAIN = frozenset((string.ascii_letters + string.digits + "_-").encode())
_all_plain = re.compile(r"[A-Za-z0-9_-]+").fullmatch
_all_plain_but_slashes = re.compile(r"[A-Za-z0-9_.~/-]*").fullmatch
_TOKENS = 8
_LONGEST_TOKEN = 128
_LONGEST_KEY = 512


def _escaped(text: str) -> str:
    if _all_plain(text):
        return text  # most ids
    return "".join(chr(b) if b in _PLAIN else f"={b:02X}" for b in text.encode()) or "="


@lru_cache(maxsize=4096)
def token(text: str) -> str:
    """One token for any text, unique per text, and short enough for the name of a stream."""
    escaped = _escaped(text)
    if len(escaped) <= _LONGEST_TOKEN:
        return escaped
    # No text is escaped to "==", so a hash never equals an escaped text.
    return f"=={hashlib.sha256(text.encode()).hexdigest()}"


def from_token(escaped: str) -> str | None:
    """The text of a token, or None if the token is a hash."""
    if escaped.startswith("=="):
        return None
    return "" if escaped == "=" else unquote(escaped.replace("=", "%"))


def key_subject(key: str) -> str:
    """The tokens of a key in its table's subject: `k.…` by its slashes, or `h.…` with its hash if it is long."""
    tokens = ".".join(_escaped(part) for part in key.split("/", _TOKENS - 1))
    if len(tokens) <= _LONGEST_KEY:
        return f"k.{tokens}"
    return f"h.{hashlib.sha256(key.encode()).hexdigest()}"


def key_filters(prefix: str) -> list[str]:
    """Subject filters that match every key beginning with `prefix`, and few others."""
    whole = prefix.split("/", _TOKENS - 1)[:-1]
    tokens = ".".join(_escaped(part) for part in whole)
    if len(tokens) > _LONGEST_KEY:
        return ["h.>"]
    return [f"k.{tokens}.>" if tokens else "k.>", "h.>"]


def as_header(text: str) -> str:
    """Encode any text as a header value without line ends or surrounding spaces."""
    if _all_plain_but_slashes(text):
        return text.replace("/", "%2F")  # most keys; costs a tenth of quote()
    return quote(text, safe="")


def from_header(value: str) -> str:
    """Decode a text encoded by `as_header`."""
    return unquote(value)
