"""Received text: removing invisible characters, and truncation (A20)."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends.core.text import strip, truncate
from tests.each import each

# Any `str`, including lone surrogates.
ANY = st.text(st.characters(exclude_categories=()))

NAMED_BY_A20 = [*range(0x20), *range(0x200B, 0x2010), *range(0x202A, 0x202F)]
OURS = [
    *range(0x7F, 0xA0),
    0xAD,
    0x034F,
    0x061C,
    0x2028,
    0x2029,
    *range(0x2060, 0x2070),
    0x3164,
    *range(0xFE00, 0xFE10),
    0xFEFF,
    0xFFF9,
    0xD800,
    0xDFFF,
    *range(0xE0000, 0xE0080),
    0xE0100,
]


@each("point", NAMED_BY_A20)
def test_characters_named_by_the_document_are_removed(point):
    """A20: U+0000 to 001F, U+200B to 200F and U+202A to 202E are removed."""
    assert strip(f"a{chr(point)}b") == "ab"


@each("point", OURS)
def test_other_invisible_characters_are_removed(point):
    """Ours: other invisible characters are removed too."""
    assert strip(f"é{chr(point)}b") == "éb"


@pytest.mark.parametrize("text", ["", "plain", "naïve café", "予算", "a b", "👩", "x\u00a0y", "\ue000"])
def test_visible_text_stays(text):
    """Visible characters of any script are kept."""
    assert strip(text) == text


def test_only_invisible_characters_are_removed():
    """Every removed character is a control, format, separator, surrogate, filler, selector or unassigned one."""
    removed = [chr(point) for point in range(sys.maxunicode + 1) if not strip(f"\u00e9{chr(point)}")[1:]]
    categories = {unicodedata.category(char) for char in removed}
    assert categories <= {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp", "Mn", "Lo"}
    letters = {char for char in removed if unicodedata.category(char) == "Lo"}
    assert {unicodedata.name(char).partition(" ")[0] for char in letters} <= {"HANGUL", "HALFWIDTH"}
    # The only format characters left are visible ones of the Arabic, Syriac, Kaithi and Egyptian scripts.
    left = {point for point in range(sys.maxunicode + 1) if unicodedata.category(chr(point)) == "Cf"} - set(
        map(ord, removed)
    )
    assert all(
        0x600 <= point <= 0x8E2 or 0x110BD <= point <= 0x110CD or 0x13430 <= point <= 0x1343F
        for point in left
    )


@given(ANY)
def test_stripping_is_idempotent_and_only_removes(text):
    """A second call changes nothing, and the remaining characters keep their order."""
    once = strip(text)
    assert strip(once) == once
    rest = iter(text)
    assert all(char in rest for char in once)
    json.dumps(once).encode()
    once.encode()


@pytest.mark.parametrize(
    ("text", "limit", "kept"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "abc"),
        ("é", 1, ""),
        ("aé", 2, "a"),
        ("aé", 3, "aé"),
        ("a€b", 4, "a€"),
        ("a€b", 3, "a"),
        ("👩👩", 7, "👩"),
        ("abc", 0, ""),
        ("abc", -1, ""),
        ("é", -1, ""),
        ("a\ud800b€", 2, "ab"),
        ("\udfff", 5, ""),
    ],
)
def test_truncation_by_bytes(text, limit, kept):
    """A20: the limit is in bytes of UTF-8; no character is split and no lone surrogate is left."""
    assert truncate(text, limit) == kept


@given(ANY, st.integers(-3, 40))
def test_truncation_keeps_the_longest_prefix(text, limit):
    """The result is the longest prefix of the text without surrogates that fits the limit."""
    clean = "".join(char for char in text if not "\ud800" <= char <= "\udfff")
    cut = truncate(text, limit)
    assert clean.startswith(cut)
    assert len(cut.encode()) <= max(limit, 0)
    if len(cut) < len(clean):
        assert len(clean[: len(cut) + 1].encode()) > max(limit, 0)
