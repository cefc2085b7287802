"""Noticing when a coroutine has to wait for the first time; until then nobody else has run."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from contextvars import copy_context
from typing import Any, Generic, TypeVar

__all__ = ["Noticing"]

T = TypeVar("T")


class Noticing(Generic[T]):
    """
    Awaits a coroutine, and calls back when it is about to wait for the first time.

    What happens before that is one undisturbed step of the event loop: what it has to write and to say can be put
    together. `apart`, the coroutine has a context of its own, as if it had a task of its own: what it sets there is
    seen by nobody else who runs in this task.
    """

    __slots__ = ("_apart", "_waits", "_work")

    def __init__(
        self, work: Coroutine[Any, Any, T], waits: Callable[[], None], *, apart: bool = False
    ) -> None:
        self._work = work
        self._waits = waits
        self._apart = apart

    def __await__(self) -> Generator[Any, Any, T]:
        return self._stepping() if self._apart else self._passing()

    def _passing(self) -> Generator[Any, Any, T]:
        work = self._work.__await__()
        try:
            waited_for = next(work)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        self._waits()
        while True:
            try:
                yield waited_for
            except BaseException as thrown:  # noqa: BLE001 - it is for the coroutine
                try:
                    waited_for = work.throw(thrown)
                except StopIteration as done:
                    return done.value  # type: ignore[no-any-return]
            else:
                # The loop wakes with nothing but None, and that is what `yield from` begins with.
                return (yield from work)

    def _stepping(self) -> Generator[Any, Any, T]:
        step = copy_context().run
        work = self._work.__await__()
        try:
            waited_for = step(next, work)
            self._waits()
            while True:
                try:
                    yield waited_for
                except BaseException as thrown:  # noqa: BLE001 - it is for the coroutine
                    waited_for = step(work.throw, thrown)
                else:
                    waited_for = step(next, work)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
