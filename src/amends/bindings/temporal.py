"""
For teams on Temporal: a fault as the `ApplicationError` of an activity or a workflow, and back.

    @activity.defn
    async def charge(order: Order) -> str:
        try:
            return await client.charge(order)
        except FaultError as error:
            raise to_application_error(error.fault) from error

Temporal repeats an activity by its own retry policy. `non_retryable` is set for a fault that no repeat can help, or whose
call may have happened; `next_retry_delay` is the wait that the failing service asked for.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

try:
    from temporalio.exceptions import ApplicationError
except ImportError as missing:
    raise ImportError("amends.bindings.temporal needs temporalio: pip install temporalio") from missing

from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault
from amends.dialects.outgoing import outgoing
from amends.errors.base import FaultError

__all__ = ["from_application_error", "to_application_error"]

_LONGEST = 366 * 86400.0


def to_application_error(fault: Fault | FaultError, *, repeatable: bool = False) -> ApplicationError:
    """
    Return the error to raise in an activity or a workflow. Its type is the fault's code, its first detail the whole fault.

    >>> error = to_application_error(Fault(code="RATE_LIMITED", retry_after=5))
    >>> error.type, error.non_retryable, error.next_retry_delay
    ('RATE_LIMITED', False, datetime.timedelta(seconds=5))
    >>> from_application_error(error).retry_after
    5.0

    Args:
        fault: the failure.
        repeatable: whether a repeat of the activity is safe, because it is idempotent or its service honours keys. If not, a
            failure that may have had its effect is not retried.
    """
    # Temporal's server stores the error: values become plain, and credentials are removed.
    found = outgoing(fault.fault if isinstance(fault, FaultError) else fault, "envelope")
    can_help = found.recovery in {Recovery.TRANSIENT, Recovery.UNCERTAIN}
    safe = repeatable or found.executed is Executed.NO
    wait = found.retry_after
    usable = can_help and safe and wait is not None and 0 < wait <= _LONGEST
    return ApplicationError(
        found.message or found.code,
        msgspec.to_builtins(found, str_keys=True),
        type=found.code,
        non_retryable=not (can_help and safe),
        next_retry_delay=timedelta(seconds=float(wait)) if usable and wait is not None else None,
    )


def from_application_error(error: ApplicationError) -> Fault:
    """
    Return the fault of an error that `to_application_error` made; for any other one, a fault from what Temporal knows of it.

    The text of an error that was not made here is not copied.

    Use it in a workflow, on the cause of an ActivityError.

    >>> from_application_error(ApplicationError("disk full", non_retryable=True)).recovery.value
    'terminal'
    """
    for detail in error.details:
        found = _fault_in(detail)
        if found is not None:
            return found
    delay = error.next_retry_delay
    return Fault(
        code="INTERNAL_ERROR",
        recovery=Recovery.TERMINAL if error.non_retryable else Recovery.UNCERTAIN,
        executed=Executed.MAYBE,
        retry_after=None if delay is None else delay.total_seconds(),
    )


def _fault_in(detail: object) -> Fault | None:
    if not isinstance(detail, dict) or not isinstance(detail.get("code"), str):
        return None
    try:
        return msgspec.convert(detail, Fault)
    except msgspec.ValidationError:
        return None
