"""
The first chunk of a WSGI response's stream, which is run before the response is handed to the server.

A WSGI server sends the headers with the first chunk, so that a stream that fails before it can still be answered with a problem
document. Under ASGI the headers come first: see `amends.bindings.asgi`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

__all__ = ["Begun", "may_begin"]

T = TypeVar("T")


def may_begin(method: str, content_type: str) -> bool:
    """
    Return whether the stream of a response is run before the response is sent.

    That of a HEAD request never runs, and the first event of a stream of events may come much later.

    >>> may_begin("GET", "text/csv"), may_begin("GET", "text/event-stream; charset=utf-8")
    (True, False)
    """
    return method != "HEAD" and not content_type.lower().startswith("text/event-stream")


class Begun(Generic[T]):
    """
    A stream whose first chunk has been made. Making it raises what the stream raises before that.

    >>> list(Begun(iter(["a", "b"])))
    ['a', 'b']
    """

    def __init__(self, chunks: Iterable[T]) -> None:
        self._chunks = chunks
        self._rest = iter(chunks)
        try:
            self._first = [next(self._rest)]
        except StopIteration:
            self._first = []
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        return self._first.pop() if self._first else next(self._rest)

    def close(self) -> None:
        """Close the stream, if it can be closed."""
        close = getattr(self._chunks, "close", None)
        if close is not None:
            close()
