"""
Which URL of a received error may be followed (A21).

One strict grammar instead of a parser: where browsers, HTTP clients and RFC 3986 read a string differently, it is
refused, so nobody downstream can be led elsewhere than to the host that was checked. Accepted is exactly

    https://HOST[:443][/path][?query][#fragment]

in ASCII, where HOST is the seller's known domain or a subdomain of it. Decisions:

- *Known host*: given by the caller in ASCII lower or upper case, without scheme or port. A subdomain counts, because
  set-up pages live beside APIs; of a single label ("localhost", "com") only itself counts. None known: refused.
- *International names* are compared in their `xn--` form only. A host written in other scripts is refused even when it
  would map to the known one: mappings differ between IDNA 2003, 2008 and browsers, and look-alikes live there.
- *Addresses* are refused in every notation ("127.0.0.1", "[::1]", "2130706433", "0x7f.1"): S4 speaks of a domain.
- *Ports*: only the default one, written or not. Another port is another service.
- *Userinfo*: "@" anywhere before the first slash, whatever "?" or "#" stands in between; some clients read
  `https://seller.example#@evil.example/` differently from browsers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any

import msgspec

__all__ = ["Refusal", "UrlVerdict", "check_url", "judge_url", "safe_urls"]

LIMIT = 2048

# `setup_url` and `authorization_url` are to be followed: the rule is a MUST. `policy_url` is only read, the rule is
# advice, and we take it. (A21)
_FOLLOWED = ("setup_url", "authorization_url", "policy_url")


class Refusal(StrEnum):
    """Why a URL may not be followed."""

    NOT_TEXT = "not_text"
    TOO_LONG = "too_long"
    CHARACTER = "character"
    """White space, a control, a backslash, or another character that no URI holds."""
    SCHEME = "scheme"
    """Not `https://`."""
    USERINFO = "userinfo"
    PORT = "port"
    HOST = "host"
    """No plain domain name: empty, percent-encoded, an address, a trailing dot."""
    UNKNOWN_HOST = "unknown_host"
    """The caller knows no usable host of the seller."""
    FOREIGN_HOST = "foreign_host"
    """Neither the known host nor below it."""


class UrlVerdict(msgspec.Struct, frozen=True):
    """A URL that may be followed, normalised, or the reason why not; exactly one of them."""

    url: str | None = None
    refusal: Refusal | None = None


@cache
def _grammar() -> tuple[re.Pattern[str], re.Pattern[str]]:
    # RFC 3986's characters; brackets are left out with the IPv6 literals they are for.
    characters = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?#-]|%[0-9A-Fa-f]{2})*+")
    label = r"(?!-)[a-z0-9-]{1,63}(?<!-)"
    # The last label of a name is never a number: such hosts are addresses to a browser (WHATWG URL, "ends in a number").
    host = re.compile(rf"(?=.{{1,253}}\Z)(?:{label}\.)*(?!(?:[0-9]+|0x[0-9a-f]*)\Z){label}")
    return characters, host


def judge_url(url: object, known_host: str | None) -> UrlVerdict:
    """Like `check_url`, but tells why not."""
    characters, domain = _grammar()
    if not isinstance(url, str):
        return UrlVerdict(refusal=Refusal.NOT_TEXT)
    if len(url) > LIMIT:
        return UrlVerdict(refusal=Refusal.TOO_LONG)
    # The scheme first, so that `javascript:` and `http://` are called by their name.
    if url[:8].lower() != "https://":
        return UrlVerdict(refusal=Refusal.SCHEME)
    rest = url[8:]
    if "@" in rest.partition("/")[0]:
        return UrlVerdict(refusal=Refusal.USERINFO)
    if not characters.fullmatch(rest) or rest.count("#") > 1:
        return UrlVerdict(refusal=Refusal.CHARACTER)
    end = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
    host, colon, port = rest[:end].lower().partition(":")
    if colon and port != "443":
        return UrlVerdict(refusal=Refusal.PORT)
    if not domain.fullmatch(host):
        return UrlVerdict(refusal=Refusal.HOST)
    known = known_host.lower() if isinstance(known_host, str) and known_host.isascii() else ""
    if not domain.fullmatch(known):
        return UrlVerdict(refusal=Refusal.UNKNOWN_HOST)
    if host != known and not ("." in known and host.endswith("." + known)):
        return UrlVerdict(refusal=Refusal.FOREIGN_HOST)
    tail = rest[end:]
    return UrlVerdict(url=f"https://{host}{tail if tail.startswith('/') else '/' + tail}")


def check_url(url: object, known_host: str | None) -> str | None:
    """
    The URL, normalised, when it may be followed; None when not (A21).

    Args:
        url: What the error said; anything that is no text is refused.
        known_host: The seller's domain as the caller knows it from elsewhere, never from the error itself.

    >>> check_url("https://app.seller.example/setup/acct_123", "seller.example")
    'https://app.seller.example/setup/acct_123'
    >>> check_url("https://seller.example@evil.example/", "seller.example") is None
    True

    """
    return judge_url(url, known_host).url


def safe_urls(details: object, known_host: str | None) -> dict[str, str]:
    """The declared URL members of an error's `details` that may be followed; the others are left out."""
    if not isinstance(details, Mapping):
        return {}
    members: Mapping[Any, Any] = details
    checked = {name: check_url(members.get(name), known_host) for name in _FOLLOWED}
    return {name: url for name, url in checked.items() if url is not None}
