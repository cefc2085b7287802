"""Reading JSON from outside: `read` is tolerant, `read_strict` accepts JSON only."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends.core.wire import (
    MAX_BYTES,
    MAX_DEPTH,
    TOO_DEEP,
    Unreadable,
    as_dict,
    compact,
    plain,
    read,
    read_strict,
)
from tests.strategies import ODD, json_values, often


def nested(levels, opening="[", closing="]"):
    """Return a document with that many levels."""
    return opening * levels + closing * levels


class Odd(dict):
    """A subclass of dict."""


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda data: data.decode()])
def test_every_kind_of_buffer_is_read(kind):
    """A document is bytes, a view of them, or a string."""
    assert read(kind(b'{"a": [1, 2.5, "\xc3\xa9"]}')) == {"a": [1, 2.5, "é"]}


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda data: data.decode()])
def test_every_kind_of_buffer_is_measured(kind):
    """The depth limit applies to each kind."""
    assert read(kind(nested(MAX_DEPTH + 1).encode())) is TOO_DEEP
    assert read(kind(nested(MAX_DEPTH).encode())) is not TOO_DEEP


def test_a_view_with_gaps_is_read_or_refused():
    """A memoryview need not be contiguous."""
    with pytest.raises(Unreadable):
        read(memoryview(b"{x}x")[::2][:1])
    assert read(memoryview(b"{x}x")[::2]) == {}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        ('\ufeff{"a": 1}', {"a": 1}),
        (b"[Infinity, -Infinity]", [math.inf, -math.inf]),
        (b"[1e400, -1e400]", [math.inf, -math.inf]),
        (b'"\\ud800"', "\ud800"),
        (b'{"a": "\xff"}', {"a": "\ufffd"}),
        ('"\ud800"', "\ud800"),
        (b"1" * 300 + b"", int("1" * 300)),
        (b"1" * 5000, math.inf),
        (b"-" + b"1" * 5000, -math.inf),
    ],
)
def test_malformed_documents_of_known_producers_are_read(data, expected):
    """M6: a byte-order mark, Infinity, 1e400, lone surrogates, broken UTF-8, thousands of digits."""
    assert read(data) == expected


def test_nan_is_read():
    """M6: NaN is read, and counts as absent later."""
    assert math.isnan(read(b'{"a": NaN}')["a"])


@pytest.mark.parametrize(
    "data", [b"", b"{", b'{"a":', b"{]", b"nope", b"{} {}", b"\xff\xfe{", b"'a'", b"[1,]"]
)
def test_other_documents_are_unreadable(data):
    """The error gives the position and does not quote the text."""
    with pytest.raises(Unreadable) as caught:
        read(data)
    assert isinstance(caught.value, ValueError)
    assert not caught.value.too_large


def test_size_is_bounded():
    """M6: 8 MiB are read, one byte more is refused before parsing."""
    document = b'"' + b"a" * (MAX_BYTES - 2) + b'"'
    assert len(read(document)) == MAX_BYTES - 2
    for too_large in (document + b" ", (document + b" ").decode()):
        with pytest.raises(Unreadable) as caught:
            read(too_large)
        assert caught.value.too_large
    with pytest.raises(Unreadable):
        read_strict(document.decode() + " ")
    with pytest.raises(Unreadable):
        read(memoryview(document + b" "))


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 1000, 10_000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_depth_is_bounded(levels, opening, closing):
    """M6: a document nested too deep is readable, but nothing is found in it."""
    document = opening * levels + "0" + closing * levels
    assert read(document) is TOO_DEEP
    assert read(document.encode()) is TOO_DEEP
    assert read_strict(document) is TOO_DEEP
    # The limit also applies to the tolerant parser.
    assert read("\ufeff" + document) is TOO_DEEP


@pytest.mark.parametrize(
    "text", ['\ufeff{"a": 1}', '{"a": NaN}', "[Infinity]", "-Infinity", "{", "Done.", ""]
)
def test_strict_accepts_only_json(text):
    """M6: S4's text fallback is JSON.parse, which accepts no byte-order mark and no NaN."""
    with pytest.raises(Unreadable):
        read_strict(text)


@pytest.mark.parametrize(
    ("text", "expected"), [("[1e400]", [math.inf]), ('"\\ud800"', "\ud800"), ('{"a": 1}', {"a": 1})]
)
def test_strict_takes_all_of_json(text, expected):
    """1e400 and lone surrogates are JSON, though msgspec refuses them."""
    assert read_strict(text) == expected


@pytest.mark.parametrize(
    ("value", "size"),
    [({"a": "é"}, 10), ({"a": "漢"}, 11), ({"a": "🙂"}, 12), ({"a": [1, 2]}, 11), ("\ud800", 5), ({}, 2)],
)
def test_compact_is_the_shortest_utf8_json(value, size):
    """Design 8: 4096 bytes are the length of the compact UTF-8 JSON; a lone surrogate takes three bytes."""
    assert len(compact(value)) == size


@pytest.mark.parametrize("value", [object(), 1j, {None: 1}, {"a": object()}, ["\ud800", object()]])
def test_other_values_have_no_compact_form(value):
    """The result is None."""
    assert compact(value) is None


def test_compact_of_something_endless_is_none():
    """A value that contains itself gives None and no RecursionError."""
    value: list = []
    value.append(value)
    assert compact(value) is None
    assert compact(["\ud800", value]) is None


@pytest.mark.parametrize("value", [0, {}, [], {"a": []}, [[1], {"a": 2}], Odd(a=[[[]]])])
def test_shallow_values_are_not_too_deep(value):
    """Only a value nested beyond the bound is too deep."""
    assert plain(value) == value


