"""Noticing when a coroutine has to wait for the first time; until then nobody else has run."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any

__all__ = ["Noticing"]


class Noticing:
    """
    Awaits a coroutine, and calls back when it is about to wait for the first time.

    What happens before that is one undisturbed step of the event loop: what it has to write and to say can be put
    together. Afterwards it is as if the coroutine were awaited itself.
    """

    __slots__ = ("_waits", "_work")

    def __init__(self, work: Coroutine[Any, Any, None], waits: Callable[[], None]) -> None:
        self._work = work
        self._waits = waits

    def __await__(self) -> Generator[Any, Any, None]:
        work = self._work.__await__()
        try:
            waited_for = next(work)
        except StopIteration:
            return
        self._waits()
        while True:
            try:
                yield waited_for
            except BaseException as thrown:  # noqa: BLE001 - it is for the coroutine
                try:
                    waited_for = work.throw(thrown)
                except StopIteration:
                    return
            else:
                # The loop wakes with nothing but None, and that is what `yield from` begins with.
                yield from work
                return
