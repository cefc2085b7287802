"""
Check which URLs of a received error may be followed (A21).

The check is one strict grammar instead of a parser. Strings that browsers, HTTP clients and RFC 3986 read differently
are refused, so that a client always contacts the host that was checked. The only accepted form is

    https://HOST[:443][/path][?query][#fragment]

in ASCII, where HOST is the seller's known domain or a subdomain of it. Decisions:

- *Known host*: given by the caller in ASCII, without scheme or port. Its subdomains are accepted, because set-up pages
  are often on a subdomain; for a single label ("localhost", "com") they are not. Without a known host, all are refused.
- *International names* are compared in their `xn--` form only. A host in another script is refused even if it maps to
  the known one, because IDNA 2003, 2008 and browsers map differently, and look-alikes are possible.
- *Addresses* are refused in every notation ("127.0.0.1", "[::1]", "2130706433", "0x7f.1"): AdCP requires a domain.
- *Ports*: only the default one, written or not. Another port is another service.
- *Userinfo*: "@" anywhere before the first slash is refused, also after "?" or "#"; some clients read
  `https://seller.example#@evil.example/` differently from browsers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache

import msgspec

__all__ = ["Refusal", "UrlVerdict", "check_url", "judge_url", "safe_urls"]

LIMIT = 2048

# `setup_url` and `authorization_url` are meant to be followed, and A21 requires the check. For `policy_url`, which is only
# read, it recommends it.
_FOLLOWED = ("setup_url", "authorization_url", "policy_url")


class Refusal(StrEnum):
    """Why a URL may not be followed."""

    NOT_TEXT = "not_text"
    TOO_LONG = "too_long"
    CHARACTER = "character"
    """White space, a control, a backslash, or another character that is not allowed in a URI."""
    SCHEME = "scheme"
    """Not `https://`."""
    USERINFO = "userinfo"
    PORT = "port"
    HOST = "host"
    """Not a plain domain name: empty, percent-encoded, an address, or with a trailing dot."""
    UNKNOWN_HOST = "unknown_host"
    """The caller gave no usable host of the seller."""
    FOREIGN_HOST = "foreign_host"
    """Neither the known host nor one of its subdomains."""


class UrlVerdict(msgspec.Struct, frozen=True):
    """Either a normalised URL that may be followed, or the reason why it may not."""

    url: str | None = None
    refusal: Refusal | None = None


@cache
def _grammar() -> tuple[re.Pattern[str], re.Pattern[str]]:
    # The characters of RFC 3986 without brackets, which only IPv6 literals need.
    characters = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?#-]|%[0-9A-Fa-f]{2})*+")
    label = r"(?!-)[a-z0-9-]{1,63}(?<!-)"
    # The last label must not be a number: browsers take such hosts for addresses (WHATWG URL, "ends in a number").
    host = re.compile(rf"(?=.{{1,253}}\Z)(?:{label}\.)*(?!(?:[0-9]+|0x[0-9a-f]*)\Z){label}")
    return characters, host


def judge_url(url: object, known_host: str | None) -> UrlVerdict:
    """Do the same as `check_url`, and give the reason for a refusal."""
    characters, domain = _grammar()
    if not isinstance(url, str):
        return UrlVerdict(refusal=Refusal.NOT_TEXT)
    if len(url) > LIMIT:
        return UrlVerdict(refusal=Refusal.TOO_LONG)
    # The scheme is checked first, so that `javascript:` and `http://` get their own reason.
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
    Return the normalised URL if it may be followed, else None (A21).

    Args:
        url: the value in the error. Anything but a string is refused.
        known_host: the seller's domain, from another source than the error itself.

    >>> check_url("https://app.seller.example/setup/acct_123", "seller.example")
    'https://app.seller.example/setup/acct_123'
    >>> check_url("https://seller.example@evil.example/", "seller.example") is None
    True

    """
    return judge_url(url, known_host).url


def safe_urls(details: object, known_host: str | None) -> dict[str, str]:
    """Return the URL members of an error's `details` that may be followed."""
    if not isinstance(details, Mapping):
        return {}
    members: Mapping[object, object] = details
    checked = {name: check_url(members.get(name), known_host) for name in _FOLLOWED}
    return {name: url for name, url in checked.items() if url is not None}