def test_depth_is_counted_to_the_level():
    """Exactly MAX_DEPTH levels are allowed."""
    at_most: list = [0]
    for _ in range(MAX_DEPTH - 1):
        at_most = [0, at_most, "x"]
    assert plain(at_most) is at_most
    assert plain([at_most]) is TOO_DEEP


def test_a_value_that_doubles_on_every_level_is_too_deep():
    """A value built in this process may contain another twice on every level, so the number of items is limited too."""
    value: list = []
    for _ in range(100):
        value = [value, value]
    assert plain(value) is TOO_DEEP


@often
@given(st.binary() | st.text() | st.sampled_from([item for item in ODD if isinstance(item, str | bytes)]))
def test_neither_reader_raises_anything_else(data):
    """Any bytes give a value or Unreadable."""
    for reader in (read, read_strict) if isinstance(data, str) else (read,):
        try:
            reader(data)
        except Unreadable:
            pass


@often
@given(json_values())
def test_reading_gives_back_what_was_written(value):
    """Reading the compact form returns the value."""
    written = compact(value)
    assert read(written) == value
    assert read_strict(written.decode()) == value


def test_documents_of_eight_megabytes_are_read():
    """A larger one is not."""
    most = 8 * 1024 * 1024
    document = b'"' + b"x" * (most - 2) + b'"'
    assert read(document) == "x" * (most - 2)
    with pytest.raises(Unreadable):
        read(document[:-1] + b'x"')


def test_where_a_document_is_broken():
    """The position is named, the text is not."""
    for reader in (read, read_strict):
        with pytest.raises(Unreadable, match="not JSON from line 2 column 3 on") as broken:
            reader('{"a":\n  s3cret}')
        assert (broken.value.line, broken.value.too_large) == (2, False)
    with pytest.raises(Unreadable, match="NaN is not JSON"):
        read_strict("[NaN]")
    assert math.isnan(read("[NaN]")[0])


def test_what_is_too_large():
    """More than eight megabytes, for each kind of document and both readers."""
    assert MAX_BYTES == 8 * 1024 * 1024
    text = '"' + "x" * (MAX_BYTES - 1) + '"'
    for reader, data in (
        (read, text),
        (read, text.encode()),
        (read, memoryview(text.encode())),
        (read_strict, text),
    ):
        with pytest.raises(Unreadable, match="larger than 8388608 bytes") as large:
            reader(data)
        assert (large.value.too_large, large.value.line) == (True, None)
    assert len(read_strict('"' + "x" * (MAX_BYTES - 2) + '"')) == MAX_BYTES - 2


def test_numbers_of_many_digits():
    """Up to 400 digits are a whole number, more are infinity, as other JSON readers have it."""
    for digits, expected in ((400, int("1" * 400)), (401, math.inf)):
        assert read("[" + "1" * digits + ", NaN]")[0] == expected


def test_depth_beside_many_brackets():
    """A flat document with many brackets is not deep, and neither is text with brackets."""
    for reader in (read, read_strict):
        assert reader("[" + ",".join(["[]"] * 600) + "]") == [[]] * 600
        assert reader('"' + "[" * 600 + '"') == "[" * 600
        assert reader(nested(MAX_DEPTH)) is not TOO_DEEP
        assert reader(nested(MAX_DEPTH + 1)) is TOO_DEEP
        assert reader(nested(MAX_DEPTH + 1, '{"a":', "}").replace(":}", ":1}")) is TOO_DEEP


def test_how_much_is_copied():
    """At most 200,000 items in all; of a mapping that is no dict ten thousand members, or it is unreadable."""
    odd = Odd(a=1)
    assert plain([[odd], list(range(199_990))])[0] == [{"a": 1}]
    assert plain([[odd], list(range(200_000))]) is TOO_DEEP
    assert plain([[odd], list(range(150_000)), list(range(60_000))]) is TOO_DEEP
    assert plain([odd, *[[7] * 100 for _ in range(1900)]])[0] == {"a": 1}
    assert plain(Counting(10_000)) == {number: 1 for number in range(10_000)}
    assert plain(Counting(10_001)) is None
    assert len(plain(Odd.fromkeys(range(10_001)))) == 10_001


class Counting:
    """A mapping without a registered type, with as many members as asked for."""

    def __init__(self, count):
        self.count = count

    def keys(self):
        return range(self.count)

    def __getitem__(self, key):
        return 1


def test_members_without_making_them_plain():
    """`as_dict` returns a dict itself, a copy of another mapping, and None for other values."""
    given = {"a": (1,)}
    assert as_dict(given) is given
    assert as_dict(Odd(given)) == given
    assert type(as_dict(Odd(given))) is dict
    assert as_dict(Counting(1)) == {0: 1}
    assert [as_dict(value) for value in (None, [1], "a", 7)] == [None] * 4


def test_scalars_are_plain():
    """Also as the whole value; those of subclasses become the values they hold."""

    class Text(str):
        __slots__ = ()

        def __str__(self):
            return "other"

    class Whole(int):
        pass

    class Part(float):
        pass

    for value, kind in (
        (Text("a"), str),
        (Whole(7), int),
        (Part(1.5), float),
        (True, bool),
        (None, type(None)),
    ):
        for found in (plain(value), plain({"a": value})["a"], plain([value])[0]):
            assert (type(found), found) == (kind, value)
    assert plain((1, (2,))) == [1, [2]]
    assert plain(b"x") == b"x"
    whole = {"a": [1, {"b": None}]}
    assert plain(whole) is whole
