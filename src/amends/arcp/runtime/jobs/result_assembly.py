"""
Assembling a streamed result from a job's log, for a job that delegated it and for sessions without `result_chunk`.

Section 8.4 does not define what such a session gets. It gets the result as if the agent had returned it: text as it is,
bytes as an object with base64 data. If the result exceeds `Limits.result_bytes`, the session gets an error with the
result's size; the job itself has succeeded, and a session with the `result_chunk` feature can get its result.
"""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import msgspec
from msgspec.structs import replace

from amends.arcp.runtime.entries import STREAMED, JobEntry, encode
from amends.arcp.runtime.ledger import Ledger
from amends.dialects import arcp as dialect
from amends.errors.arcp import InternalError

__all__ = ["assemble", "is_streamed", "with_whole_result"]


def is_streamed(entry: JobEntry) -> bool:
    """Whether this entry is the end of a job whose result was streamed."""
    return entry.label == STREAMED


async def assemble(ledger: Ledger, job_id: str, run: int) -> str | bytes:
    """Join the chunks of a run; the result is bytes if any chunk is."""
    pieces: list[str | bytes] = []
    async for _, entry in ledger.history(job_id):
        if entry.label == "result_chunk" and entry.run == run:
            body = msgspec.json.decode(entry.payload)["body"]
            pieces.append(body["data"] if body["encoding"] == "utf8" else b64decode(body["data"]))
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(piece for piece in pieces if isinstance(piece, str))
    return b"".join(piece if isinstance(piece, bytes) else piece.encode() for piece in pieces)


async def with_whole_result(ledger: Ledger, job_id: str, entry: JobEntry, limit: int) -> JobEntry:
    """Replace the end of a streamed result by one that contains the whole result; an error beyond `limit` bytes."""
    if not is_streamed(entry):
        return entry
    end = msgspec.json.decode(entry.payload)
    size = end.pop("result_size")
    too_large = {"limit": "result_bytes", "value": limit, "result_size": size}
    if size > limit:
        return _not_sendable(entry, end, "The result is too large to be sent in one message", too_large)
    value = await assemble(ledger, job_id, entry.run)
    if (len(value.encode()) if isinstance(value, str) else len(value)) != size:
        return _not_sendable(entry, end, "The result is no longer stored", {"result_size": size})
    del end["result_id"]
    end["result"] = value if isinstance(value, str) else {"encoding": "base64", "data": value}
    payload = encode(end)
    if len(payload) > limit:
        # JSON escapes and base64 have made it larger than the limit.
        return _not_sendable(entry, end, "The result is too large to be sent in one message", too_large)
    return replace(entry, payload=msgspec.Raw(payload), label="")


def _not_sendable(entry: JobEntry, end: dict[str, Any], why: str, details: dict[str, Any]) -> JobEntry:
    details |= {"feature": "result_chunk", "executed": "yes"}
    error = dialect.encode(InternalError(why, retryable=False, details=details).fault)
    error |= {"final_status": "error", "completed_at": end.get("completed_at")}
    if "run" in end:
        error["run"] = end["run"]
    return replace(entry, kind="error", payload=msgspec.Raw(encode(error)), label="")
