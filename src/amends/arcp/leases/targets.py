"""
The canonical form of a path, a URL or a name; `Refused` if there is none.

- *Paths* are absolute, with `/`, and compared exactly. `//` and `/./` are normalised. `..` is rejected, because its meaning
  depends on links on the disk, which this module does not read. Also rejected are backslashes, percent-encoded dots,
  separators and percent signs, characters that look like slashes or that other programs fold into dots or slashes, and
  segments that end in a dot or a space, which some systems cut off. The code that opens a file must resolve links itself and
  check the resolved path.
- *URLs* have a scheme and a host. The host is lower-cased, the port is written only if it is not the scheme's default,
  unreserved characters are decoded, and query and fragment are ignored. Rejected are user info, `..`, encoded separators,
  hosts in other scripts (write `xn--`), hosts with a trailing dot, and addresses in an unusual notation. A wildcard in a host
  matches names only: a pattern covers an address only if it contains it.
- *Names* (tools, agents, models) are segments separated by `/`.

In all three a segment is also rejected if it is `..` for a program that decodes percent signs, ignores invisible characters or
cuts off path parameters (`..;`, `%2e%2e;`), and a percent-encoding that is not UTF-8 (overlong forms of dots and slashes).
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from unicodedata import category, normalize
from urllib.parse import unquote_to_bytes

__all__ = ["MAX_TARGET", "Refused", "host_of", "name_segments", "path_segments", "split_url", "url_path"]

MAX_TARGET = 8192

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
# Dots, separators, NUL and the percent sign itself, so that no text is decoded twice.
_ENCODED = re.compile(r"%(?:2e|2f|5c|00|25)", re.IGNORECASE)
# A run of encoded bytes, and the notation %uXXXX, which some servers decode too.
_RUN = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_UNICODE_ESCAPE = re.compile(r"%u[0-9A-Fa-f]{4}", re.IGNORECASE)
# Characters that look like slashes and backslashes without folding into them: fraction and division slash, big and box-drawing
# solidus, set minus, reverse solidus operators, and the slashes that combine with the character before them.
_LOOK_ALIKES = re.compile(
    "[\u0337\u0338\u2044\u20e5\u2215\u2216\u2571\u2572\u27cb\u27cd\u29f5\u29f6\u29f8\u29f9\u3033\u3035]"
)
# The same for the full stop; they are rejected only where a segment would be `..`, because texts contain some of them.
_DOTS = str.maketrans(
    dict.fromkeys(
        "\u00b7\u0701\u0702\u2024\u2027\u2219\u22c5\u2e33\u3002\u30fb\ua4f8\ua60e\ufe52\uff0e\uff61\uff65",
        ".",
    )
)
# Characters without a glyph that are letters or marks by their category; those of the categories below have none either.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Mn", "Me", "Zl", "Zp", "Zs"})
# What a program may cut off with everything behind it: path parameters, a stream's name, a query, a fragment.
_CUT = re.compile("[;:?#]")
_TRIPLET = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)", re.DOTALL)
_LABEL = r"(?!-)[a-z0-9_-]{1,63}(?<!-)"
_NAME = re.compile(rf"(?=.{{1,253}}\Z)(?:{_LABEL}\.)*{_LABEL}")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}


class Refused(ValueError):
    """The text is ambiguous or invalid. The message is a fixed reason and does not contain the text."""


def _check_text(text: object) -> str:
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
        if _LOOK_ALIKES.search(text):
            raise Refused("characters that look like separators")
    return text


def _check_encoding(text: str) -> None:
    """Reject encoded dots, separators and percent signs, and what else a program could decode into one."""
    if "%" not in text:
        return
    if _ENCODED.search(text) or _UNICODE_ESCAPE.search(text):
        raise Refused("percent-encoded separators")
    try:
        decoded = _RUN.sub(lambda run: unquote_to_bytes(run[0]).decode(), text)
    except UnicodeDecodeError:
        raise Refused("a percent-encoding that is not UTF-8") from None
    if decoded.isascii():
        return
    folded = normalize("NFKC", decoded)
    if _LOOK_ALIKES.search(decoded) or any(folded.count(sign) != decoded.count(sign) for sign in "./\\%*"):
        raise Refused("characters that look like separators")


def _check_segment(part: str) -> None:
    """Reject a segment that is `.` or `..` for a program that ignores or cuts off some of its characters."""
    if part.isascii() and "." not in part and "%" not in part:
        return
    decoded = _RUN.sub(lambda run: unquote_to_bytes(run[0]).decode(errors="replace"), part)
    visible = "".join(
        sign for sign in decoded if sign not in _INVISIBLE and category(sign) not in _INVISIBLE_CATEGORIES
    )
    if not visible:
        raise Refused("a segment of invisible characters")
    start = _CUT.split(visible, maxsplit=1)[0].translate(_DOTS)
    if start and start.strip(".") == "":
        raise Refused("a segment of dots")


def _segments(text: str) -> tuple[str, ...]:
    parts = tuple(part for part in text.split("/") if part not in {"", "."})
    for part in parts:
        if part[-1] in ". ":
            raise Refused(
                "a segment of dots" if part.strip(".") == "" else "a segment that ends in a dot or a space"
            )
        _check_segment(part)
    return parts


def path_segments(path: object) -> tuple[str, ...]:
    """
    The segments of an absolute path.

    >>> path_segments("/workspace//./a.txt")
    ('workspace', 'a.txt')
    """
    text = _check_text(path)
    if not text.startswith("/"):
        raise Refused("not absolute")
    _check_encoding(text)
    return _segments(text)


def name_segments(name: object) -> tuple[str, ...]:
    """The segments of a name: `mcp:github/issues`."""
    text = _check_text(name)
    _check_encoding(text)
    if text != text.strip():
        raise Refused("spaces around a name")
    parts = tuple(text.split("/"))
    if any(part in {"", ".", ".."} for part in parts):
        raise Refused("an empty segment, or one of only dots")
    for part in parts:
        _check_segment(part)
    return parts


def split_url(url: object) -> tuple[str, str, str, str]:
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
        _check_encoding(part)
        if part != ".":
            _check_segment(part)
    # The first part is the empty text before the leading slash.
    return tuple(part for part in parts[1:] if part != ".")


def _decode(part: str) -> str:
    if "%" not in part:
        return part
    return re.sub(r"%[0-9A-Fa-f]{2}", _decode_triplet, part)


def _decode_triplet(triplet: re.Match[str]) -> str:
    byte = unquote_to_bytes(triplet[0])
    return byte.decode() if byte[0] in _UNRESERVED else triplet[0].upper()
