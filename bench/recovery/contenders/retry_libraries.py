"""Libraries that wrap a function: tenacity, stamina, redress. Each runs its own asyncio code, unmodified."""

import redress
import stamina
import tenacity
from redress.contrib.httpx import default_result_classifier

from bench.recovery.run import Call, Contender, Perform, Process
from bench.recovery.wire import RefusedError, Response


async def raising(call: Call) -> Response:
    """Make one call as these libraries expect it: a failed response is raised as an exception."""
    response = await call.send()
    if not response.ok:
        raise RefusedError(response)
    return response


class View:
    """A response with the attribute names of httpx."""

    __slots__ = ("headers", "response", "status_code")

    def __init__(self, response: Response) -> None:
        self.response = response
        self.status_code = response.status
        self.headers = response.headers


def _tenacity(process: Process) -> Perform:
    async def perform(call: Call) -> Response:
        retrying = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(3), wait=tenacity.wait_exponential(multiplier=1), reraise=True
        )
        return await retrying(raising, call)

    return perform


def _stamina(process: Process) -> Perform:
    # The default hooks log every retry. They do not affect the retries.
    stamina.instrumentation.set_on_retry_hooks([])

    async def perform(call: Call) -> Response:
        return await stamina.AsyncRetryingCaller().on(Exception)(raising, call)

    return perform


def _redress(process: Process) -> Perform:
    """The README's quick start, with its HTTP classifier for responses and its strategy for Retry-After."""
    policy = redress.AsyncPolicy(
        retry=redress.AsyncRetry(
            classifier=redress.default_classifier,
            result_classifier=default_result_classifier,
            strategy=redress.retry_after_or(redress.decorrelated_jitter(max_s=5.0)),
            deadline_s=60,
            max_attempts=6,
        ),
        # Defaults: 5 failed operations in 60 s open it for 30 s. The clock has to be passed because the default
        # is bound to the real one when the module is imported.
        circuit_breaker=redress.CircuitBreaker(clock=process.now),
    )

    async def perform(call: Call) -> Response:
        async def once() -> View:
            return View(await call.send())

        return (await policy.call(once)).response

    return perform


TENACITY = Contender("tenacity", "stop_after_attempt(3), wait_exponential(multiplier=1)", _tenacity)
STAMINA = Contender("stamina", "defaults, on=Exception", _stamina)
REDRESS = Contender(
    "redress",
    "README quick start: deadline 60 s, 6 attempts, decorrelated jitter to 5 s below retry_after_or, breaker 5 in 60 s",
    _redress,
)
