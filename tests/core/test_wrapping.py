"""Lines that fit a width."""

from amends.core.wrapping import UNLIMITED, wrapped
from tests.each import each

TEXT = "one two three four five six"


@each(
    ("width", "indent", "lines"),
    [
        (UNLIMITED, 0, [TEXT]),
        (17, 4, ["one two three", "    four five six"]),
        (16, 4, ["one two", "    three four", "    five six"]),
        (13, 0, ["one two three", "four five six"]),
        # At least ten characters of text per line, however large the indent.
        (4, 8, ["one two", "        three four", "        five six"]),
    ],
)
def test_lines_have_at_most_the_width(width, indent, lines):
    """Lines break between words; those after the first are indented."""
    assert wrapped(TEXT, width, indent).split("\n") == lines


def test_words_are_kept_whole():
    """A word that is longer than the line, or has hyphens, is not broken: it may be copied."""
    assert wrapped("use --dry-run=everything-at-once now", 10, 0).split("\n") == [
        "use",
        "--dry-run=everything-at-once",
        "now",
    ]


def test_empty_text():
    """No text gives no line."""
    assert wrapped("", 40, 4) == ""
