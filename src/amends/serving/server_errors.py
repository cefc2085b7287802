"""
The Fault that an AdCP caller gets for an exception raised in a server's code.

- A FaultError that the server's author raised: its fault, translated into the adcp vocabulary.
- A FaultError whose fault was received from another service: the result of `from_upstream`, which passes conformant
  errors on unchanged.
- An exception class that the application registered (`amends.register`): its code.
- A bug of the server's code (M7): SERVICE_UNAVAILABLE, terminal.
- Any other exception: RATE_LIMITED or SERVICE_UNAVAILABLE with a standard message. None of its text is sent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import NamedTuple, Self

from msgspec.structs import replace

from amends.core.crosswalk import transfer_plainly
from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.vocabularies.adcp import VOCABULARY, check_code
from amends.core.vocabulary import APP, EVERYDAY, row_for
from amends.dialects.adcp import with_allowed_codes
from amends.errors.base import FaultError, is_about_a_call
from amends.foreign import from_upstream
from amends.foreign.bugs import bug_fault, is_bug
from amends.foreign.groups import join, joined, parts_of, single
from amends.foreign.in_doubt import in_doubt, lost_call
from amends.foreign.local import is_client_error, is_local
from amends.foreign.registry import Known, known_errors, registered_fault
from amends.foreign.rules import RULES, Rule
from amends.foreign.safe_attr import attribute
from amends.proof import Claim, Proof, rests_on

__all__ = [
    "PLAIN",
    "Failure",
    "OwnErrors",
    "came_from_a_call",
    "classify",
    "classify_safely",
    "fault_for",
    "find_fault_error",
    "hides_that_nothing_happened",
    "is_about_a_part",
    "joined_failure",
    "modules_of",
    "with_executed",
]


class Failure(NamedTuple):
    """A failure that a server has to answer."""

    fault: Fault
    """The fault to send, in the adcp vocabulary."""
    cause: BaseException
    """The exception, for the log."""
    expected: bool
    """Whether the server's author raised the exception for the caller, or the framework refused the request."""
    settled: bool = False
    """Whether the fault is the application's own choice, also its `executed`."""


def find_fault_error(exc: BaseException) -> FaultError | None:
    """
    Return the FaultError that was raised: the exception itself, or the only exception in a group.

    >>> from amends.errors import NotFoundError
    >>> find_fault_error(ExceptionGroup("tasks", [NotFoundError("No such order")])).code
    'NOT_FOUND'
    """
    found = exc if isinstance(exc, FaultError) else single(exc)
    return found if isinstance(found, FaultError) else None


class OwnErrors(NamedTuple):
    """How the errors that a server's author raises or has registered become AdCP errors."""

    errors: Mapping[type[BaseException], Known] | None = None
    """The option `errors={E: "CODE"}` of the binding, as `known_errors` returns it."""
    prefix: str | None = None
    """The option `code_prefix`: the vendor's name in the AdCP codes of own codes."""

    @classmethod
    def of(cls, errors: Mapping[type[BaseException], str] | None, code_prefix: str | None) -> Self:
        """
        Return the checked options of a binding.

        Raises:
            TypeError, ValueError: an exception class, a code or the prefix is not valid.

        """
        if code_prefix is not None:
            # The vendor's name ends at the first underscore, so it has none.
            check_code(f"X_{code_prefix.replace('_', '-')}_CODE")
        return cls(known_errors(errors) if errors else None, code_prefix)

    def failure_of(self, exc: BaseException, translate: Callable[[BaseException], Fault]) -> Failure | None:
        """
        Return the failure of a typed error or of a registered class; None for all other exceptions.

        Args:
            exc: what the server's code raised.
            translate: returns the fault for a typed error that was received from another service.

        """
        error = find_fault_error(exc)
        if error is None:
            fault = registered_fault(type(exc), self.errors)
            if fault is None:
                return None
        elif error.fault.origin is None:
            fault = with_own_suggestion(error.fault)
        else:
            return Failure(translate(error), exc, expected=True)
        fault = with_allowed_codes(transfer_plainly(fault, VOCABULARY.name, prefix=self.prefix))
        return Failure(fault, exc, expected=True, settled=error is None)


PLAIN = OwnErrors()


def with_own_suggestion(fault: Fault) -> Fault:
    """Return a fault of a class of the application's with the suggestion of that class, which its callers cannot look up."""
    if fault.vocabulary != APP or fault.suggestions:
        return fault
    own = row_for(APP, fault.code)
    base = row_for(EVERYDAY, own.everyday)
    if own.suggestion in {base.suggestion, base.suggestion_under(own.recovery)}:
        return fault  # inherited: it says no more than the recovery
    return replace(fault, suggestions=(own.suggestion_under(fault.recovery),))


def fault_for(
    exc: BaseException, *, own: bool = False, caller_can_fix: bool = False, rules: Iterable[Rule] = RULES
) -> Fault:
    """
    Return the fault to answer an exception with, in the adcp vocabulary.

    Args:
        exc: what the server's code raised.
        own: the services that it calls are part of our system, as in `from_upstream`.
        caller_can_fix: as in `from_upstream`.
        rules: as in `from_upstream`.

    >>> fault = fault_for(KeyError("password for db.internal is hunter2"))
    >>> fault.code, fault.recovery.value, fault.message
    ('SERVICE_UNAVAILABLE', 'terminal', 'Something went wrong inside the service')

    """
    upstream = partial(from_upstream, own=own, caller_can_fix=caller_can_fix, rules=rules)

    def fault_of(part: BaseException) -> Fault:
        failure = PLAIN.failure_of(part, upstream)
        if failure is not None:
            return failure.fault
        return bug_fault(VOCABULARY.name) if is_bug(part) else upstream(part)

    return join(exc, fault_of)


