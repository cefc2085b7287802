"""Streamed results (section 8.4): numbered chunks of limited size, the last one marked as such."""

from __future__ import annotations

from base64 import b64encode
from types import TracebackType
from typing import Self

from amends.arcp.runtime.jobs.job import Job
from amends.arcp.wire import new_id
from amends.errors.arcp import InvalidRequestError

__all__ = ["ResultStream"]


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
