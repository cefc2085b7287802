"""
The canonical form of a path, a URL or a name; `Refused` if there is none.

- *Paths* are absolute, with `/`, and compared exactly. `//` and `/./` are normalised. `..` is rejected, because its meaning
  depends on links on the disk, which this module does not read. Also rejected are backslashes, percent-encoded dots,
  separators and percent signs, characters that other programs fold into dots or slashes, and segments that end in a dot or a
  space, which some systems cut off. The code that opens a file must resolve links itself and check the resolved path.
- *URLs* have a scheme and a host. The host is lower-cased, the port is written only if it is not the scheme's default,
  unreserved characters are decoded, and query and fragment are ignored. Rejected are user info, `..`, encoded separators,
  hosts in other scripts (write `xn--`), hosts with a trailing dot, and addresses in an unusual notation. A wildcard in a host
  matches names only: a pattern covers an address only if it contains it.
- *Names* (tools, agents, models) are segments separated by `/`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Any
from unicodedata import normalize
from urllib.parse import unquote_to_bytes

__all__ = ["MAX_TARGET", "Refused", "host_of", "name_segments", "path_segments", "split_url", "url_path"]

MAX_TARGET = 8192

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
# Dots, separators, NUL and the percent sign itself, so that no text is decoded twice.
_ENCODED = re.compile(r"%(?:2e|2f|5c|00|25)", re.IGNORECASE)
_TRIPLET = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)", re.DOTALL)
_LABEL = r"(?!-)[a-z0-9_-]{1,63}(?<!-)"
_NAME = re.compile(rf"(?=.{{1,253}}\Z)(?:{_LABEL}\.)*{_LABEL}")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}


class Refused(ValueError):
    """The text is ambiguous or invalid. The message is a fixed reason and does not contain the text."""


def _check_text(text: Any) -> str:
    if not isinstance(text, str) or not text:
        raise Refused("not a string")
    if len(text) > MAX_TARGET:
        raise Refused("too long")
    if _CONTROLS.search(text):
        raise Refused("control characters")
    if "\\" in text:
        raise Refused("backslash")
    if not text.isascii():
        folded = normalize("NFKC", text)
        # Full-width dots and slashes, which some programs treat as the plain ones.
        if any(folded.count(sign) != text.count(sign) for sign in "./\\%*"):
            raise Refused("characters that fold into separators")
    return text


def _segments(text: str) -> tuple[str, ...]:
    parts = tuple(part for part in text.split("/") if part not in {"", "."})
    for part in parts:
        if part[-1] in ". ":
            raise Refused(
                "a segment of dots" if part.strip(".") == "" else "a segment that ends in a dot or a space"
            )
    return parts


def path_segments(path: Any) -> tuple[str, ...]:
    """
    The segments of an absolute path.

    >>> path_segments("/workspace//./a.txt")
    ('workspace', 'a.txt')
    """
    text = _check_text(path)
    if not text.startswith("/"):
        raise Refused("not absolute")
    if _ENCODED.search(text):
        raise Refused("percent-encoded separators")
    return _segments(text)


def name_segments(name: Any) -> tuple[str, ...]:
    """The segments of a name: `mcp:github/issues`."""
    text = _check_text(name)
    if _ENCODED.search(text):
        raise Refused("percent-encoded separators")
    if text != text.strip():
        raise Refused("spaces around a name")
    parts = tuple(text.split("/"))
    if any(part in {"", ".", ".."} for part in parts):
        raise Refused("an empty segment, or one of only dots")
    return parts


def split_url(url: Any) -> tuple[str, str, str, str]:
    """Scheme, host, port and path of a URL. The port is empty if it is the scheme's default."""
    text = _check_text(url)
    found = _URL.match(text)
    if found is None:
        raise Refused("no scheme and host")
    scheme, authority, path = found[1].lower(), found[2], found[3]
    if " " in text:
        raise Refused("a space")
    if "@" in authority:
        raise Refused("user info")
    if not authority.isascii():
        raise Refused("a host in another script: write it as xn--")
    bracket = authority.rfind("]")
    at = authority.find(":", bracket + 1)
    host, port = (authority, "") if at < 0 else (authority[:at], authority[at + 1 :])
    if at >= 0 and port != "*" and not (port.isdigit() and port[0] != "0" and int(port[:6]) <= 65535):
        raise Refused("an invalid port")
    return scheme, host.lower(), "" if port == _PORTS.get(scheme) else port, path


def host_of(host: str) -> tuple[bool, str]:
    """Whether a host is an address, and its canonical form."""
    if host.startswith("["):
        return True, f"[{_address(host[1:-1]) if host.endswith(']') else _address('')}]"
    if not _NAME.fullmatch(host):
        raise Refused("not a plain host name")
    # Browsers treat a name that ends in a number as an address, in any notation: 2130706433, 0x7f.1, 127.1.
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        return True, _address(host)
    return False, host


@lru_cache(maxsize=256)
def _address(text: str) -> str:
    try:
        address = ip_address(text)
    except ValueError:
        raise Refused("an address in an unusual notation") from None
    if isinstance(address, IPv6Address) and (address.scope_id or address.ipv4_mapped):
        raise Refused("an address in an unusual notation")
    return str(address)


def url_path(path: str) -> tuple[str, ...]:
    """The segments of a URL's path, with unreserved characters decoded. Empty segments count: `//` is another path."""
    if not path.isascii():
        raise Refused("a character that a URL cannot contain")
    if _TRIPLET.search(path):
        raise Refused("a broken percent-encoding")
    parts = tuple(_decode(part) for part in path.split("/"))
    for part in parts:
        if part != "." and part and part.strip(".") == "":
            raise Refused("a segment of dots")
        if _ENCODED.search(part):
            raise Refused("percent-encoded separators")
    # The first part is the empty text before the leading slash.
    return tuple(part for part in parts[1:] if part != ".")


def _decode(part: str) -> str:
    if "%" not in part:
        return part
    return re.sub(r"%[0-9A-Fa-f]{2}", _decode_triplet, part)


def _decode_triplet(triplet: re.Match[str]) -> str:
    byte = unquote_to_bytes(triplet[0])
    return byte.decode() if byte[0] in _UNRESERVED else triplet[0].upper()