def came_from_a_call(exc: BaseException) -> bool:
    """
    Return whether an exception came out of a call that the server's code made, and was not raised for the caller (M3).

    The code may have done something before that call, so a failure that can be repeated says nothing about the whole.
    `chain.relay` declares that nothing else was done.
    """
    try:
        if isinstance(exc, FaultError):
            return _came_from_a_call(exc)
        return any(map(_came_from_a_call, parts_of(exc)))
    except Exception:  # noqa: BLE001 - a subclass may define these as properties that raise
        return True


def _came_from_a_call(exc: BaseException) -> bool:
    return not isinstance(exc, FaultError) or (not exc.relayed and is_about_a_call(exc))


def is_about_a_part(exc: BaseException, fault: Fault) -> bool:
    """
    Return whether a failure says nothing about the effect of the whole, only about the part that failed (M3).

    That is a failure of a call that can be repeated, and an exception of the server's own code, such as a missing file:
    the code may have done something before. What a service refused for good had no effect (M9).

    Args:
        exc: what the server's code raised.
        fault: the fault of it.

    >>> is_about_a_part(FileNotFoundError(), Fault(code="NOT_FOUND"))
    True

    """
    return came_from_a_call(exc) and (fault.retryable or (not is_bug(exc) and _is_local(exc)))


@rests_on(Claim.NOT_HAPPENED, Proof.USER)
def _is_of_one_call(exc: BaseException) -> bool:
    """Return whether an exception is the failure of a call, so that it says all about a handler that makes only that call."""
    found = single(exc)
    return is_about_a_call(found) if isinstance(found, FaultError) else is_client_error(found)


def hides_that_nothing_happened(failure: Failure, sent: Fault) -> bool:
    """Return whether a call that had no effect became one that may have had it, because the handler may do more than it."""
    return (
        failure.fault.executed is Executed.NO
        and sent.executed is Executed.MAYBE
        and failure.fault.retryable
        and _is_of_one_call(failure.cause)
    )


def _is_local(exc: BaseException) -> bool:
    """Same as `is_local`, for any exception of a group, and for exceptions whose attributes may raise."""
    try:
        return any(map(is_local, parts_of(exc)))
    except Exception:  # noqa: BLE001 - an exception class may raise anything when it is inspected
        return True


@rests_on(Claim.NOT_HAPPENED, Proof.USER)
def with_executed(
    failure: Failure,
    *,
    read_only: bool,
    repeatable: bool = False,
    wrapper: bool = False,
    of_agent: bool = False,
) -> Failure:
    """
    Return the failure with the `executed` that our own caller gets (M3, "Failures from inside a handler").

    Args:
        failure: the failure.
        read_only: the handler is declared to change nothing.
        repeatable: it is declared to have no further effect if it runs again, so a lost call leaves nothing in doubt.
        wrapper: it is declared to make one call of another service and to do nothing else, as `chain.relay` declares.
        of_agent: it is a tool or an agent; see `lost_call`.

    """
    fault = failure.fault
    if failure.settled:
        return failure
    lost = (
        None
        if read_only or repeatable or fault.origin is not None
        else lost_call(failure.cause, of_agent=of_agent and not failure.expected)
    )
    if lost is not None:
        return failure._replace(fault=in_doubt(lost, VOCABULARY.name))
    if not is_about_a_part(failure.cause, fault) or (wrapper and _is_of_one_call(failure.cause)):
        return failure
    executed = Executed.NO if read_only else Executed.MAYBE
    return failure._replace(fault=replace(fault, executed=executed))


def classify(
    exc: BaseException, own_errors: OwnErrors = PLAIN, translate: Callable[[BaseException], Fault] = fault_for
) -> Failure:
    """
    Return the failure of an exception; it is expected if it holds a FaultError or was registered.

    Args:
        exc: what the server's code raised.
        own_errors: the options for errors that the server's author raises or has registered.
        translate: returns the fault for every other exception.

    """

    def classify_one(part: BaseException) -> Failure:
        return own_errors.failure_of(part, translate) or Failure(translate(part), part, expected=False)

    return joined_failure(exc, classify_one)


def joined_failure(exc: BaseException, classify_one: Callable[[BaseException], Failure]) -> Failure:
    """Return the failure of an exception; of a group, one for all its exceptions, expected if all of them are."""
    failures = [classify_one(part) for part in parts_of(exc)]
    if len(failures) == 1:
        return failures[0]
    return Failure(
        joined([failure.fault for failure in failures]),
        exc,
        expected=all(failure.expected for failure in failures),
        settled=all(failure.settled for failure in failures),
    )


def classify_safely(
    exc: BaseException, *, log: logging.Logger, classifier: Callable[[BaseException], Failure] = classify
) -> Failure:
    """
    Return `classifier(exc)`, or SERVICE_UNAVAILABLE if that raises, which is logged.

    Exceptions can have attributes or a `__str__` that raise, and a user's `translate` function can raise too.
    """
    try:
        return classifier(exc)
    except Exception:
        log.exception("an exception could not be classified; SERVICE_UNAVAILABLE is sent instead")
        row = VOCABULARY.rows["SERVICE_UNAVAILABLE"]
        return Failure(
            Fault(code=row.code, message=row.message, vocabulary=VOCABULARY.name), exc, expected=False
        )


def modules_of(exc: BaseException) -> list[str]:
    """Return the names of the modules that an exception passed through; the last one raised it."""
    modules, trace = [], attribute(exc, "__traceback__")
    while isinstance(trace, TracebackType):
        modules.append(str(trace.tb_frame.f_globals.get("__name__", "")))
        trace = trace.tb_next
    return modules
