"""The first chunk of a stream is made before the response is sent, and the stream is closed whatever happens."""

import pytest

from amends.http.first_chunk import Begun, may_begin


class Stream:
    """Chunks that may fail, and that can be closed."""

    def __init__(self, *chunks):
        self.chunks, self.made, self.closed = iter(chunks), 0, 0

    def __iter__(self):
        return self

    def __next__(self):
        chunk = next(self.chunks)
        self.made += 1
        if isinstance(chunk, Exception):
            raise chunk
        return chunk

    def close(self):
        self.closed += 1


def test_which_streams_may_begin():
    """A HEAD request runs no stream, and the first event of a stream of events may come late."""
    assert may_begin("GET", "text/csv")
    assert not may_begin("HEAD", "text/csv")
    assert not may_begin("GET", "Text/Event-Stream; charset=utf-8")


def test_one_chunk_is_made_at_once():
    """The others are made when they are asked for."""
    stream = Stream("a", "b", "c")
    begun = Begun(stream)
    assert stream.made == 1
    assert list(begun) == ["a", "b", "c"]
    begun.close()
    assert stream.closed == 1


def test_an_empty_stream():
    assert list(Begun(Stream())) == []


def test_a_failure_before_the_first_chunk_closes_the_stream():
    """The failure is raised where the response is made."""
    stream = Stream(ValueError("x"), "b")
    with pytest.raises(ValueError, match="x"):
        Begun(stream)
    assert stream.closed == 1


def test_a_stream_that_cannot_be_closed():
    """A plain iterator has no `close`."""
    begun = Begun(iter(["a"]))
    begun.close()
    assert list(begun) == ["a"]
