"""
Names and keys as NATS subjects.

A subject is tokens between dots, without spaces, wildcards or empty tokens, of at most a few thousand bytes; a name or key is any
text. So characters outside a small set are written `=XX` per UTF-8 byte, an empty token is a lone `=`, and a key is cut
at its slashes (the first seven), so that listing by a prefix asks the server only for what lies below the last of them.
What would grow too long is replaced by its hash; the text itself then travels in a header, as it always does.
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
        return text  # ids mostly are
    return "".join(chr(b) if b in _PLAIN else f"={b:02X}" for b in text.encode()) or "="


@lru_cache(maxsize=4096)
def token(text: str) -> str:
    """One token for any text, different for different texts; short enough for the name of a stream."""
    escaped = _escaped(text)
    if len(escaped) <= _LONGEST_TOKEN:
        return escaped
    # No text is escaped to a "==": the two kinds cannot meet.
    return f"=={hashlib.sha256(text.encode()).hexdigest()}"


def from_token(escaped: str) -> str | None:
    """The text of a token, or None when only its hash is left."""
    if escaped.startswith("=="):
        return None
    return "" if escaped == "=" else unquote(escaped.replace("=", "%"))


def key_subject(key: str) -> str:
    """The tokens of a key below its table's: `k.…` by its slashes, or `h.…` by its hash when it is long."""
    tokens = ".".join(_escaped(part) for part in key.split("/", _TOKENS - 1))
    if len(tokens) <= _LONGEST_KEY:
        return f"k.{tokens}"
    return f"h.{hashlib.sha256(key.encode()).hexdigest()}"


def key_filters(prefix: str) -> list[str]:
    """Subjects that hold every key beginning with `prefix`, and few others."""
    whole = prefix.split("/", _TOKENS - 1)[:-1]
    tokens = ".".join(_escaped(part) for part in whole)
    if len(tokens) > _LONGEST_KEY:
        return ["h.>"]
    return [f"k.{tokens}.>" if tokens else "k.>", "h.>"]


def as_header(text: str) -> str:
    """Any text as a header value: nothing in it ends the line or is trimmed."""
    if _all_plain_but_slashes(text):
        return text.replace("/", "%2F")  # keys mostly are, and this is a tenth of the price
    return quote(text, safe="")


def from_header(value: str) -> str:
    """The text again."""
    return unquote(value)
