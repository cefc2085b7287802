r"""
Decode and clean up text from outside.

`decoded` takes the bytes of a program's output or a file, `uncoloured` removes the escape sequences of terminals. `strip` removes invisible characters, `truncate` limits the UTF-8 bytes. None raises on any `str`, not even on one
with lone surrogates (JSON parsers produce those from `"\ud800"`).
"""

from __future__ import annotations

import re
from functools import cache

__all__ = ["decoded", "one_line", "strip", "truncate", "uncoloured"]

# A20 lists U+0000 to 001F, U+200B to 200F and U+202A to 202E. The others are as dangerous: they are invisible but read by
# a model (hidden instructions), reorder the visible text, break a line inside a fence, or make an encoder raise. The set
# is Unicode's Default_Ignorable_Code_Point plus the controls, the line and paragraph separators, the annotation marks
# and the surrogates. It includes the variation selectors, because 256 of them can encode any hidden byte; a coloured
# heart becomes a plain one. Private-use and unassigned code points are visible as boxes and stay.
_INVISIBLE = (
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL, C1
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # soft hyphen, joiner, Arabic mark, fillers, Mongolian
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # zero width, separators, bidirectional, invisible operators
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"  # filler, variation selectors, byte-order mark, annotations
    "\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # shorthand and musical format controls
    "\U000e0000-\U000e0fff]+"  # tags and variation selectors supplement
)


_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
"""Byte-order marks. That of UTF-16 begins that of UTF-32."""
_SAMPLE = 512
"""Bytes in which zeros are counted. Text in UTF-8 has none; of ASCII in UTF-16, every second byte is zero."""


def decoded(data: bytes | bytearray | str) -> str:
    r"""
    Return the text of a program's output: UTF-8, or UTF-16 or UTF-32 as programs on Windows write it.

    A text that was decoded with another encoding, so that it has a zero after each letter, is repaired.

    >>> decoded('{"ok": false}'.encode("utf-16-le")), decoded(b"caf\xc3\xa9"), decoded("o\0k\0")
    ('{"ok": false}', 'café', 'ok')
    """
    if isinstance(data, str):
        zeros = data[:_SAMPLE].count("\0") * 3 > len(data[:_SAMPLE])
        return data.replace("\0", "").lstrip("\ufeff\ufffdÿþ") if zeros else data
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    sample = data[:_SAMPLE]
    if sample.count(0) * 3 > len(sample):
        return data.decode(
            "utf-16-le" if sample[1::2].count(0) > sample[::2].count(0) else "utf-16-be", "replace"
        )
    return data.decode("utf-8", "replace")


@cache
def _escapes() -> re.Pattern[str]:
    """Return the pattern of the escape sequences of terminals: control sequences, commands, and the rest."""
    return re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])")


def uncoloured(text: str) -> str:
    r"""
    Return the text without the escape sequences of terminals.

    >>> uncoloured("\x1b[1;31mfailed\x1b[0m")
    'failed'
    """
    return _escapes().sub("", text) if "\x1b" in text else text


@cache
def _invisible() -> re.Pattern[str]:
    return re.compile(_INVISIBLE)


def strip(text: str) -> str:
    r"""
    Return the text without control, zero-width, bidirectional and other invisible characters (A20).

    They are removed, not replaced, so text on both sides of a line break is joined. Ordinary spaces stay.

    >>> strip("pay\u202e now\n")
    'pay now'
    """
    return _invisible().sub("", text)


def truncate(text: str, limit: int) -> str:
    """
    Return the longest prefix of the text that fits into `limit` bytes of UTF-8, without a mark (A20).

    A character is never split. Lone surrogates cannot be encoded in UTF-8 and are dropped. A letter and its combining
    accent may be separated.

    >>> truncate("naïve", 3)
    'na'
    """
    return text.encode("utf-8", "ignore")[: max(limit, 0)].decode("utf-8", "ignore")


_LINE = 200


def one_line(text: str, limit: int = _LINE) -> str:
    r"""
    Return a received text as a part of a log line, a note or a terminal's line: without invisible characters, and cut.

    >>> one_line("RATE_LIMITED\nERROR paid\x1b[2K")
    'RATE_LIMITEDERROR paid[2K'
    """
    if len(text) <= limit and text.isascii() and text.isprintable():
        return text
    # The pattern is not run over a text that is cut anyway.
    cleaned = strip(text[: 4 * limit])
    short = truncate(cleaned, limit)
    return short if len(text) <= 4 * limit and short == cleaned else f"{short}…"
