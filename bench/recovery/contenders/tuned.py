"""
The function libraries once more, tuned as far as their options go.

They get the patience of amends (five calls, 300 s of waiting), obey Retry-After, repeat only what can change, and refresh
credentials where the library has a place for that: tenacity's `before_sleep` may be async; stamina's and redress's hooks
cannot wait.
"""

import redress
import stamina
import tenacity
from redress.contrib.httpx import default_result_classifier

from bench.recovery.contenders.retry_libraries import View, raising
from bench.recovery.run import Call, Contender, Perform, Process
from bench.recovery.wire import LostError, RefusedError, Response

CALLS, PATIENCE, LONGEST = 5, 300.0, 60.0


def _hint(error: BaseException | None) -> float | None:
    value = error.headers.get("Retry-After") if isinstance(error, RefusedError) else None
    return None if value is None else float(value)


def _repeatable(error: BaseException) -> bool:
    if isinstance(error, RefusedError):
        return error.status in {408, 429} or error.status >= 500
    return isinstance(error, LostError)


def _tenacity(process: Process) -> Perform:
    backoff = tenacity.wait_random_exponential(multiplier=1, max=LONGEST)
    patience = process.service.deadline or PATIENCE

    def wait(state: tenacity.RetryCallState) -> float:
        hint = _hint(state.outcome.exception())
        return backoff(state) if hint is None else hint

    def stop(state: tenacity.RetryCallState) -> bool:
        return (
            state.attempt_number >= CALLS
            or (state.seconds_since_start or 0.0) + state.upcoming_sleep > patience
        )

    async def perform(call: Call) -> Response:
        refreshed = False

        def again(error: BaseException) -> bool:
            return _repeatable(error) or (getattr(error, "status", 0) == 401 and not refreshed)

        async def refresh(state: tenacity.RetryCallState) -> None:
            nonlocal refreshed
            if getattr(state.outcome.exception(), "status", 0) == 401:
                refreshed = True
                await process.refresh()

        retrying = tenacity.AsyncRetrying(
            stop=stop,
            wait=wait,
            retry=tenacity.retry_if_exception(again),
            before_sleep=refresh,
            reraise=True,
        )
        return await retrying(raising, call)

    return perform


def _stamina(process: Process) -> Perform:
    stamina.instrumentation.set_on_retry_hooks([])

    def on(error: Exception) -> bool | float:
        hint = _hint(error)
        return _repeatable(error) if hint is None or hint > PATIENCE else hint

    caller = stamina.AsyncRetryingCaller(attempts=CALLS, timeout=PATIENCE, wait_initial=1.0, wait_max=LONGEST)

    async def perform(call: Call) -> Response:
        return await caller.on(on)(raising, call)

    return perform


def _redress(process: Process) -> Perform:
    policy = redress.AsyncPolicy(
        retry=redress.AsyncRetry(
            classifier=redress.default_classifier,
            result_classifier=default_result_classifier,
            strategy=redress.retry_after_or(redress.decorrelated_jitter(max_s=LONGEST)),
            deadline_s=PATIENCE,
            max_attempts=CALLS,
        )
    )

    async def perform(call: Call) -> Response:
        async def once() -> View:
            return View(await call.send())

        return (await policy.call(once)).response

    return perform


TENACITY_TUNED = Contender(
    "tuned tenacity",
    "5 calls, 300 s, Retry-After, random exponential waits to 60 s, only 408, 429, 5xx and time-outs, refresh in before_sleep",
    _tenacity,
)
STAMINA_TUNED = Contender(
    "tuned stamina",
    "5 attempts, 300 s, a hook that returns Retry-After, waits to 60 s, only 408, 429, 5xx and time-outs",
    _stamina,
)
REDRESS_TUNED = Contender(
    "tuned redress",
    "5 attempts, deadline 300 s, retry_after_or, decorrelated jitter to 60 s, no breaker",
    _redress,
)
