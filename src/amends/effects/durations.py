"""Durations that a user gives: seconds or a timedelta."""

from __future__ import annotations

from datetime import timedelta

__all__ = ["seconds"]


def seconds(name: str, value: float | timedelta, *, least: float | None = None) -> float:
    """
    Return a duration in seconds.

    >>> seconds("expires_in", timedelta(days=2))
    172800.0

    Raises:
        TypeError, ValueError: it is no positive duration.

    """
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} is a number of seconds or a timedelta, not {type(value).__name__}")
    if not (0 < value < float("inf") or value == least):
        raise ValueError(f"{name} is a positive number of seconds, not {value!r}")
    return float(value)
