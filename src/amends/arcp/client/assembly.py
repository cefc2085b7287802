"""
Results that come in chunks (section 8.4), put together within bounds.

Chunks of one result count from 0 without gaps. Text stays text; with one chunk of bytes the whole is bytes. A chunk
that was seen already is passed over; anything else out of order spoils the result, and so does one too many.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as BadBase64
from typing import Any

__all__ = ["Assembly"]

_RESULTS = 8
"""Results one job may begin; one is what the protocol has in mind."""


class _Parts:
    __slots__ = ("binary", "parts", "size")

    def __init__(self) -> None:
        self.parts: list[str | bytes] = []
        self.binary = False
        self.size = 0


class Assembly:
    """The chunks of one job."""

    __slots__ = ("_limit", "_results", "_size", "spoilt")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._results: dict[str, _Parts] = {}
        self.spoilt: str | None = None
        """Why nothing will come of it."""

    def add(self, body: dict[str, Any]) -> None:
        """Take a chunk."""
        if self.spoilt is not None:
            return
        problem = self._added(body)
        if problem is not None:
            self.spoilt = problem
            self._results.clear()

    def _added(self, body: dict[str, Any]) -> str | None:
        result_id, number, data = body.get("result_id"), body.get("chunk_seq"), body.get("data")
        if not isinstance(result_id, str) or number.__class__ is not int or not isinstance(data, str):
            return "malformed"
        chunks = self._results.get(result_id)
        if chunks is None:
            if len(self._results) >= _RESULTS:
                return "too_many_results"
            chunks = self._results[result_id] = _Parts()
        if number < len(chunks.parts):
            return None
        if number > len(chunks.parts):
            return "gap"
        part: str | bytes = data
        if body.get("encoding") == "base64":
            try:
                part = b64decode(data, validate=True)
            except (BadBase64, ValueError):
                return "malformed"
            chunks.binary = True
            size = len(part)
        else:
            size = len(data.encode("utf-8", "surrogatepass"))
        self._size += size
        if self._size > self._limit:
            return "too_large"
        chunks.parts.append(part)
        chunks.size += size
        return None

    def whole(self, result_id: str, size: int | None) -> str | bytes | None:
        """The result, or None: `spoilt` says why. An empty one may have come without any chunk."""
        chunks = self._results.pop(result_id, None)
        if chunks is None and size == 0:
            return ""
        if chunks is None and self.spoilt is None:
            self.spoilt = "missing"
        if self.spoilt is not None or chunks is None:
            return None
        if size is not None and size != chunks.size:
            self.spoilt = "incomplete"
            return None
        if not chunks.binary:
            return "".join(part for part in chunks.parts if isinstance(part, str))
        return b"".join(part.encode() if isinstance(part, str) else part for part in chunks.parts)
