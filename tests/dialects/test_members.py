"""Members of objects from outside, read by type."""

import pytest

from amends.dialects import members


class Text(str):
    """Not a plain string."""

    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "low", "expected"),
    [
        (0, 0, 0),
        (5, 0, 5),
        (5.0, 0, 5),
        (5.5, 0, None),
        (-1, 0, None),
        (0, 1, None),
        (True, 0, None),
        ("5", 0, None),
        (None, 0, None),
        (2**53, 0, 2**53),
        (2**53 + 1, 0, None),
        (1e300, 0, None),
        (float("nan"), 0, None),
        (float("inf"), 0, None),
    ],
)
def test_whole_numbers(value, low, expected):
    """P8: 5.0 is 5, because protobuf and JavaScript write it so; nothing beyond what they can say."""
    found = members.whole(value, low)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("value", "text", "code"),
    [("x", "x", "x"), ("", "", None), ("x" * 65, "x" * 65, None), (5, None, None), (None, None, None)],
)
def test_texts_and_codes(value, text, code):
    """A7, P8: a code is a text of 1 to 64 characters."""
    assert (members.text(value), members.code(value)) == (text, code)


def test_only_plain_values_count():
    """Nothing a caller's own class can override takes part."""
    assert members.text(Text("x")) is None
    assert members.texts(("a",)) == ()
    assert members.texts(["a", Text("b"), 5]) == ("a",)
    assert members.mapping([]) is None
    assert members.mapping({}) == {}


def test_an_object_nested_without_end_is_not_shallow():
    """M6: size and depth before anything else."""
    value: dict = {}
    assert members.shallow(value)
    value["self"] = value
    assert not members.shallow(value)
    assert not members.shallow([])
