"""`async with` for stores: the store is closed at the end."""

from __future__ import annotations

from types import TracebackType
from typing import Self

__all__ = ["ClosedAtExit"]


class ClosedAtExit:
    """A store that `async with` closes."""

    async def close(self) -> None:
        """See `contract.Store.close`."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
