"""
Recovery's signatures as a type checker sees them. Never executed, like `api.py`.

What is called keeps its result type, what is decorated its whole signature, and an option that is misspelt is an error.
"""

from __future__ import annotations

from datetime import timedelta
from typing import assert_type

from amends import Operation, Policy, Upstream, arecover, recover
from amends.errors import RateLimitedError
from amends.process import Finished, run
from amends.recovery import Attempt, Snapshot, attempts, recovering

search = Upstream("search", refresh=lambda: True)
read = Operation(name="search", read_only=True)


def count(word: str, most: int = 5) -> int:
    """A plain call."""
    return len(word[:most])


async def fetch(word: str) -> bytes:
    """A call that is awaited."""
    return word.encode()


history: list[Attempt] = []
assert_type(recover(count, "word", most=3, policy=Policy(attempts=2), history=history), int)
assert_type(search.snapshot(), Snapshot)
recover(count, "word", policy=3)  # type: ignore[arg-type]
recover(count, "word", upstream="search")  # type: ignore[arg-type]


async def awaited() -> None:
    """The async twin, and a block that is tried."""
    assert_type(await arecover(fetch, "word", upstream=search, operation=read), bytes)
    assert_type(await recovering(operation=read)(fetch)("word"), bytes)
    await arecover(count, "word")  # type: ignore[arg-type]
    async for attempt in attempts(operation=read):
        with attempt:
            assert_type(attempt.number, int)


assert_type(recovering(count)("word", most=3), int)
assert_type(recovering(policy=Policy(attempts=2), upstream=search)(count)("word"), int)
recovering(count)(3)  # type: ignore[arg-type]
recovering(polcy=Policy())  # type: ignore[call-overload]
recovering(policy=3)  # type: ignore[call-overload]

RateLimitedError("Slow down", retry_after=timedelta(seconds=5))
assert_type(run(["true"], timeout=timedelta(seconds=5)), Finished)
Policy(max_wait=timedelta(seconds=5))  # type: ignore[arg-type]
