"""A result in chunks (section 8.4): numbered, bounded, and the last one says so."""

from __future__ import annotations

from base64 import b64encode
from types import TracebackType
from typing import TYPE_CHECKING, Self

from amends.arcp.wire import new_id
from amends.errors.arcp import InternalError

if TYPE_CHECKING:
    from amends.arcp.runtime.job import Job

__all__ = ["ResultStream"]


class ResultStream:
    """
    The job's result as it comes into being: text, or bytes.

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
        """Bytes so far."""

    async def write(self, data: str | bytes) -> None:
        """
        Add a piece; one larger than a chunk may be is cut.

        Raises:
            InternalError: the result is larger than this runtime allows.

        """
        if self._closed:
            raise ValueError("the result has all its pieces")
        if not isinstance(data, str | bytes):
            raise TypeError(f"a result is streamed as text or bytes, not as {type(data).__name__}")
        limits = self._job.node.limits
        self.size += len(data.encode()) if isinstance(data, str) else len(data)
        if self.size > limits.streamed_bytes:
            raise InternalError(
                "The result is larger than this runtime allows",
                retryable=False,
                details={"limit": "streamed_bytes", "value": limits.streamed_bytes},
            )
        # Of text, a quarter as many characters: none has more than four bytes.
        step = limits.chunk_bytes // 4 if isinstance(data, str) else limits.chunk_bytes
        for begin in range(0, len(data), step):
            if self._held is not None:
                await self._chunk(self._held, more=True)
            # The newest piece is held back: only when there is another one is it known not to be the last.
            self._held = data[begin : begin + step]

    async def close(self) -> None:
        """There is no more."""
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
        await self._job.room()

    async def __aenter__(self) -> Self:
        """The stream itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Complete the result; one that was interrupted stays incomplete, and its job fails."""
        if kind is None:
            await self.close()
