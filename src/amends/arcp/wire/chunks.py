"""
Assemble results that come in chunks (section 8.4), within limits.

The chunks of one result are numbered from 0 without gaps. Text stays text; if one chunk is bytes, the result is bytes. A
repeated chunk is ignored. A chunk out of order, or one chunk too many, makes the result unusable.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as BadBase64
from dataclasses import dataclass, field

from amends.proof import Claim, Proof, rests_on

__all__ = ["Assembly"]

_RESULTS = 8
"""Results that one job may begin; the protocol expects one."""


@dataclass(slots=True)
class _Parts:
    parts: list[str | bytes] = field(default_factory=list)
    binary: bool = False
    size: int = 0


class Assembly:
    """The chunks of one job."""

    __slots__ = ("_limit", "_results", "_size", "problem")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._results: dict[str, _Parts] = {}
        self.problem: str | None = None
        """Why the result is unusable."""

    def add(self, body: dict[str, object]) -> None:
        """Add a chunk."""
        if self.problem is not None:
            return
        self.problem = self._append(body)
        if self.problem is not None:
            self._results.clear()

    def _append(self, body: dict[str, object]) -> str | None:
        """Add a chunk, or return what is wrong with it."""
        result_id, number, data = body.get("result_id"), body.get("chunk_seq"), body.get("data")
        if not isinstance(result_id, str) or not isinstance(data, str):
            return "malformed"
        if not isinstance(number, int) or isinstance(number, bool):
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

    @rests_on(Claim.COMPLETE, Proof.LENGTH)
    def result(self, result_id: str, size: int | None) -> str | bytes | None:
        """The assembled result; None if it is unusable, with the reason in `problem`. An empty result may have no chunks."""
        chunks = self._results.pop(result_id, None)
        if chunks is None and size == 0:
            return ""
        if chunks is None and self.problem is None:
            self.problem = "missing"
        if self.problem is not None or chunks is None:
            return None
        if size is not None and size != chunks.size:
            self.problem = "incomplete"
            return None
        if not chunks.binary:
            return "".join(part for part in chunks.parts if isinstance(part, str))
        return b"".join(part.encode() if isinstance(part, str) else part for part in chunks.parts)
