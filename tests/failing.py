"""A function that fails the first few times, as only a mistake of ours can: with an exception nobody thought of."""

from __future__ import annotations


def first_failing(monkeypatch, owner, name, times):
    """Make it so; what is given says whether it has failed as often as it should."""
    good, left = getattr(owner, name), [times]

    async def bad(*given, **options):
        if left[0]:
            left[0] -= 1
            raise KeyError("a mistake")
        return await good(*given, **options)

    monkeypatch.setattr(owner, name, bad)
    return lambda: not left[0]
