"""
A streamed result put together from its job's log: for a job that delegated, and for a session that takes no chunks.

Section 8.4 leaves open what such a session is sent. It gets the result as if it had been returned whole: text as it
is, bytes as base64 that says so. One that is larger than a result returned whole may be is told by its size, as an
error: the job itself has succeeded, and a session that names `result_chunk` can have its result.
"""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any

import msgspec

from amends.arcp.runtime.entries import JobEntry, encode
from amends.dialects import arcp as dialect
from amends.errors.arcp import InternalError

if TYPE_CHECKING:
    from amends.arcp.runtime.ledger import Ledger
    from amends.arcp.runtime.node import Node

__all__ = ["assembled", "streamed", "whole"]


class _End(msgspec.Struct):
    result_id: str | None = None


_read_end = msgspec.json.Decoder(_End).decode


def streamed(mark: JobEntry) -> bool:
    """Whether it is the end of a job whose result came in chunks."""
    return (
        mark.kind == "result"
        and b'"result_id"' in bytes(mark.payload)
        and _read_end(mark.payload).result_id is not None
    )


async def assembled(ledger: Ledger, job_id: str, run: int) -> str | bytes:
    """The chunks of a run, one after the other: bytes where one of them is."""
    pieces: list[str | bytes] = []
    async for _, mark in ledger.history(job_id):
        event = msgspec.json.decode(mark.payload) if mark.kind == "event" and mark.run == run else {}
        if event.get("kind") == "result_chunk":
            body = event["body"]
            pieces.append(body["data"] if body["encoding"] == "utf8" else b64decode(body["data"]))
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(piece for piece in pieces if isinstance(piece, str))
    return b"".join(piece if isinstance(piece, bytes) else piece.encode() for piece in pieces)


async def whole(node: Node, job_id: str, mark: JobEntry) -> JobEntry:
    """An entry as a session without chunks is sent it: the end of a streamed result with the result in it."""
    if not streamed(mark):
        return mark
    end = msgspec.json.decode(mark.payload)
    size, limit = end.pop("result_size"), node.limits.result_bytes
    too_large = {"limit": "result_bytes", "value": limit, "result_size": size}
    if size > limit:
        return _unsent(mark, end, "The result is too large to be sent whole", too_large)
    value = await assembled(node.ledger, job_id, mark.run)
    if (len(value.encode()) if isinstance(value, str) else len(value)) != size:
        return _unsent(mark, end, "The result is no longer kept", {"result_size": size})
    del end["result_id"]
    end["result"] = value if isinstance(value, str) else {"encoding": "base64", "data": value}
    payload = encode(end)
    if len(payload) > limit:
        # Escapes and base64 make more of it.
        return _unsent(mark, end, "The result is too large to be sent whole", too_large)
    return JobEntry(mark.kind, mark.run, mark.epoch, mark.node, mark.at, msgspec.Raw(payload))


def _unsent(mark: JobEntry, end: dict[str, Any], why: str, details: dict[str, Any]) -> JobEntry:
    details |= {"feature": "result_chunk", "executed": "yes"}
    error = dialect.encode(InternalError(why, retryable=False, details=details).fault)
    error |= {"final_status": "error", "completed_at": end.get("completed_at")}
    if "run" in end:
        error["run"] = end["run"]
    return JobEntry("error", mark.run, mark.epoch, mark.node, mark.at, msgspec.Raw(encode(error)))
