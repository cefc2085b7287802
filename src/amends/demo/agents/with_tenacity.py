"""The same calls under tenacity, set up as its users do: three attempts, growing waits."""

from __future__ import annotations

from typing import Any

from amends.demo.agents import Act, Errand, plain

__all__ = ["ACTS"]


def _again(act: Act) -> Act:
    async def tried(errand: Errand) -> Any:
        from tenacity import retry, stop_after_attempt, wait_exponential

        stubborn = retry(
            stop=stop_after_attempt(3), wait=wait_exponential(multiplier=0.5, max=4), reraise=True
        )
        return await stubborn(act)(errand)

    return tried


ACTS: dict[str, Act] = {name: _again(act) for name, act in plain.ACTS.items()}
