"""Await a coroutine and call a function when it suspends for the first time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from contextvars import copy_context
from typing import Any, Generic, TypeVar

__all__ = ["OnFirstWait"]

T = TypeVar("T")


class OnFirstWait(Generic[T]):
    """
    Awaits a coroutine, and calls `on_wait` when the coroutine is about to suspend for the first time.

    No other task runs before that point, so the writes and messages until then can be combined. With `own_context`, the
    coroutine runs in a copy of the current context, as in a task of its own: context variables that it sets are not
    visible to the rest of this task.
    """

    __slots__ = ("_on_wait", "_own_context", "_work")

    def __init__(
        self, work: Coroutine[Any, Any, T], on_wait: Callable[[], None], *, own_context: bool = False
    ) -> None:
        self._work = work
        self._on_wait = on_wait
        self._own_context = own_context

    def __await__(self) -> Generator[Any, Any, T]:
        return self._in_own_context() if self._own_context else self._in_same_context()

    def _in_same_context(self) -> Generator[Any, Any, T]:
        work = self._work.__await__()
        try:
            waited_for = next(work)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        self._on_wait()
        while True:
            try:
                yield waited_for
            except BaseException as thrown:  # noqa: BLE001 - the coroutine handles it
                try:
                    waited_for = work.throw(thrown)
                except StopIteration as done:
                    return done.value  # type: ignore[no-any-return]
            else:
                # The event loop resumes a task only with None, and `yield from` also begins by sending None.
                return (yield from work)

    def _in_own_context(self) -> Generator[Any, Any, T]:
        step = copy_context().run
        work = self._work.__await__()
        try:
            waited_for = step(next, work)
            self._on_wait()
            while True:
                try:
                    yield waited_for
                except BaseException as thrown:  # noqa: BLE001 - the coroutine handles it
                    waited_for = step(work.throw, thrown)
                else:
                    waited_for = step(next, work)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
