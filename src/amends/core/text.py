r"""
Pure handling of text that somebody else wrote.

`strip` removes what a reader cannot see, `truncate` bounds by UTF-8 bytes. Neither raises on any `str`, also not on
one that holds lone surrogates (JSON readers produce those from `"\ud800"`).
"""

from __future__ import annotations

import re
from functools import cache

__all__ = ["strip", "truncate"]

# A20 names U+0000 to 001F, U+200B to 200F and U+202A to 202E. The rest are the same danger under other numbers: characters
# that show nothing but are read by a model (hidden instructions), reorder what is shown, break a line inside a
# fence, or make an encoder raise. It is Unicode's Default_Ignorable_Code_Point, with the controls, the line and
# paragraph separators, the annotation marks and the surrogates. Variation selectors are in it: 256 of them spell
# any hidden byte; the price is a plain heart for a coloured one. Private use and unassigned points show as boxes
# and stay.
_INVISIBLE = (
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL, C1
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # soft hyphen, joiner, Arabic mark, fillers, Mongolian
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # zero width, separators, bidirectional, invisible operators
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"  # filler, variation selectors, byte-order mark, annotations
    "\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # shorthand and musical format controls
    "\U000e0000-\U000e0fff]+"  # tags and variation selectors supplement
)


@cache
def _invisible() -> re.Pattern[str]:
    return re.compile(_INVISIBLE)


def strip(text: str) -> str:
    r"""
    The text without control, zero-width, bidirectional and other invisible characters (A20).

    They are removed, not replaced: a line break between two words joins them. Ordinary spaces stay.

    >>> strip("pay\u202e now\n")
    'pay now'
    """
    # Nearly every message is printable ASCII, and both tests run at memory speed.
    if text.isascii() and text.isprintable():
        return text
    return _invisible().sub("", text)


def truncate(text: str, limit: int) -> str:
    """
    The longest beginning of the text that fits into `limit` bytes of UTF-8, silently (A20).

    A character is never split. Lone surrogates have no bytes in UTF-8 and are dropped. Characters that combine with
    one another may be parted: a reader sees a base letter without its accent, never a broken one.

    >>> truncate("naïve", 3)
    'na'
    """
    if text.isascii():
        return text[: max(limit, 0)]
    return text.encode("utf-8", "ignore")[: max(limit, 0)].decode("utf-8", "ignore")
