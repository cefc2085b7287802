"""The plain clients with tenacity in a common configuration: three attempts and exponential waits."""

from __future__ import annotations

from amends.demo.agents import StepContext, StepFunction, plain

__all__ = ["STEP_FUNCTIONS"]


def _with_retry(function: StepFunction) -> StepFunction:
    async def run(context: StepContext) -> object:
        from tenacity import retry, stop_after_attempt, wait_exponential

        retrying = retry(
            stop=stop_after_attempt(3), wait=wait_exponential(multiplier=0.5, max=4), reraise=True
        )
        return await retrying(function)(context)

    return run


STEP_FUNCTIONS: dict[str, StepFunction] = {
    name: _with_retry(function) for name, function in plain.STEP_FUNCTIONS.items()
}
