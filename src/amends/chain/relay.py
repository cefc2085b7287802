"""Return the failures of upstreams to our own caller."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from amends.core.fault import Fault
from amends.core.wrong_calls import explains_wrong_calls
from amends.errors.base import FaultError
from amends.foreign import from_upstream, from_upstreams
from amends.foreign.rules import RULES, Rule
from amends.serving.server_errors import fault_for

__all__ = ["gather", "relay", "relaying"]


@explains_wrong_calls
def relay(
    failure: object, *, own: bool = False, rules: Iterable[Rule] = RULES, caller_can_fix: bool = False
) -> FaultError:
    """
    Return the error to raise for an upstream's failure.

    Args:
        failure: an exception, a Fault, or a response as `amends.extract` takes it.
        own: the service is part of our system; its failure is passed on as it was read.
        rules: the table of rules. Put your own before the defaults: `(mine, *RULES)`.
        caller_can_fix: our own caller wrote what was refused; only then is the error correctable.

    >>> relay({"status": 429, "headers": {}}).fault.retry_after
    10.0
    >>> relay(ConnectionRefusedError("billing.internal:8443"))
    ServiceUnavailableError('The service is unavailable for now', code='SERVICE_UNAVAILABLE')

    """
    return _error(from_upstream(failure, own=own, caller_can_fix=caller_can_fix, rules=rules), failure)


@explains_wrong_calls
def gather(
    failures: Iterable[object],
    *,
    own: bool = False,
    rules: Iterable[Rule] = RULES,
    caller_can_fix: bool = False,
) -> FaultError:
    """
    Return one error to raise for the failures of several upstreams, with each of them in `.fault.errors`.

    A single failure gives the same error as `relay`.

    >>> [part.code for part in gather([TimeoutError(), {"status": 429, "headers": {}}]).fault.errors]
    ['SERVICE_UNAVAILABLE', 'RATE_LIMITED']

    Raises:
        ValueError: if `failures` is empty.

    """
    return _error(from_upstreams(failures, own=own, caller_can_fix=caller_can_fix, rules=rules), None)


@explains_wrong_calls
def relaying(
    *, own: bool = False, rules: Iterable[Rule] = RULES, caller_can_fix: bool = False
) -> Callable[[BaseException], Fault]:
    """
    Return the function for `guard(translate=)`: it makes the fault of an exception that a handler raised.

    A FaultError that the handler raised itself keeps its fault, and a bug of the handler is one. For every other exception
    the function returns the fault that `relay` gives it.

    >>> relaying()(TimeoutError()).code
    'SERVICE_UNAVAILABLE'
    """
    table = tuple(rules)

    def fault_for_caller(exc: BaseException) -> Fault:
        return fault_for(exc, own=own, caller_can_fix=caller_can_fix, rules=table)

    return fault_for_caller


def _error(fault: Fault, cause: object) -> FaultError:
    error = FaultError.from_fault(fault)
    # Nothing else was done (M3): `executed` stays what the upstream said.
    error.relayed = True
    if isinstance(cause, BaseException):
        error.__cause__ = error.passed_on = cause
    return error
