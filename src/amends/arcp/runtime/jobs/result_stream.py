"""
Streamed results (section 8.4): numbered chunks of limited size, the last one marked as such.

A session that did not negotiate `result_chunk` gets the whole result instead.
"""

from __future__ import annotations

from base64 import b64encode
from types import TracebackType
from typing import Any, Self

import msgspec
from msgspec.structs import replace

from amends.arcp.runtime.entries import STREAMED, JobEntry, encode
from amends.arcp.runtime.jobs.job import Job
from amends.arcp.runtime.ledger import Ledger
from amends.arcp.wire import new_id
from amends.arcp.wire.chunks import Assembly
from amends.dialects import arcp as dialect
from amends.errors.arcp import InternalError, InvalidRequestError

__all__ = ["ResultStream", "assemble", "with_whole_result"]


class ResultStream:
    """
    Writes the job's result in chunks of text or bytes.

        async with ctx.result_chunks() as result:
            await result.write("first, ")
            await result.write("second")
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._held: str | bytes | None = None
        self._count = 0
        self._closed = False
        self.result_id = new_id("res")
        self.size = 0
        """Number of bytes written so far."""

    async def write(self, data: str | bytes) -> None:
        """
        Add data to the result; data larger than `Limits.chunk_bytes` is split.

        Raises:
            InvalidRequestError: the result exceeds `Limits.streamed_bytes`.

        """
        if self._closed:
            raise ValueError("the result stream is closed")
        if not isinstance(data, str | bytes):
            raise TypeError(f"a streamed result must be str or bytes, not {type(data).__name__}")
        limits = self._job.host.limits
        self.size += len(data.encode()) if isinstance(data, str) else len(data)
        if self.size > limits.streamed_bytes:
            raise InvalidRequestError(
                "The result exceeds the largest size that this runtime allows",
                details={"limit": "streamed_bytes", "value": limits.streamed_bytes},
            )
        # A character has at most four bytes in UTF-8.
        step = limits.chunk_bytes // 4 if isinstance(data, str) else limits.chunk_bytes
        for begin in range(0, len(data), step):
            if self._held is not None:
                await self._chunk(self._held, more=True)
            # Send a piece only when the next one exists, because the last chunk is marked with more=False.
            self._held = data[begin : begin + step]

    async def close(self) -> None:
        """Send the last chunk and end the result."""
        if not self._closed:
            self._closed = True
            await self._chunk("" if self._held is None else self._held, more=False)

    async def _chunk(self, data: str | bytes, *, more: bool) -> None:
        text, encoding = (data, "utf8") if isinstance(data, str) else (b64encode(data).decode(), "base64")
        body = {
            "result_id": self.result_id,
            "chunk_seq": self._count,
            "data": text,
            "encoding": encoding,
            "more": more,
        }
        self._count += 1
        self._job.emit("result_chunk", body)
        await self._job.wait_for_room()

    async def __aenter__(self) -> Self:
        """Return the stream itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the stream; after an exception the result stays incomplete and the job fails."""
        if kind is None:
            await self.close()


async def assemble(ledger: Ledger, job_id: str, run: int, end: dict[str, Any]) -> str | bytes | None:
    """Join the chunks of a run, given its `job.result`; None if they are no longer stored."""
    chunks = Assembly(end["result_size"])
    async for _, entry in ledger.history(job_id):
        if entry.label == "result_chunk" and entry.run == run:
            chunks.add(msgspec.json.decode(entry.payload)["body"])
    return chunks.result(end["result_id"], end["result_size"])


async def with_whole_result(ledger: Ledger, job_id: str, entry: JobEntry, limit: int) -> JobEntry:
    """Replace the end of a streamed result by one that contains the whole result; an error beyond `limit` bytes."""
    if entry.label != STREAMED:
        return entry
    end = msgspec.json.decode(entry.payload)
    size = end["result_size"]
    too_large = {"limit": "result_bytes", "value": limit, "result_size": size}
    if size > limit:
        return _not_sendable(entry, end, "The result is too large to be sent in one message", too_large)
    value = await assemble(ledger, job_id, entry.run, end)
    if value is None:
        return _not_sendable(entry, end, "The result is no longer stored", {"result_size": size})
    del end["result_id"], end["result_size"]
    end["result"] = value if isinstance(value, str) else {"encoding": "base64", "data": value}
    payload = encode(end)
    if len(payload) > limit:
        # JSON escapes and base64 have made it larger than the limit.
        return _not_sendable(entry, end, "The result is too large to be sent in one message", too_large)
    return replace(entry, payload=msgspec.Raw(payload), label="")


def _not_sendable(entry: JobEntry, end: dict[str, Any], why: str, details: dict[str, object]) -> JobEntry:
    details |= {"feature": "result_chunk", "executed": "yes"}
    error = dialect.encode(InternalError(why, retryable=False, details=details).fault)
    error |= {"final_status": "error", "completed_at": end.get("completed_at")}
    if "run" in end:
        error["run"] = end["run"]
    return replace(entry, kind="error", payload=msgspec.Raw(encode(error)), label="")
