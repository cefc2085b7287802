"""
Record the outcome of a thread that ended after its step had been given up.

A time-out cannot stop a thread. The step is in doubt until the thread ends; what it returned, or what `verify` finds then, is
appended to the task's log as a verification, as a user could do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future

from amends.core.enums import Executed
from amends.errors.base import FaultError
from amends.logs import logger
from amends.proof import Claim, Proof, rests_on
from amends.stores.errors import StoreError
from amends.tasks.journal import TaskNotFoundError
from amends.tasks.values import to_json_value

__all__ = ["LateResults"]

_log = logger("amends.tasks")
_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds between two attempts to record an outcome: the doubt itself may not be recorded yet."""


class LateResults:
    """The threads of this process whose steps are in doubt."""

    def __init__(self) -> None:
        self._watched: dict[Future[object], asyncio.Task[None]] = {}

    def watch(
        self,
        thread: Future[object],
        record: Callable[[bool, object], Awaitable[object]],
        verify: Callable[[], Awaitable[object]],
    ) -> None:
        """
        Record the outcome of a thread when it ends.

        Args:
            thread: the thread's future.
            record: records whether the step happened, and its result.
            verify: checks whether the step happened, if the thread raised an exception.
        """
        if thread in self._watched:
            return
        task = asyncio.get_running_loop().create_task(_record(thread, record, verify))
        self._watched[thread] = task
        task.add_done_callback(lambda _: self._watched.pop(thread, None))

    async def close(self) -> None:
        """Watch no longer. The threads go on; another worker verifies their steps."""
        watching = list(self._watched.values())
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)


async def _record(
    thread: Future[object],
    record: Callable[[bool, object], Awaitable[object]],
    verify: Callable[[], Awaitable[object]],
) -> None:
    seen = await _outcome(thread, verify)
    if seen is None:
        return
    for pause in _PAUSES:
        try:
            await record(*seen)
        except (FaultError, StoreError):
            await asyncio.sleep(pause)
        except TaskNotFoundError:
            return
        else:
            return
    _log.warning("the late outcome of a step could not be recorded")


@rests_on(Claim.NOT_HAPPENED, Proof.VERIFIED, Proof.STATUS)
async def _outcome(
    thread: Future[object], check: Callable[[], Awaitable[object]]
) -> tuple[bool, object] | None:
    """Whether the step happened, and its result; None if that is unknown."""
    try:
        return True, to_json_value(await asyncio.wrap_future(thread))
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - a thread may end with any exception
        if isinstance(error, FaultError) and error.fault.executed is Executed.NO:
            return False, None
    seen = await check()
    return None if seen is None else (seen is not False, None if seen is False else seen)
