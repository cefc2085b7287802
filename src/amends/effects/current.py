"""The scope in which keys are derived, and the key of the effect that is running, both in the current context."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["current_key", "current_scope", "running_as", "within_scope"]

_SCOPE: ContextVar[str] = ContextVar("amends_effects_scope", default="")
_KEY: ContextVar[str | None] = ContextVar("amends_effects_key", default=None)


def current_scope() -> str:
    """Return the scope of the current context; empty without one."""
    return _SCOPE.get()


def current_key() -> str | None:
    """Return the key of the effect that is running in the current context, for a service that honours keys."""
    return _KEY.get()


@contextmanager
def within_scope(name: str) -> Generator[None]:
    """Set the scope for the calls inside."""
    token = _SCOPE.set(name)
    try:
        yield
    finally:
        _SCOPE.reset(token)


@contextmanager
def running_as(key: str) -> Generator[None]:
    """Set the key of the effect that runs inside."""
    token = _KEY.set(key)
    try:
        yield
    finally:
        _KEY.reset(token)
