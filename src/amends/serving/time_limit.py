"""A time limit for plain functions: a thread cannot be stopped, but its caller need not wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import TypeVar

from amends.errors import TimeoutError as TimedOutError

__all__ = ["call_within"]

T = TypeVar("T")


def call_within(seconds: float, call: Callable[[], T]) -> T:
    """
    Call a plain function in a thread of its own, and return its result.

    A function that takes longer keeps running in its thread, which does not keep the process alive.

    >>> call_within(5, lambda: 17)
    17

    Raises:
        TimeoutError: of amends (TIMEOUT, the effect unknown): the time is over.

    """
    context, done = copy_context(), Future[T]()

    def work() -> None:
        try:
            done.set_result(context.run(call))
        except BaseException as error:  # noqa: BLE001 - raised in the calling thread
            done.set_exception(error)

    threading.Thread(target=work, name="amends-time-limit", daemon=True).start()
    try:
        return done.result(seconds)
    except TimeoutError:
        if done.done():
            raise  # the function's own, or it ended just now
        raise TimedOutError(f"The call took longer than its timeout of {seconds:g} s") from None
