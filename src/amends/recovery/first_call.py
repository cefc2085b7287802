"""
The first call of an operation, made without a flow: what most operations need, because most calls succeed.

If it fails, the flow of `operation_flow` starts with its outcome. `recover` and the decorator share these functions; `arecover`
contains the async one, written out.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CoroutineType
from typing import Any

from amends.recovery.call_errors import LOOP_CHECK, refuse_coroutine, refuse_plain
from amends.recovery.clock import CLOCK
from amends.recovery.operation_flow import Outcome
from amends.recovery.process_quota import process_quota
from amends.recovery.to_fault import fault_of
from amends.recovery.upstream import Upstream

__all__ = ["acall_first", "call_first", "failed_call"]


def call_first(
    upstream: Upstream | None,
    call: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    awaitables: bool = False,
) -> tuple[Any, Outcome | None]:
    """
    Make the call on this thread. Return its result and None, or None and the outcome of a call that failed.

    With `awaitables`, an awaitable result is returned with an outcome without a fault: nothing is reported yet.
    """
    if upstream is None:
        generation, successes = 0, process_quota.successes
    else:
        generation, successes = upstream.renewal.generation, 0
    sent = CLOCK.now()
    try:
        result = call(*args, **kwargs)
    except Exception as exc:  # noqa: BLE001 - recovery decides about every kind of failure
        return None, failed_call(sent, exc, generation, successes)
    except BaseException:
        if upstream is not None:
            upstream.abandoned(CLOCK.now(), sent)
        raise
    if awaitables and hasattr(result, "__await__"):
        return result, Outcome(sent=sent, ended=sent)
    if upstream is None:
        process_quota.successes += 1
    else:
        upstream.succeeded(CLOCK.now(), sent)
    if isinstance(result, CoroutineType):
        refuse_coroutine(result)
    if LOOP_CHECK.left:
        LOOP_CHECK.check(succeeded=True)
    return result, None


async def acall_first(
    upstream: Upstream | None, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Outcome | None]:
    """Make the call and await it. Return its result and None, or None and the outcome of a call that failed."""
    if upstream is None:
        generation, successes = 0, process_quota.successes
    else:
        generation, successes = upstream.renewal.generation, 0
    sent = CLOCK.now()
    try:
        awaitable = call(*args, **kwargs)
        if not isinstance(awaitable, CoroutineType):
            refuse_plain(awaitable)
        result = await awaitable
    except Exception as exc:  # noqa: BLE001 - recovery decides about every kind of failure
        return None, failed_call(sent, exc, generation, successes)
    except BaseException:
        if upstream is not None:
            upstream.abandoned(CLOCK.now(), sent)
        raise
    if upstream is None:
        process_quota.successes += 1
    else:
        upstream.succeeded(CLOCK.now(), sent)
    return result, None


def failed_call(sent: float, error: Exception, generation: int, successes: int) -> Outcome:
    """Return the outcome of a call that raised `error`."""
    return Outcome(
        sent=sent,
        ended=CLOCK.now(),
        error=error,
        fault=fault_of(error),
        generation=generation,
        successes=successes,
    )
