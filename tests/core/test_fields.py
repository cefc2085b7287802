"""The paths of fields: JSON Pointers and AdCP's property paths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends.core.fields import last_step, property_path, to_pointer
from tests.strategies import rarely

SAME = {
    "/packages/0/budget": "packages[0].budget",
    "/budget": "budget",
    "/0": "[0]",
    "/packages/*/budget": "packages[*].budget",
    "/a.b/c": '["a.b"].c',
    "/due date": '["due date"]',
    "/a~1b/m~0n": '["a/b"]["m~n"]',
    '/a"b': '["a\\"b"]',
    "/": '[""]',
    "/größe": '["größe"]',
    "/x-y/_z/$a": "x-y._z.$a",
}


@pytest.mark.parametrize(("pointer", "path"), SAME.items())
def test_one_field_in_both_notations(pointer, path):
    assert property_path(pointer) == path
    assert to_pointer(path) == pointer
    assert property_path(path) == path
    assert to_pointer(pointer) == pointer


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ("due date", "/due date"),
        ("a..b", "/a..b"),
        ("a[0", "/a[0"),
        ("a[0]b", "/a[0]b"),
        (".a", "/.a"),
        ('a["\\x"]', '/a["\\x"]'),
        ("a.0.b", "/a/0/b"),
        ("", ""),
    ],
)
def test_a_text_that_is_no_path_is_one_key(text, pointer):
    assert to_pointer(text) == pointer


def test_the_name_of_a_field():
    assert [last_step(field) for field in ("/a/b~1c", "a[0]", "due date", "", "/")] == [
        "b/c",
        "0",
        "due date",
        "",
        "",
    ]


def test_a_text_that_is_too_long_to_be_a_path_stays():
    for text in ("a" * 5000, "/a" * 5000, "[" * 5000):
        assert to_pointer(text) == property_path(text) == text


@rarely
@given(
    st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=6), min_size=1, max_size=6)
)
def test_every_pointer_survives(steps):
    pointer = "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)
    assert to_pointer(property_path(pointer)) == pointer


@rarely
@given(st.text(max_size=40))
def test_any_text_is_converted_without_an_exception(text):
    property_path(text)
    to_pointer(text)
    last_step(text)
