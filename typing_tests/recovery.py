"""
The signatures of recovery. It is not run, like `api.py`.

A call keeps its result type, a decorated function keeps its signature, and a misspelt option is an error.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterator
from datetime import timedelta
from typing import assert_type

from amends import Operation, Policy, Upstream, arecover, arecover_stream, recover, recover_stream
from amends.errors import RateLimitedError
from amends.process import Finished, run
from amends.recovery import Attempt, Snapshot, attempts, recovering

search = Upstream("search", refresh=lambda: True)
read = Operation(name="search", read_only=True)


def count(text: str, most: int = 5) -> int:
    """A plain function."""
    return len(text[:most])


async def fetch(text: str) -> bytes:
    """An async function."""
    return text.encode()


history: list[Attempt] = []
assert_type(recover(count, "text", most=3, policy=Policy(attempts=2), history=history), int)
assert_type(search.snapshot(), Snapshot)
assert_type(recover(count, "text", on=(OSError, ValueError), read_only=True, raises="original"), int)
assert_type(recover(count, "text", on=lambda error: True, timeout=timedelta(seconds=5)), int)
assert_type(recover(count, "text", on_event=lambda event: None, fallback=lambda text, fault: 3), int)
recover(count, "text", raises="always")  # type: ignore[arg-type]
recover(count, "text", on="OSError")  # type: ignore[arg-type]
recover(count, "text", policy=3)  # type: ignore[arg-type]
recover(count, "text", upstream="search")  # type: ignore[arg-type]


def lines(name: str) -> Iterator[str]:
    """A generator function."""
    yield name


async def tokens() -> AsyncGenerator[int]:
    """An async generator function."""
    yield 1


async def opened() -> AsyncGenerator[int]:
    """An async function that returns an async iterable."""
    return tokens()


assert_type(recover_stream(lines, "x", read_only=True), Generator[str])
assert_type(arecover_stream(tokens, timeout=5), AsyncGenerator[int])
assert_type(arecover_stream(opened, on=OSError), AsyncGenerator[int])


async def awaited() -> None:
    """The async functions, and a block with attempts."""
    assert_type(await arecover(fetch, "text", upstream=search, operation=read), bytes)
    assert_type(await recovering(operation=read)(fetch)("text"), bytes)
    await arecover(count, "text")  # type: ignore[arg-type]
    async for attempt in attempts(operation=read):
        with attempt:
            assert_type(attempt.number, int)


assert_type(recovering(count)("text", most=3), int)
assert_type(recovering(policy=Policy(attempts=2), upstream=search)(count)("text"), int)
recovering(count)(3)  # type: ignore[arg-type]
recovering(polcy=Policy())  # type: ignore[call-overload]
recovering(policy=3)  # type: ignore[call-overload]

RateLimitedError("Slow down", retry_after=timedelta(seconds=5))
assert_type(run(["true"], timeout=timedelta(seconds=5)), Finished)
Policy(max_wait=timedelta(seconds=5))  # type: ignore[arg-type]
