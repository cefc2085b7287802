"""The scope in which keys are derived, and the key of the effect that is running, both in the current context."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from uuid import UUID

from amends.core.enums import Executed
from amends.errors import TimeoutError as LateError

__all__ = [
    "check_time_limit",
    "current_key",
    "current_scope",
    "enter_scope",
    "is_running",
    "request_key",
    "running_as",
    "within_scope",
]

_SCOPE: ContextVar[str] = ContextVar("amends_effects_scope", default="")


class _Running:
    """The effect that is running, and the one that it is a part of."""

    __slots__ = ("around", "ended", "key", "left", "name", "sent")

    def __init__(
        self, key: str, name: str, around: _Running | None, left: Callable[[], float] | None
    ) -> None:
        self.key, self.name, self.around, self.left = key, name, around, left
        self.ended = False
        """A task that was started inside the effect may outlive it, and has a copy of its context."""
        self.sent: Counter[tuple[str, str]] | None = None


_RUNNING: ContextVar[_Running | None] = ContextVar("amends_effects_running", default=None)


def current_scope() -> str:
    """Return the scope of the current context; empty without one."""
    return _SCOPE.get()


def current_key() -> str | None:
    """
    Return the key of the effect that is running in the current context, for a service that honours keys.

    >>> current_key() is None
    True
    """
    running = _RUNNING.get()
    return None if running is None else running.key


def is_running(name: str) -> bool:
    """Return whether this code is a part of the effect with this name in the ledger."""
    running = _RUNNING.get()
    while running is not None:
        if running.name == name and not running.ended:
            return True
        running = running.around
    return False


def request_key(method: str, address: str) -> str | None:
    """
    Return the idempotency key of the next request inside the running effect; None outside of one.

    The n-th request to an address has the same key whenever the effect runs, so that a service that honours keys executes
    it once.
    """
    running = _RUNNING.get()
    if running is None:
        return None
    if running.sent is None:
        running.sent = Counter()
    running.sent[method, address] += 1
    text = f"{running.key}\0{method}\0{address}\0{running.sent[method, address]}"
    return str(UUID(bytes=sha256(text.encode("utf-8", "surrogatepass")).digest()[:16], version=4))


def check_time_limit() -> None:
    """
    Refuse to send anything for an effect whose time limit is over: a process that was stopped continues too late.

    Raises:
        FaultError: the time limit of the running effect, or of one around it, is over.

    """
    running = _RUNNING.get()
    while running is not None:
        if running.left is not None and running.left() <= 0:
            raise LateError(
                f"The time limit of the effect {running.name!r} is over, so that nothing more is sent for it: "
                "a longer one is set with timeout=",
                executed=Executed.MAYBE,  # what was sent before, within the limit
            )
        running = running.around


def enter_scope(name: str) -> None:
    """Set the scope for the rest of the current context, such as a task."""
    _SCOPE.set(name)


@contextmanager
def within_scope(name: str) -> Generator[None]:
    """Set the scope for the calls inside."""
    token = _SCOPE.set(name)
    try:
        yield
    finally:
        _SCOPE.reset(token)


@contextmanager
def running_as(key: str, name: str = "", left: Callable[[], float] | None = None) -> Generator[None]:
    """Set the key of the effect that runs inside, its name in the ledger, and what tells the seconds left of its time limit."""
    running = _Running(key, name, _RUNNING.get(), left)
    token = _RUNNING.set(running)
    try:
        yield
    finally:
        running.ended = True
        _RUNNING.reset(token)
