"""
Stop work that must not happen twice when the lease on its task runs out.

The log refuses the writes of a worker that has lost its task, but it cannot stop a call that is under way. The worker therefore
cancels such a call itself when the lease ends by its own clock, which started before the lease was requested. The worker that
takes over then checks whether the step happened; because of the cancellation, the step cannot happen after that check.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from amends.durable.journal import Fenced
from amends.stores.contract import Lease
from amends.stores.errors import StoreError

__all__ = ["LeaseGuard"]

T = TypeVar("T")


class LeaseGuard:
    """Runs work only for as long as a lease lasts. The lease must be extended through `extend`."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._timeouts: set[asyncio.Timeout] = set()

    @property
    def expires_in(self) -> float:
        """Seconds until the lease ends; 0 when it is over."""
        return self._lease.expires_in

    async def extend(self) -> None:
        """
        Extend the lease, and with it the time limit of all work that runs under it.

        Raises:
            LeaseLostError: another worker has taken the task.
        """
        await self._lease.extend()
        end = asyncio.get_running_loop().time() + self._lease.expires_in
        for timeout in self._timeouts:
            if not timeout.expired():
                timeout.reschedule(end)

    async def ensure(self) -> None:
        """
        Make sure, immediately before a call, that this worker still has the task.

        The worker may have been paused, or the acknowledgement of its last write may have arrived late. By then the lease may
        have run out, and another worker may have taken the task over.

        Raises:
            Fenced: another worker has the task, or the lease ran out and the store does not answer.
        """
        if self._lease.expires_in > 0:
            return
        try:
            await self.extend()
        except StoreError as error:
            raise Fenced from error
        if self._lease.expires_in <= 0:
            raise Fenced  # extending the lease takes longer than it lasts

    async def run(self, work: Awaitable[T]) -> T:
        """
        Return the result of `work`; cancel it when the lease runs out.

        If the work ignores the cancellation, its result is returned, and the log decides whether it counts.

        Raises:
            Fenced: the lease ran out.
        """
        timeout = asyncio.timeout(self._lease.expires_in)
        try:
            async with timeout:
                self._timeouts.add(timeout)
                return await work
        except TimeoutError:
            if timeout.expired():
                raise Fenced from None
            raise
        finally:
            self._timeouts.discard(timeout)
