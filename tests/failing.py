"""A function that fails the first few times with an exception that the code does not expect."""

from __future__ import annotations


def first_failing(monkeypatch, owner, name, times):
    """Patch the coroutine function; return a function that reports whether all failures have happened."""
    good, left = getattr(owner, name), [times]

    async def bad(*given, **options):
        if left[0]:
            left[0] -= 1
            raise KeyError("a mistake")
        return await good(*given, **options)

    monkeypatch.setattr(owner, name, bad)
    return lambda: not left[0]
