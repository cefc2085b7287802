"""The scope in which keys are derived, and the key of the effect that is running, both in the current context."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from uuid import UUID

__all__ = [
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

    __slots__ = ("around", "ended", "key", "name", "sent")

    def __init__(self, key: str, name: str, around: _Running | None) -> None:
        self.key, self.name, self.around = key, name, around
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
def running_as(key: str, name: str = "") -> Generator[None]:
    """Set the key of the effect that runs inside, and its name in the ledger."""
    running = _Running(key, name, _RUNNING.get())
    token = _RUNNING.set(running)
    try:
        yield
    finally:
        running.ended = True
        _RUNNING.reset(token)
