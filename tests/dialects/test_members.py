"""Reading members of objects from outside by type."""

import pytest

from amends.dialects import members


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
    """P8: 5.0 is 5, because protobuf and JavaScript write it so; the range is that of a double's integers."""
    found = members.whole(value, low)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("value", "text", "code"),
    [("x", "x", "x"), ("", "", None), ("x" * 65, "x" * 65, None), (5, None, None), (None, None, None)],
)
def test_texts_and_codes(value, text, code):
    """A7, P8: a code is a string of 1 to 64 characters."""
    assert (members.text(value), members.code(value)) == (text, code)


def test_members_of_the_wrong_type_are_absent():
    """P8: each reader returns None, or leaves the item out."""
    assert members.text(5) is None
    assert members.texts("a") == ()
    assert members.texts(["a", 5, None]) == ("a",)
    assert members.mapping([]) is None
    assert members.mapping({}) == {}


def test_an_object_nested_too_deep_is_none():
    """M6: size and depth are checked before anything else."""
    value: dict = {}
    assert members.plain_mapping(value) == {}
    value["self"] = value
    assert members.plain_mapping(value) is None
    assert members.plain_mapping([]) is None


@pytest.mark.parametrize(
    "value", [{}, [], {"a": 1}, [0], "x", "0", "false", 1, -1, 0.5, True, float("inf"), 10**400, object()]
)
def test_truthy(value):
    """Design 4: JavaScript takes empty objects and arrays for true."""
    assert members.truthy(value)


@pytest.mark.parametrize("value", [None, False, 0, 0.0, -0.0, "", float("nan")])
def test_falsy(value):
    """Design 4: NaN is false in JavaScript."""
    assert not members.truthy(value)
