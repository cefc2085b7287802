"""Results in chunks: assembled in order, or unusable with a reason."""

import pytest

from amends.arcp.wire.chunks import Assembly


def chunk(number, data, result_id="r", **more):
    return {"result_id": result_id, "chunk_seq": number, "data": data, "encoding": "utf8", **more}


def assembled(*chunks, limit=100, size=None):
    assembly = Assembly(limit)
    for each in chunks:
        assembly.add(each)
    return assembly.result("r", size), assembly.problem


def test_text_and_bytes():
    """Text, unless one chunk is bytes."""
    assert assembled(chunk(0, "a"), chunk(1, "é"), size=3) == ("aé", None)
    assert assembled(chunk(0, "a"), chunk(1, "/w==", encoding="base64")) == (b"a\xff", None)
    assert assembled(size=0) == ("", None)


def test_repeated_chunks_are_ignored():
    """They come again after a resumption."""
    assert assembled(chunk(0, "a"), chunk(0, "x"), chunk(1, "b")) == ("ab", None)


@pytest.mark.parametrize(
    ("chunks", "size", "problem"),
    [
        ([], None, "missing"),
        ([chunk(0, "a"), chunk(2, "c")], None, "gap"),
        ([chunk(0, "a")], 5, "incomplete"),
        ([chunk(0, "a" * 101)], None, "too_large"),
        ([chunk(0, "é" * 51)], None, "too_large"),
        ([chunk(0, "?", encoding="base64")], None, "malformed"),
        ([chunk(True, "a")], None, "malformed"),
        ([chunk(0, 5)], None, "malformed"),
        ([{"data": "a"}], None, "malformed"),
        ([chunk(0, "a", f"r{n}") for n in range(9)], None, "too_many_results"),
    ],
)
def test_unusable_results(chunks, size, problem):
    assert assembled(*chunks, size=size) == (None, problem)


def test_nothing_is_kept_after_a_problem():
    assembly = Assembly(10)
    assembly.add(chunk(1, "a"))
    assembly.add(chunk(0, "a"))
    assert (assembly.problem, assembly.result("r", None)) == ("gap", None)
